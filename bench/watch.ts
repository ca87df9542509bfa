import type { BenchOptions, Figure } from './figure.ts'
import { inParallel, now } from './figure.ts'
import { aWidget, installWidgets, startServer, Widget } from './server.ts'

/** How many events a second reach many watchers of one kind, over HTTPS. */
export async function* watchBench({ short }: BenchOptions): AsyncIterable<Figure> {
  const watchers = short ? 20 : 200
  const changes = short ? 50 : 200
  const server = await startServer()
  const abort = new AbortController()
  try {
    await installWidgets(server.client)
    const { metadata } = await server.client.list(Widget)
    let received = 0
    let done!: () => void
    const all = new Promise<void>((resolve) => {
      done = resolve
    })
    for (let i = 0; i < watchers; i++) {
      const stream = await server.client.watch(Widget, { resourceVersion: metadata.resourceVersion, signal: abort.signal })
      void (async () => {
        for await (const _ of stream) if (++received === watchers * changes) done()
      })().catch(() => {})
    }
    const started = now()
    await inParallel(changes, 16, (index) => server.client.create(Widget, aWidget(`w-${index}`)))
    await all
    yield { name: `events delivered to ${watchers} watchers`, value: received / ((now() - started) / 1000), unit: '/s' }
  } finally {
    abort.abort()
    await server.stop()
  }
}
