/**
 * Tests that BeforeClusterDelete also protects the objects of a Cluster from deletions that core does not begin: foreground deletion of
 * the Cluster, and deletion of its namespace. It does not protect a Machine that a user deletes.
 */
import { Cluster, Machine, MachineDeployment } from '@capstan/api'
import { type Kind, Namespace, seconds } from '@capstan/kube'
import { LocalCluster, LocalControlPlane, LocalMachine } from '@capstan/local'
import { afterEach, expect, test } from 'vitest'
import { createFrom } from './manifests.ts'
import { type ManagementEnv, managementEnv } from './management-env.ts'
import { scriptedRuntime } from './scripted-runtime.ts'

let env: ManagementEnv
afterEach(() => env.close())

const topology = {
  classRef: { name: 'demo', namespace: 'default' },
  version: 'v1.36.0',
  controlPlane: { replicas: 1 },
  workers: { machineDeployments: [{ class: 'worker', name: 'steady', replicas: 1 }] },
}

/** Creates a Cluster in the namespace `team`. A handler of BeforeClusterDelete blocks its deletion until `unblock` is called. */
async function aGuardedCluster() {
  let blocks = true
  const runtime = scriptedRuntime({ BeforeClusterDelete: () => (blocks ? { wait: 5, message: 'backing up' } : undefined) })
  env = await managementEnv({ runtime })
  await createFrom(env.client, new URL('../../lab/demo/class.yaml', import.meta.url))
  await env.client.create(Namespace, { metadata: { name: 'team' } })
  await env.client.create(Cluster, { metadata: { name: 'demo', namespace: 'team' }, spec: { topology } })
  await env.advance(seconds(30))
  const kinds = [Machine, MachineDeployment, LocalCluster, LocalControlPlane, LocalMachine] as Kind[]
  return {
    objects: async () =>
      (await Promise.all(kinds.map((kind) => env.client.list(kind, { namespace: 'team' })))).flatMap(({ items }) => items),
    unblock: () => void (blocks = false),
  }
}

test.each<[string, () => Promise<unknown>]>([
  [
    'foreground deletion',
    () => env.client.delete(Cluster, { namespace: 'team', name: 'demo' }, { propagationPolicy: 'Foreground' }),
  ],
  ['deletion of the namespace', () => env.client.delete(Namespace, { name: 'team' })],
])('%s does not delete dependents of the Cluster until the hook allows it', async (_, destroy) => {
  const { objects, unblock } = await aGuardedCluster()
  const objectsBefore = await objects()
  expect(objectsBefore.length).toBeGreaterThanOrEqual(7)

  await destroy()
  await env.advance(seconds(60))
  const during = await objects()
  expect(during.map(({ metadata }) => metadata.name)).toEqual(objectsBefore.map(({ metadata }) => metadata.name))
  expect(during.filter(({ metadata }) => metadata.deletionTimestamp !== undefined)).toEqual([])

  unblock()
  await env.advance(seconds(120))
  expect(await objects()).toEqual([])
})

test('a Machine that a user deletes while the hook blocks is deleted', async () => {
  await aGuardedCluster()
  await env.client.delete(Cluster, { namespace: 'team', name: 'demo' }, { propagationPolicy: 'Foreground' })
  await env.advance(seconds(30))
  const workers = async () => {
    const { items } = await env.client.list(Machine, { namespace: 'team', labelSelector: '!cluster.x-k8s.io/control-plane' })
    return items.map(({ metadata }) => metadata.name)
  }
  const [worker] = await workers()
  await env.client.delete(Machine, { namespace: 'team', name: worker! })
  await env.advance(seconds(120))
  expect(await workers()).not.toContain(worker)
})
