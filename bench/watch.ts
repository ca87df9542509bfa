import type { Client } from '@capstan/kube'
import type { BenchOptions, Figure } from './figure.ts'
import { inParallel, now } from './figure.ts'
import { aWidget, installWidgets, startServer, Widget } from './server.ts'

/** How many events a second reach many watchers of one kind, over HTTPS. */
export async function* watchBench({ short }: BenchOptions): AsyncIterable<Figure> {
  const watchers = short ? 20 : 200
  const server = await startServer()
  try {
    await installWidgets(server.client)
    const value = await deliver(server.client, watchers, short ? 50 : 200)
    yield { name: `events delivered to ${watchers} watchers`, value, unit: '/s' }
  } finally {
    await server.stop()
  }
}

/** Events a second that reach so many watchers, while so many objects are created. */
export async function deliver(client: Client, watchers: number, changes: number): Promise<number> {
  const abort = new AbortController()
  const { metadata } = await client.list(Widget, { limit: 1 })
  const { promise: all, resolve } = Promise.withResolvers<void>()
  let received = 0
  try {
    for (let i = 0; i < watchers; i++) {
      const stream = await client.watch(Widget, { resourceVersion: metadata.resourceVersion, signal: abort.signal })
      void (async () => {
        for await (const _ of stream) if (++received === watchers * changes) resolve()
      })().catch(() => {})
    }
    const started = now()
    await inParallel(changes, 16, (index) => client.create(Widget, aWidget(`watched-${index}`)))
    await all
    return received / ((now() - started) / 1000)
  } finally {
    abort.abort()
  }
}
