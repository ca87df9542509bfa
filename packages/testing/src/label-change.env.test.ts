/**
 * Tests a provider that changes the contract labels of its CRDs while Clusters exist: the labels name a second version of the kinds, or a
 * later contract.
 */
import { Cluster, ClusterClass, Machine, MachineDeployment, MachineSet } from '@capstan/api'
import { CustomResourceDefinition, type DeclaredKind, getCondition, type Kind, resourceName, seconds } from '@capstan/kube'
import {
  LocalBootstrapConfig,
  LocalBootstrapConfigTemplate,
  LocalControlPlane,
  localKinds,
  LocalMachine,
  LocalMachineTemplate,
} from '@capstan/local'
import { afterEach, expect, test } from 'vitest'
import { coreEnv } from './core-env.ts'
import { aMachine } from './core-objects.ts'
import { DevConfig, DevMachine } from './dev-provider.ts'
import { applyDemo } from './manifests.ts'
import { type ManagementEnv, managementEnv } from './management-env.ts'
import { scriptedRuntime } from './scripted-runtime.ts'

let env: ManagementEnv
const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

const demo = { namespace: 'default', name: 'demo' }

/** Returns the kind, name and UID of each MachineSet, Machine and control plane, and of each provider object and template of Machines. */
async function objectIdentities(): Promise<string[]> {
  const kinds = [
    MachineSet,
    Machine,
    LocalControlPlane,
    LocalMachine,
    LocalBootstrapConfig,
    LocalMachineTemplate,
    LocalBootstrapConfigTemplate,
  ] as unknown as Kind[]
  const lists = await Promise.all(
    kinds.map(async (kind) =>
      (await env.client.list(kind)).items.map(({ metadata: { name, uid } }) => `${kind.kind} ${name} ${uid}`),
    ),
  )
  return lists.flat().toSorted()
}

/** Adds version v1beta1, with the schema of v1alpha1, to the CRDs of the local provider and to their label of contract v1beta2. */
async function serveSecondVersion(): Promise<void> {
  for (const kind of localKinds as readonly DeclaredKind[]) {
    const key = { name: resourceName(kind) }
    const [version] = (await env.client.get(CustomResourceDefinition, key)).spec.versions
    const body = {
      metadata: { labels: { 'cluster.x-k8s.io/v1beta2': 'v1alpha1_v1beta1' } },
      spec: { versions: [version, { ...version, name: 'v1beta1', storage: false }] },
    }
    await env.client.patch(CustomResourceDefinition, key, { type: 'merge', body })
  }
  // Makes the controllers reconcile the ClusterClass, the Cluster and the MachineDeployments again.
  const metadata = { annotations: { 'example.com/touched': '' } }
  for (const kind of [ClusterClass, Cluster] as unknown as Kind[]) {
    await env.client.patch(kind, demo, { type: 'merge', body: { metadata } })
  }
  for (const { metadata: deployment } of (await env.client.list(MachineDeployment)).items) {
    const key = { namespace: 'default', name: deployment.name }
    await env.client.patch(MachineDeployment, key, { type: 'merge', body: { metadata } })
  }
}

test('when the label names a new version, core reports it, replaces no object, and can still create Machines', async () => {
  env = await managementEnv({ runtime: scriptedRuntime({}) })
  closers.push(() => env.close())
  await applyDemo(env.client)
  await env.advance(seconds(30))
  const linesBefore = await objectIdentities()
  expect(linesBefore.filter((line) => line.startsWith('Machine '))).toHaveLength(5)

  await serveSecondVersion()
  await env.advance(seconds(120))
  expect(getCondition(await env.client.get(ClusterClass, demo), 'RefVersionsUpToDate')).toMatchObject({
    status: 'False',
    message: expect.stringContaining('LocalMachineTemplate demo-worker: current: v1alpha1, latest: v1beta1'),
  })
  expect(await objectIdentities()).toEqual(linesBefore)
  expect(getCondition(await env.client.get(Cluster, demo), 'TopologyReconciled')).toMatchObject({ status: 'True' })

  await env.client.patch(Cluster, demo, {
    type: 'json',
    operations: [{ op: 'replace', path: '/spec/topology/workers/machineDeployments/0/replicas', value: 2 }],
  })
  await env.advance(seconds(60))
  const linesAfter = await objectIdentities()
  expect(linesAfter).toEqual(expect.arrayContaining(linesBefore))
  const added = linesAfter.filter((line) => !linesBefore.includes(line)).map((line) => line.split(' ')[0])
  expect(added).toEqual(['LocalBootstrapConfig', 'LocalMachine', 'Machine'])
  expect((await env.client.list(Machine)).items.map(({ status }) => status?.phase)).toEqual(Array(6).fill('Running'))
})

test('a provider that changes to contract v1beta2 keeps its Machines, and core no longer reads the fields of contract v1beta1', async () => {
  const core = await coreEnv({ contract: 'v1beta1' })
  closers.push(() => core.close())
  await core.provisionCluster()
  await core.provisionMachine('m1')
  const machineBefore = await core.get(Machine, 'm1')
  expect(machineBefore.status?.phase).toBe('Running')

  for (const kind of [DevMachine, DevConfig]) {
    const labels = { 'cluster.x-k8s.io/v1beta1': 'v1beta1', 'cluster.x-k8s.io/v1beta2': 'v1beta1' }
    const key = { name: resourceName(kind) }
    await core.client.patch(CustomResourceDefinition, key, { type: 'merge', body: { metadata: { labels } } })
  }
  await core.patch(Machine, 'm1', { metadata: { annotations: { 'example.com/touched': '' } } })
  await core.advance(seconds(60))
  const machineAfter = await core.get(Machine, 'm1')
  expect(machineAfter.spec).toEqual(machineBefore.spec)
  expect(machineAfter.status?.phase).toBe('Running')
  expect(machineAfter.status?.conditions).toEqual(machineBefore.status?.conditions)

  // For a second Machine, the test's client still converts `provisioned` to `status.ready`, which core no longer reads.
  await core.create(DevMachine, 'm2')
  await core.create(DevConfig, 'm2')
  await core.create(Machine, 'm2', { spec: aMachine({ metadata: { name: 'm2' } }).spec })
  await core.patch(DevMachine, 'm2', { spec: { providerID: 'dev:///m2' }, status: { initialization: { provisioned: true } } })
  expect((await core.get(Machine, 'm2')).spec.providerID).toBeUndefined()
})
