import { ConfigMap, createClient, hours, Lease, type Transport, VirtualClock } from '@capstan/kube'
import { expect, test } from 'vitest'
import { limitRate } from './limit-rate.ts'

function setup() {
  const clock = new VirtualClock()
  const sent: number[] = []
  const transport: Transport = {
    send: () => {
      sent.push(clock.elapsed())
      return Promise.resolve({ items: [] })
    },
    watch: () => Promise.reject(new Error('not watched here')),
    close() {},
  }
  const client = createClient(limitRate(transport, { qps: 10, burst: 2 }, clock))
  const advance = async (ms: number) => {
    const end = clock.now() + ms
    do await new Promise((resolve) => setImmediate(resolve))
    while (clock.step(end))
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { client, clock, sent, advance }
}

test('sends a burst at once, and later requests at the rate', async () => {
  const { client, sent, advance } = setup()
  const lists = Promise.all(Array.from({ length: 5 }, () => client.list(ConfigMap)))
  await advance(1000)
  await lists
  expect(sent).toEqual([0, 0, 100, 200, 300])
})

test('restores at most the burst after a time without requests', async () => {
  const { client, sent, advance } = setup()
  for (let i = 0; i < 2; i++) void client.list(ConfigMap)
  await advance(10_000)
  for (let i = 0; i < 3; i++) void client.list(ConfigMap)
  await advance(1000)
  expect(sent).toEqual([0, 0, 10_000, 10_000, 10_100])
})

test('keeps the rate when the clock is set back', async () => {
  const { client, clock, sent, advance } = setup()
  void client.list(ConfigMap)
  clock.shift(-hours(1))
  for (let i = 0; i < 3; i++) void client.list(ConfigMap)
  await advance(1000)
  expect(sent).toEqual([0, 0, 100, 200])
})

test('a request for a Lease is not delayed', async () => {
  const { client, sent, advance } = setup()
  for (let i = 0; i < 4; i++) void client.list(ConfigMap)
  void client.get(Lease, { namespace: 'n', name: 'a' })
  await advance(1000)
  expect(sent).toEqual([0, 0, 0, 100, 200])
})

test('an abort ends the wait of a delayed request', async () => {
  const { client, sent, advance } = setup()
  for (let i = 0; i < 2; i++) void client.list(ConfigMap)
  const abort = new AbortController()
  const waiting = client.list(ConfigMap, { signal: abort.signal })
  abort.abort(new Error('enough'))
  await expect(waiting).rejects.toThrow('enough')
  await advance(1000)
  expect(sent).toEqual([0, 0])
})

test('the time of an aborted request is used again only if no request waits behind it; waiting requests keep their times', async () => {
  const { client, sent, advance } = setup()
  for (let i = 0; i < 2; i++) void client.list(ConfigMap)
  const abortableList = async () => {
    const abort = new AbortController()
    const waiting = client.list(ConfigMap, { signal: abort.signal }).catch(() => {})
    await Promise.resolve()
    return async () => {
      abort.abort()
      await waiting
    }
  }
  const abortFirst = await abortableList()
  void client.list(ConfigMap)
  const abortLast = await abortableList()
  await abortLast()
  await abortFirst()
  await client.list(ConfigMap, { signal: AbortSignal.abort() }).catch(() => {})
  void client.list(ConfigMap)
  await advance(1000)
  expect(sent).toEqual([0, 0, 200, 300])
})
