import type { Client } from '@capstan/kube'
import type { BenchOptions, Figure } from './figure.ts'
import { now } from './figure.ts'
import { Load } from './load.ts'
import { creation, installWidgets, startServer, Widget, widgets } from './server.ts'

/** Measures the events per second to many watchers of one kind, over HTTPS. */
export async function* watchBench({ short }: BenchOptions): AsyncIterable<Figure> {
  const watchers = short ? 20 : 200
  const server = await startServer()
  const load = await Load.of(server.kubeconfig)
  try {
    await installWidgets(server.client)
    const value = await measureDelivery(server.client, load, watchers, short ? 50 : 800)
    yield { name: `events delivered to ${watchers} watchers`, value, unit: '/s' }
  } finally {
    load.close()
    await server.stop()
  }
}

/**
 * Number of objects that are created before the bench waits for their events: a busy kube-apiserver, which `beside.ts` also measures,
 * closes watches that are some hundred events late.
 */
const Burst = 100

/** Creates `changes` objects after a warm-up. Returns how many events per second `watchers` watchers receive together. */
export async function measureDelivery(client: Client, load: Load, watchers: number, changes: number): Promise<number> {
  const { metadata } = await client.list(Widget, { limit: 1 })
  const { resourceVersion } = metadata
  const watches = await load.watch({ verb: 'watch', ...widgets, options: { resourceVersion } }, watchers)
  try {
    let done = 0
    const create = async (count: number) => {
      const requests = Array.from({ length: count }, (_, index) => creation(`watched-${done + index}`))
      await Promise.all([load.run(requests, 16, 201), watches.all((done += count))])
    }
    // Warm-up: V8 compiles the code during the first events.
    await create(Burst)
    const started = now()
    while (done < Burst + changes) await create(Math.min(Burst, Burst + changes - done))
    return (watchers * changes) / ((now() - started) / 1000)
  } finally {
    watches.close()
  }
}
