import type { BenchOptions, Figure } from './figure.ts'
import { inParallel, megabytes } from './figure.ts'
import { aWidget, installWidgets, startServer, Widget } from './server.ts'

/** Measures the resident memory of the server process, empty and with custom resources. */
export async function* memoryBench({ short }: BenchOptions): AsyncIterable<Figure> {
  const objects = short ? 1000 : 10_000
  const server = await startServer()
  try {
    yield { name: 'resident, idle', value: megabytes(server.residentBytes()), unit: 'MB' }
    await installWidgets(server.client)
    await inParallel(objects, 64, (index) => server.client.create(Widget, aWidget(`w-${index}`)))
    yield { name: `resident, with ${objects} custom resources of 1 KB`, value: megabytes(server.residentBytes()), unit: 'MB' }
  } finally {
    await server.stop()
  }
}
