import { ConfigMap, seededRandom, silent, VirtualClock } from '@capstan/kube'
import { testServer } from '@capstan/kubernetes-kinds/test-server'
import { afterEach, expect, test } from 'vitest'
import { Informers } from './cache.ts'
import { recordWrites, within } from './own-writes.ts'

let stop: AbortController | undefined
afterEach(() => stop?.abort())

const start = async () => (await startWithInformer()).writes

async function startWithInformer() {
  stop = new AbortController()
  const { client, clock } = await testServer()
  const informers = new Informers({ client, clock, random: seededRandom(1), log: silent, signal: stop.signal })
  const informer = informers.start(ConfigMap)
  await informer.synced
  return { informer, writes: recordWrites(client, informers) }
}

const key = { namespace: 'default', name: 'x' }

test('dry runs neither count as changes nor delay the next reconcile', async () => {
  const writes = await start()
  await writes.client.create(ConfigMap, { metadata: key }, { dryRun: true })
  expect(writes.changed).toBe(false)
  expect(writes.waitUntilCached()).toBeUndefined()
})

test('waitUntilCached() resolves when the cache contains the created object', async () => {
  const writes = await start()
  await writes.client.create(ConfigMap, { metadata: key })
  expect(writes.changed).toBe(true)
  await writes.waitUntilCached()
  expect(writes.waitUntilCached()).toBeUndefined()
})

test('newest() returns the result of a write only until the watch reaches the revision of the write', async () => {
  const { informer, writes } = await startWithInformer()
  const created = await writes.client.create(ConfigMap, { metadata: key })
  await writes.waitUntilCached()
  informer.recordWrite({ ...created, metadata: { ...created.metadata, resourceVersion: '1', labels: { is: 'old' } } })
  expect(informer.newest(key)).toBe(informer.get(key))
  const laterRevision = String(Number(created.metadata.resourceVersion) + 1)
  const written = { ...created, metadata: { ...created.metadata, resourceVersion: laterRevision } }
  informer.recordWrite(written)
  expect(informer.newest(key)).toBe(written)
  expect(informer.get(key)?.metadata.resourceVersion).toBe(created.metadata.resourceVersion)
  informer.accept({ kind: 'deleted', object: written })
  expect(informer.newest(key)).toBeUndefined()
})

test('within() resolves when its signal aborts, and cancels its timer', async () => {
  const clock = new VirtualClock()
  const stopping = new AbortController()
  const waited = within(new Promise(() => {}), 10_000, clock, stopping.signal)
  stopping.abort()
  expect(await waited).toBe('done')
  expect(clock.nextDue).toBeUndefined()
})
