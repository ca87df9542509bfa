import { memoryStore } from '@capstan/apiserver'
import { ConfigMap, createClient, seededRandom, silent, type Transport, VirtualClock, type WatchEvent } from '@capstan/kube'
import { createApiServer } from '@capstan/kubernetes-kinds'
import { expect, test } from 'vitest'
import { Informers } from './cache.ts'

test('waitUntilCurrent resolves only when a delayed watch has delivered every object that existed at the call', async () => {
  const clock = new VirtualClock()
  const server = createApiServer({ store: memoryStore(), clock, random: seededRandom(1), log: silent })
  await server.ready
  const inner = server.transport({ name: 'test', groups: ['system:masters'], agent: 'test' })
  const delayedEvents = Promise.withResolvers<void>()
  const transport: Transport = {
    close: () => inner.close(),
    send: (request, signal) => inner.send(request, signal),
    async watch(request, signal) {
      const events = await inner.watch(request, signal)
      return (async function* (): AsyncGenerator<WatchEvent> {
        for await (const event of events) {
          await delayedEvents.promise
          yield event
        }
      })()
    },
  }
  const client = createClient(transport)
  const ending = new AbortController()
  const { signal } = ending
  const informers = new Informers({ client, clock, random: seededRandom(1), log: silent, signal })
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  try {
    await informers.start(ConfigMap).synced
    const key = { namespace: 'default', name: 'new' }
    await client.create(ConfigMap, { metadata: key })
    let isCaughtUp = false
    const waiting = informers.waitUntilCurrent(signal).then(() => {
      isCaughtUp = true
    })
    for (let i = 0; i < 20; i++) await turn()
    expect([isCaughtUp, informers.peek(ConfigMap, key)]).toEqual([false, undefined])
    delayedEvents.resolve()
    await waiting
    expect(informers.peek(ConfigMap, key)).toBeDefined()
  } finally {
    ending.abort()
    await informers.waitUntilStopped()
    await server.close()
  }
})
