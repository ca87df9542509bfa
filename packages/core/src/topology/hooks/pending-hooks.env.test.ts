import type { Cache } from '@capstan/controller'
import { Cluster, coreKinds, pendingHooks } from '@capstan/api'
import { createClient, keyOf } from '@capstan/kube'
import { testEnv } from '@capstan/testing'
import { afterEach, expect, test } from 'vitest'
import { changeCluster, clusterPatch } from './pending-hooks.ts'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})
const { signal } = new AbortController()
const emptyCache = { newest: () => undefined } as unknown as Cache
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
  return { io: { client: env.client, cache: emptyCache, signal }, cluster }
}

test('pending hooks are sorted in their annotation, which is removed with the last hook; removing a hook that is not pending needs no patch', async () => {
  const { io, cluster } = await aCluster()
  const marked = await changeCluster(io, cluster, { add: ['B', 'A'] })
  expect(marked.metadata.annotations?.[PendingHooks]).toBe('A,B')
  const unmarked = await changeCluster(io, marked, { remove: ['A', 'B'] })
  expect(unmarked.metadata.annotations?.[PendingHooks]).toBeUndefined()
  expect(clusterPatch(unmarked, { remove: ['A'] })).toBeUndefined()
})

test('a pending hook that another writer has removed is not restored from a stale copy', async () => {
  const { io, cluster: old } = await aCluster('A,B')
  await changeCluster(io, old, { remove: ['A'] })
  const changed = await changeCluster(io, old, { remove: ['B'], add: ['C'] })
  expect([...pendingHooks(changed)]).toEqual(['C'])
})

test('a pending hook is removed with one request although another writer has changed the Cluster', async () => {
  const { io, cluster: old } = await aCluster('A')
  await io.client.patch(Cluster, keyOf(old), { type: 'merge', body: { metadata: { labels: { team: 'a' } } } })
  const sent: string[] = []
  const { transport } = io.client
  const client = createClient({
    ...transport,
    send: (request, requestSignal) => (sent.push(request.verb), transport.send(request, requestSignal)),
  })
  const changed = await changeCluster({ ...io, client }, old, { remove: ['A'] })
  expect(sent).toEqual(['patch'])
  expect(changed.metadata).toMatchObject({ labels: { team: 'a' } })
  expect(changed.metadata.annotations?.[PendingHooks]).toBeUndefined()
})

test('a Cluster that was recreated under the same name keeps its pending hooks', async () => {
  const { io, cluster: old } = await aCluster('A')
  await io.client.delete(Cluster, keyOf(old))
  const { uid: _, resourceVersion: _v, creationTimestamp: _t, ...metadata } = old.metadata
  await io.client.create(Cluster, { metadata, spec: old.spec } as never)
  await expect(changeCluster(io, old, { remove: ['A'] })).rejects.toThrow()
  expect([...pendingHooks(await io.client.get(Cluster, keyOf(old)))]).toEqual(['A'])
})
