import type { BenchOptions, Figure } from './figure.ts'
import { median } from './figure.ts'
import { startServer } from './server.ts'

/**
 * Measures the time from the start of the process until the API server is ready. It includes loading modules, creating certificates and an
 * empty durable store, and listening on a socket.
 */
export async function* coldStartBench({ short }: BenchOptions): AsyncIterable<Figure> {
  const times: number[] = []
  for (let round = 0; round < (short ? 1 : 5); round++) {
    const server = await startServer()
    times.push(server.readyAfter)
    await server.stop()
  }
  yield { name: 'capstan apiserver, spawn to ready', value: median(times), unit: 'ms' }
}
