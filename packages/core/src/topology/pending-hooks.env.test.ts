import { Cluster, coreKinds, pendingHooks } from '@capstan/api'
import { testEnv } from '@capstan/testing'
import { afterEach, expect, test } from 'vitest'
import { changeCluster, clusterPatch } from './pending-hooks.ts'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})
const { signal } = new AbortController()
const PendingHooks = 'runtime.cluster.x-k8s.io/pending-hooks'

async function aCluster(pending?: string) {
  const env = await testEnv({ kinds: coreKinds })
  closers.push(() => env.close())
  const annotations = pending === undefined ? {} : { [PendingHooks]: pending }
  const spec = { topology: { classRef: { name: 'quick' }, version: 'v1.34.0' } }
  const cluster = await env.client.create(Cluster, {
    metadata: { name: 'demo', namespace: 'default', annotations },
    spec,
  } as never)
  return { client: env.client, cluster }
}

test('pending hooks are a sorted list; the annotation is removed with the last one', async () => {
  const { client, cluster } = await aCluster()
  const marked = await changeCluster(client, cluster, { add: ['B', 'A'] }, signal)
  expect(marked.metadata.annotations?.[PendingHooks]).toBe('A,B')
  const left = await changeCluster(client, marked, { remove: ['A', 'B'] }, signal)
  expect(left.metadata.annotations?.[PendingHooks]).toBeUndefined()
  expect(clusterPatch(left, { remove: ['A'] })).toBeUndefined()
})

test('a pending hook that was removed meanwhile is not restored from a stale copy', async () => {
  const { client, cluster: old } = await aCluster('A,B')
  await changeCluster(client, old, { remove: ['A'] }, signal)
  const after = await changeCluster(client, old, { remove: ['B'], add: ['C'] }, signal)
  expect([...pendingHooks(after)]).toEqual(['C'])
})
