import type { BenchOptions, Figure } from './figure.ts'
import { median } from './figure.ts'
import { startServer } from './server.ts'

/** Measures the time from the start of the process until the API server is ready: modules, certificates, empty durable store, socket. */
export async function* coldStartBench({ short }: BenchOptions): AsyncIterable<Figure> {
  const times: number[] = []
  for (let round = 0; round < (short ? 1 : 5); round++) {
    const server = await startServer()
    times.push(server.readyAfter)
    await server.stop()
  }
  yield { name: 'capstan apiserver, spawn to ready', value: median(times), unit: 'ms' }
}
