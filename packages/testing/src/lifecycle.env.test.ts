import { Cluster } from '@capstan/api'
import { seconds, VirtualClock } from '@capstan/kube'
import { memoryStores } from '@capstan/lab'
import { expect, test } from 'vitest'
import { createFrom } from './manifests.ts'
import { overHttps } from './over-https.ts'
import type { ManagementEnv } from './management-env.ts'
import { managementEnv } from './management-env.ts'
import { scriptedRuntime } from './scripted-runtime.ts'

const key = { namespace: 'default', name: 'demo' }

/** Returns a runtime client with handlers for six lifecycle hooks; three of the handlers block once. */
const runtime = () =>
  scriptedRuntime({
    BeforeClusterCreate: ({ nth }) => (nth === 1 ? { wait: 2, message: 'warming up' } : undefined),
    AfterControlPlaneInitialized: () => undefined,
    BeforeClusterUpgrade: () => undefined,
    AfterControlPlaneUpgrade: ({ nth }) => (nth === 1 ? { wait: 5, message: 'checking the control plane' } : undefined),
    AfterClusterUpgrade: () => undefined,
    BeforeClusterDelete: ({ nth }) => (nth === 1 ? { wait: 3, message: 'backing up' } : undefined),
  })

/** Creates the demo, scales, upgrades and deletes it. */
async function runLifecycle(env: ManagementEnv): Promise<void> {
  const demo = new URL('../../lab/demo/', import.meta.url)
  await createFrom(env.client, new URL('class.yaml', demo))
  await env.settle()
  await createFrom(env.client, new URL('cluster.yaml', demo))
  await env.advance(seconds(30))
  env.report('--- scale')
  const steady = '/spec/topology/workers/machineDeployments/0'
  await env.client.patch(Cluster, key, {
    type: 'json',
    operations: [
      { op: 'replace', path: `${steady}/replicas`, value: 2 },
      // By default, the Machine that is deleted first depends on the random names of the Machines.
      { op: 'add', path: `${steady}/deletion`, value: { order: 'Oldest' } },
      // Scales to zero, because the Machine that is deleted first of two equally old ones depends on their random names.
      { op: 'replace', path: '/spec/topology/workers/machinePools/0/replicas', value: 0 },
    ],
  })
  await env.advance(seconds(30))
  env.report('--- upgrade')
  await env.client.patch(Cluster, key, { type: 'merge', body: { spec: { topology: { version: 'v1.36.1' } } } })
  await env.advance(seconds(120))
  env.report('--- delete')
  await env.client.delete(Cluster, key)
  await env.advance(seconds(60))
}

test('a cluster is created, scaled, upgraded and deleted', async () => {
  const env = await managementEnv({ runtime: runtime() })
  await runLifecycle(env)
  expect(env.story()).toMatchInlineSnapshot(`
    "   0.0  Cluster default/demo: created (1 control plane machine, 4 workers, Kubernetes v1.36.0)
       0.0  Cluster default/demo: BeforeClusterCreate called on scripted.test: wait 2 s (warming up)
       0.0  ClusterClass default/demo: accepted
       2.0  Cluster default/demo: BeforeClusterCreate called on scripted.test: proceed
       2.5  Cluster default/demo: infrastructure provisioned, endpoint 127.0.0.1:6443
       2.5  Machine default/demo-control-plane-1: Pending
       2.5  Machine default/demo-control-plane-1: Provisioning
       2.5  Machine default/demo-elastic-1: Pending
       2.5  Machine default/demo-steady-1: Pending
       3.0  Machine default/demo-control-plane-1: Provisioned
       3.3  Machine default/demo-control-plane-1: Running (Node demo-control-plane-1, Kubernetes v1.36.0)
       3.5  Cluster default/demo: control plane initialized
       3.5  Cluster default/demo: AfterControlPlaneInitialized called on scripted.test: proceed
       3.5  Machine default/demo-elastic-1: Provisioning
       3.5  Machine default/demo-pool-1: Pending
       3.5  Machine default/demo-pool-2: Pending
       3.5  Machine default/demo-steady-1: Provisioning
       4.0  Machine default/demo-elastic-1: Provisioned
       4.0  Machine default/demo-pool-1: Provisioned
       4.0  Machine default/demo-pool-2: Provisioned
       4.0  Machine default/demo-steady-1: Provisioned
       4.3  Cluster default/demo: Available after 4.3 s
       4.3  Machine default/demo-elastic-1: Running (Node demo-elastic-1, Kubernetes v1.36.0)
       4.3  Machine default/demo-pool-1: Running (Node demo-pool-1, Kubernetes v1.36.0)
       4.3  Machine default/demo-pool-2: Running (Node demo-pool-2, Kubernetes v1.36.0)
       4.3  Machine default/demo-steady-1: Running (Node demo-steady-1, Kubernetes v1.36.0)
      30.0  --- scale
      30.0  Machine default/demo-pool-1: Deleting
      30.0  Machine default/demo-pool-1: deleted
      30.0  Machine default/demo-pool-2: Deleting
      30.0  Machine default/demo-pool-2: deleted
      30.0  Machine default/demo-steady-2: Pending
      30.0  Machine default/demo-steady-2: Provisioning
      30.0  MachineDeployment default/demo-steady: scaling from 1 to 2
      30.0  MachinePool default/demo-pool: scaling from 2 to 0
      30.5  Machine default/demo-steady-2: Provisioned
      30.8  Cluster default/demo: Available
      30.8  Machine default/demo-steady-2: Running (Node demo-steady-2, Kubernetes v1.36.0)
      60.0  --- upgrade
      60.0  Cluster default/demo: upgrade from v1.36.0 to v1.36.1 requested
      60.0  Cluster default/demo: BeforeClusterUpgrade called on scripted.test: proceed
      60.0  Machine default/demo-control-plane-2: Pending
      60.0  Machine default/demo-control-plane-2: Provisioning
      60.5  Machine default/demo-control-plane-2: Provisioned
      60.8  Cluster default/demo: AfterControlPlaneUpgrade called on scripted.test: wait 5 s (checking the control plane)
      60.8  Machine default/demo-control-plane-1: Deleting
      60.8  Machine default/demo-control-plane-1: deleted
      60.8  Machine default/demo-control-plane-2: Running (Node demo-control-plane-2, Kubernetes v1.36.1)
      65.8  Cluster default/demo: AfterControlPlaneUpgrade called on scripted.test: proceed
      65.8  Machine default/demo-steady-3: Pending
      65.8  Machine default/demo-steady-3: Provisioning
      66.3  Machine default/demo-steady-3: Provisioned
      66.6  Machine default/demo-steady-1: Deleting
      66.6  Machine default/demo-steady-1: deleted
      66.6  Machine default/demo-steady-3: Running (Node demo-steady-3, Kubernetes v1.36.1)
      66.6  Machine default/demo-steady-4: Pending
      66.6  Machine default/demo-steady-4: Provisioning
      67.1  Machine default/demo-steady-4: Provisioned
      67.4  Machine default/demo-elastic-2: Pending
      67.4  Machine default/demo-elastic-2: Provisioning
      67.4  Machine default/demo-steady-2: Deleting
      67.4  Machine default/demo-steady-2: deleted
      67.4  Machine default/demo-steady-4: Running (Node demo-steady-4, Kubernetes v1.36.1)
      67.9  Machine default/demo-elastic-2: Provisioned
      68.2  Cluster default/demo: AfterClusterUpgrade called on scripted.test: proceed
      68.2  Cluster default/demo: upgraded to v1.36.1
      68.2  Machine default/demo-elastic-1: Deleting
      68.2  Machine default/demo-elastic-1: deleted
      68.2  Machine default/demo-elastic-2: Running (Node demo-elastic-2, Kubernetes v1.36.1)
     180.0  --- delete
     180.0  Cluster default/demo: deletion requested
     180.0  Cluster default/demo: BeforeClusterDelete called on scripted.test: wait 3 s (backing up)
     183.0  Cluster default/demo: BeforeClusterDelete called on scripted.test: proceed
     183.0  Cluster default/demo: deleted
     183.0  Machine default/demo-control-plane-2: Deleting
     183.0  Machine default/demo-control-plane-2: deleted
     183.0  Machine default/demo-elastic-2: Deleting
     183.0  Machine default/demo-elastic-2: deleted
     183.0  Machine default/demo-steady-3: Deleting
     183.0  Machine default/demo-steady-3: deleted
     183.0  Machine default/demo-steady-4: Deleting
     183.0  Machine default/demo-steady-4: deleted"
  `)
  expect(env.management.manager.waiting()).toEqual([])
  await env.close()
})

test('the lifecycle is the same over HTTPS', async () => {
  const https = overHttps()
  const linesOf = async (env: ManagementEnv) => {
    await runLifecycle(env)
    await env.close()
    return withoutTimes(env.story())
  }
  // With its own stores, this environment stays in this process even if the environment below uses a real API server.
  const inProcess = await linesOf(await managementEnv({ runtime: runtime(), stores: memoryStores() }))
  const overSocket = await linesOf(await managementEnv({ runtime: runtime(), reach: (server) => https.reach(server) }))
  await https.close()
  expect(overSocket).toEqual(inProcess)
})

test('a restarted management cluster finds its Cluster Available, and does not change it', async () => {
  const demo = new URL('../../lab/demo/', import.meta.url)
  const stores = memoryStores()
  const first = await managementEnv({ stores, runtime: runtime() })
  await createFrom(first.client, new URL('class.yaml', demo))
  await createFrom(first.client, new URL('cluster.yaml', demo))
  await first.advance(seconds(30))
  await first.close()

  const managementStore = await stores.store('management')
  const { revision } = managementStore
  const second = await managementEnv({ stores, runtime: runtime(), clock: new VirtualClock(first.clock.now()) })
  await second.advance(seconds(30))
  const changes = managementStore.since(revision, 'clusters.cluster.x-k8s.io')
  expect(changes).toEqual({ kind: 'changes', changes: [] })
  expect(second.story()).toContain('Cluster default/demo: Available')
  await second.close()
})

/** Removes times, and sorts the lines: over HTTPS the number of reconciles of a key differs, and with it the delay by rate limiting. */
const withoutTimes = (story: string): string[] =>
  story
    .split('\n')
    .map((line) => line.slice('   0.0  '.length))
    .sort()
