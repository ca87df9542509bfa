import { memoryStore } from '@capstan/apiserver'
import { createApiServer } from '@capstan/kubernetes-kinds'
import { createClient, silent, systemClock, systemRandom } from '@capstan/kube'
import type { BenchOptions, Figure } from './figure.ts'
import { inParallel, median, now } from './figure.ts'
import { aWidget, installWidgets, startServer, Widget } from './server.ts'

/** Measures creates per second and the duration of a large list. */
export async function* apiserverBench({ short }: BenchOptions): AsyncIterable<Figure> {
  const count = short ? 500 : 5000
  const memoryServer = createApiServer({ store: memoryStore(), clock: systemClock, random: systemRandom, log: silent })
  await memoryServer.ready
  const inProcess = createClient(memoryServer.transport())
  await installWidgets(inProcess)
  await inParallel(count, 16, (index) => inProcess.create(Widget, aWidget(`warm-${index}`)))
  const seconds = await inParallel(count, 16, (index) => inProcess.create(Widget, aWidget(`w-${index}`)))
  yield { name: 'creates, in process, memory store', value: count / seconds, unit: '/s' }
  await memoryServer.close()

  const server = await startServer()
  try {
    await installWidgets(server.client)
    await inParallel(count, 16, (index) => server.client.create(Widget, aWidget(`warm-${index}`)))
    for (const inFlight of [1, 16, 64]) {
      const n = inFlight === 1 ? count / 5 : count
      const took = await inParallel(n, inFlight, (index) => server.client.create(Widget, aWidget(`w-${inFlight}-${index}`)))
      yield { name: `creates, HTTPS, durable, ${inFlight} in flight`, value: n / took, unit: '/s' }
    }
    const objectCount = short ? 900 : 9000
    const { items } = await server.client.list(Widget)
    await inParallel(Math.max(0, objectCount - items.length), 64, (index) =>
      server.client.create(Widget, aWidget(`more-${index}`)),
    )
    const times: number[] = []
    for (let round = 0; round < 5; round++) {
      const started = now()
      await server.client.list(Widget, { limit: objectCount })
      times.push(now() - started)
    }
    yield { name: `list of ${objectCount} custom resources, HTTPS, parsed by the client`, value: median(times), unit: 'ms' }
  } finally {
    await server.stop()
  }
}
