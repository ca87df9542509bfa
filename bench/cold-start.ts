import type { BenchOptions, Figure } from './figure.ts'
import { median } from './figure.ts'
import { startServer } from './server.ts'

/** Time from the start of the process to the first response of the API server: modules, certificates, empty durable store, socket. */
export async function* coldStartBench({ short }: BenchOptions): AsyncIterable<Figure> {
  const times: number[] = []
  for (let round = 0; round < (short ? 1 : 5); round++) {
    const server = await startServer()
    times.push(server.readyAfter)
    await server.stop()
  }
  yield { name: 'capstan apiserver, spawn to ready', value: median(times), unit: 'ms' }
}
