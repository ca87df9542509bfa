import { ConfigMap, seededRandom, silent, VirtualClock } from '@capstan/kube'
import { testServer } from '@capstan/kubernetes-kinds/test-server'
import { afterEach, expect, test } from 'vitest'
import { Informers } from './cache.ts'
import { recordWrites, within } from './own-writes.ts'

let stop: AbortController | undefined
afterEach(() => stop?.abort())

async function start() {
  stop = new AbortController()
  const { client, clock } = await testServer()
  const informers = new Informers({ client, clock, random: seededRandom(1), log: silent, signal: stop.signal })
  await informers.start(ConfigMap).synced
  return recordWrites(client, informers)
}

const key = { namespace: 'default', name: 'x' }

test('dry runs neither count as changes nor delay the next reconcile', async () => {
  const writes = await start()
  await writes.client.create(ConfigMap, { metadata: key }, { dryRun: true })
  expect(writes.changed).toBe(false)
  expect(writes.seen()).toBeUndefined()
})

test('a reconcile waits until the cache contains the created object', async () => {
  const writes = await start()
  await writes.client.create(ConfigMap, { metadata: key })
  expect(writes.changed).toBe(true)
  await writes.seen()
  expect(writes.seen()).toBeUndefined()
})

test('a wait ends with its signal, and leaves no timer that keeps the process running', async () => {
  const clock = new VirtualClock()
  const stopping = new AbortController()
  const waited = within(new Promise(() => {}), 10_000, clock, stopping.signal)
  stopping.abort()
  expect(await waited).toBe('done')
  expect(clock.nextDue).toBeUndefined()
})
