import { ConfigMap, seededRandom, silent } from '@capstan/kube'
import { testServer } from '@capstan/kubernetes-kinds/test-server'
import { afterEach, expect, test } from 'vitest'
import { Informers } from './cache.ts'
import { recordWrites } from './own-writes.ts'

let stop: AbortController
afterEach(() => stop.abort())

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
