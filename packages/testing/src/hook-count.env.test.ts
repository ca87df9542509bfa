/** Counts hook calls during the lifecycle of Clusters: each lifecycle hook must be called once for each event, as in `docs/reference/hooks.md`. */
import { Cluster, ClusterClass } from '@capstan/api'
import { seconds, VirtualClock } from '@capstan/kube'
import { memoryStores } from '@capstan/lab'
import { expect, test } from 'vitest'
import { createFrom } from './manifests.ts'
import { type ManagementEnv, managementEnv } from './management-env.ts'
import { scriptedRuntime } from './scripted-runtime.ts'

const sixHooks = [
  'BeforeClusterCreate',
  'AfterControlPlaneInitialized',
  'BeforeClusterUpgrade',
  'AfterControlPlaneUpgrade',
  'AfterClusterUpgrade',
  'BeforeClusterDelete',
]
const names = ['a', 'b', 'c', 'd']
const key = (name: string) => ({ namespace: 'default', name })
const demo = new URL('../../lab/demo/', import.meta.url)

const worker = (name: string) => ({ class: 'worker', name, replicas: 1 })
const topology = {
  classRef: { name: 'demo' },
  version: 'v1.36.0',
  controlPlane: { replicas: 1 },
  workers: { machineDeployments: [worker('steady')] },
}

/** Actions on the Clusters and their class. The management cluster restarts after each action. */
const actions: readonly ((env: ManagementEnv) => Promise<unknown>)[] = [
  ({ client }) => Promise.all(names.map((name) => client.create(Cluster, { metadata: key(name), spec: { topology } }))),
  (env) => patchAll(env, { metadata: { labels: { team: 'x' } } }),
  (env) => patchAll(env, { spec: { topology: { workers: { machineDeployments: [{ ...worker('steady'), replicas: 2 }] } } } }),
  ({ client }) =>
    client.patch(ClusterClass, key('demo'), {
      type: 'merge',
      body: { spec: { controlPlane: { metadata: { labels: { tier: 'gold' } } } } },
    }),
  (env) => patchAll(env, { spec: { topology: { version: 'v1.36.1' } } }),
  ({ client }) => Promise.all(names.map((name) => client.delete(Cluster, key(name)))),
]
const patchAll = ({ client }: ManagementEnv, body: object) =>
  Promise.all(names.map((name) => client.patch(Cluster, key(name), { type: 'merge', body })))

test('core calls each of six hooks once for each Cluster that is created, upgraded and deleted, despite restarts', async () => {
  const runtime = scriptedRuntime(Object.fromEntries(sixHooks.map((hook) => [hook, () => undefined])))
  const stores = memoryStores()
  const calls: string[] = []
  let clock = new VirtualClock()
  let env = await managementEnv({ runtime, stores, clock })
  await createFrom(env.client, new URL('class.yaml', demo))
  for (const act of actions) {
    await act(env)
    await env.advance(seconds(60))
    calls.push(...env.hooks.map(({ hook, cluster }) => `${cluster} ${hook}`))
    await env.close()
    clock = new VirtualClock(clock.now())
    env = await managementEnv({ runtime, stores, clock })
  }
  expect((await env.client.list(Cluster)).items).toEqual([])
  await env.close()
  const expectedCalls = names.flatMap((name) => sixHooks.map((hook) => `default/${name} ${hook}`))
  expect(calls.sort()).toEqual(expectedCalls.sort())
})
