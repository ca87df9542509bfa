/** Tests Clusters whose workers an extension updates in place, with all controllers. */
import {
  type CanUpdateMachineSet,
  Cluster,
  Machine,
  MachineDeployment,
  MachineSet,
  type RequestOf,
  UpdateInProgressAnnotation,
} from '@capstan/api'
import { Event, Node, seconds, VirtualClock } from '@capstan/kube'
import { memoryStores } from '@capstan/lab'
import { LocalBootstrapConfig, LocalMachine } from '@capstan/local'
import { afterEach, describe, expect, test } from 'vitest'
import { conditionText } from './core-env.ts'
import { createFrom } from './manifests.ts'
import { mortalStores, type MortalStores } from './mortal-stores.ts'
import { stopsOf } from './stops.ts'
import { type ManagementEnv, managementEnv, type ManagementEnvOptions } from './management-env.ts'
import { type HookScript, scriptedRuntime } from './scripted-runtime.ts'

let env: ManagementEnv
afterEach(() => env.close())

const key = { namespace: 'default', name: 'demo' }
const demo = new URL('../../lab/demo/', import.meta.url)

/**
 * An extension whose patches cover changes of the version. For each Machine, the first call of UpdateMachine starts the update, and the
 * second completes it.
 */
const updatesVersions: HookScript = {
  CanUpdateMachineSet({ request }) {
    const { desired } = request as unknown as RequestOf<typeof CanUpdateMachineSet>
    const { version } = desired.machineSet.spec.template.spec
    const operations = [{ op: 'replace', path: '/spec/template/spec/version', value: version }]
    return { response: { machineSetPatch: { patchType: 'JSONPatch', patch: btoa(JSON.stringify(operations)) } } }
  },
  UpdateMachine: ({ nth }) => (nth === 1 ? { wait: 5, message: 'draining' } : undefined),
}

const withoutSurge = { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } }

/** Creates the demo Cluster. Its only workers are the three of the MachineDeployment `steady` (maxSurge: 0, maxUnavailable: 1). */
async function aRunningCluster(script: HookScript, stores?: ManagementEnvOptions['stores']): Promise<void> {
  env = await managementEnv({ runtime: scriptedRuntime(script), ...(stores ? { stores } : {}) })
  await createFrom(env.client, new URL('class.yaml', demo))
  await env.settle()
  await createFrom(env.client, new URL('cluster.yaml', demo))
  const machineDeployments = [{ class: 'worker', name: 'steady', replicas: 3, rollout: withoutSurge }]
  await change({ workers: { machineDeployments, machinePools: null } })
  await env.advance(seconds(60))
  env.story()
}

const change = (topology: object) => env.client.patch(Cluster, key, { type: 'merge', body: { spec: { topology } } })
const workers = async () =>
  (await env.client.list(Machine, { namespace: 'default', labelSelector: 'topology.cluster.x-k8s.io/deployment-name=steady' }))
    .items
const nodes = async () =>
  Promise.all(
    (await workers()).map(async ({ metadata, status }) => {
      const node = await env.management.workloads.clientFor(key)!.get(Node, { name: status!.nodeRef!.name })
      return `${metadata.name} ${node.metadata.uid} ${node.status?.nodeInfo?.kubeletVersion}`
    }),
  )

test('an upgrade keeps workers and their Nodes', async () => {
  await aRunningCluster(updatesVersions)
  const nodesBefore = await nodes()
  expect(nodesBefore).toHaveLength(3)
  await change({ version: 'v1.36.1' })
  await env.advance(seconds(120))
  expect(env.story()).toMatchInlineSnapshot(`
    "  60.0  Cluster default/demo: upgrade from v1.36.0 to v1.36.1 requested
      60.0  Machine default/demo-control-plane-1: Pending
      60.0  Machine default/demo-control-plane-1: Provisioning
      60.5  Machine default/demo-control-plane-1: Provisioned
      60.8  Machine default/demo-control-plane-1: Running (Node demo-control-plane-1, Kubernetes v1.36.1)
      60.8  Machine default/demo-control-plane-2: Deleting
      60.8  Machine default/demo-control-plane-2: deleted
      60.8  Machine default/demo-steady-2: Updating
      60.8  Machine default/demo-steady-2: UpdateMachine called on scripted.test: wait 5 s (draining)
      60.8  MachineSet default/demo-steady-1: CanUpdateMachineSet called on scripted.test: proceed
      65.8  Machine default/demo-steady-2: UpdateMachine called on scripted.test: proceed
      65.8  Machine default/demo-steady-2: Running (Node demo-steady-2, Kubernetes v1.36.1)
      65.8  Machine default/demo-steady-3: Updating
      65.8  Machine default/demo-steady-3: UpdateMachine called on scripted.test: wait 5 s (draining)
      70.8  Machine default/demo-steady-3: UpdateMachine called on scripted.test: proceed
      70.8  Machine default/demo-steady-3: Running (Node demo-steady-3, Kubernetes v1.36.1)
      70.8  Machine default/demo-steady-4: Updating
      70.8  Machine default/demo-steady-4: UpdateMachine called on scripted.test: wait 5 s (draining)
      75.8  Cluster default/demo: upgraded to v1.36.1
      75.8  Machine default/demo-steady-4: UpdateMachine called on scripted.test: proceed
      75.8  Machine default/demo-steady-4: Running (Node demo-steady-4, Kubernetes v1.36.1)"
  `)
  expect(await nodes()).toEqual(nodesBefore.map((line) => line.replace('v1.36.0', 'v1.36.1')))
  const sets = (await env.client.list(MachineSet, { namespace: 'default' })).items
  expect(sets.map(({ spec }) => spec.template.spec.version)).toEqual(['v1.36.1'])
  const machines = await workers()
  expect(machines.map(({ spec }) => spec.version)).toEqual(['v1.36.1', 'v1.36.1', 'v1.36.1'])
  expect(env.management.manager.waiting()).toEqual([])
})

/** Like `updatesVersions`, but also covers all other changes of the Machine spec, and those of the infrastructure template. */
const updatesAll: HookScript = {
  ...updatesVersions,
  CanUpdateMachineSet({ request }) {
    const { desired } = request as unknown as RequestOf<typeof CanUpdateMachineSet>
    const patch = (object: object) => ({ patchType: 'JSONMergePatch', patch: btoa(JSON.stringify(object)) })
    const { spec } = desired.infrastructureMachineTemplate as unknown as { spec: object }
    return {
      response: {
        machineSetPatch: patch({ spec: { template: { spec: desired.machineSet.spec.template.spec } } }),
        infrastructureMachineTemplatePatch: patch({ spec }),
      },
    }
  },
}

test('a changed variable is applied to the infrastructure of existing workers', async () => {
  await aRunningCluster(updatesAll)
  const nodesBefore = await nodes()
  await change({ variables: [{ name: 'workerNodeDelay', value: '777ms' }] })
  await env.advance(seconds(120))
  expect(await nodes()).toEqual(nodesBefore)
  for (const { metadata, spec } of await workers()) {
    const infrastructure = await env.client.get(LocalMachine, { namespace: 'default', name: spec.infrastructureRef.name })
    expect(infrastructure.spec!.simulated!.nodeDelay).toBe('777ms')
    expect(infrastructure.spec!.providerID, 'the provider ID is kept').toBe(spec.providerID)
    expect(metadata.annotations ?? {}).not.toHaveProperty(UpdateInProgressAnnotation)
  }
})

test('workers are replaced when the patches of the extension do not cover all changes, and an Event has the reason', async () => {
  await aRunningCluster(updatesVersions)
  const namesBefore = (await workers()).map(({ metadata }) => metadata.name)
  await change({ version: 'v1.36.1', variables: [{ name: 'workerNodeDelay', value: '777ms' }] })
  await env.advance(seconds(120))
  const workersAfter = await workers()
  expect(workersAfter.map(({ spec }) => spec.version)).toEqual(['v1.36.1', 'v1.36.1', 'v1.36.1'])
  expect(workersAfter.filter(({ metadata }) => namesBefore.includes(metadata.name))).toEqual([])
  const { items: events } = await env.client.list(Event, { namespace: 'default' })
  const replacementEvent = events.find(({ reason }) => reason === 'InPlaceUpdateNotPossible')
  expect(replacementEvent?.involvedObject).toMatchObject({ kind: 'MachineDeployment', name: 'demo-steady' })
  expect(replacementEvent?.message).toMatch(
    /are replaced, scripted\.test cannot update them in place: LocalMachineTemplate cannot be updated in-place: spec\.template\.spec\.simulated\.nodeDelay$/,
  )
})

test('a worker whose update fails blocks the updates of other workers; a user can delete its Machine, which is then replaced', async () => {
  let isFull = true
  const failing: HookScript = {
    ...updatesVersions,
    UpdateMachine() {
      if (isFull) throw new Error('the disk is full')
      return undefined
    },
  }
  await aRunningCluster(failing)
  const namesBefore = (await workers()).map(({ metadata }) => metadata.name)
  await change({ version: 'v1.36.1' })
  await env.advance(seconds(300))
  const updatingMachines = (await workers()).filter(
    ({ metadata }) => metadata.annotations?.[UpdateInProgressAnnotation] !== undefined,
  )
  expect(updatingMachines).toHaveLength(1)
  expect(conditionText(updatingMachines[0]!, 'Updating')).toBe(
    'True InPlaceUpdateFailed: UpdateMachine hook failed: please check controller logs for errors',
  )
  const deployment = () => env.client.get(MachineDeployment, { namespace: 'default', name: 'demo-steady' })
  expect((await deployment()).status).toMatchObject({ replicas: 3, availableReplicas: 2, upToDateReplicas: 0 })
  expect(conditionText(await deployment(), 'Available')).toBe('True Available')

  // A user can delete the Machine instead of waiting. The new MachineSet then creates another Machine.
  await env.client.delete(Machine, { namespace: 'default', name: updatingMachines[0]!.metadata.name })
  isFull = false
  await env.advance(seconds(300))
  expect((await deployment()).status).toMatchObject({ replicas: 3, availableReplicas: 3, upToDateReplicas: 3 })
  const namesAfter = (await workers()).map(({ metadata }) => metadata.name)
  expect(namesAfter.filter((name) => namesBefore.includes(name))).toEqual(
    namesBefore.filter((name) => name !== updatingMachines[0]!.metadata.name),
  )
})

test('a Cluster that is deleted during an update leaves no MachineSets, Machines or provider objects of Machines', async () => {
  await aRunningCluster({ ...updatesVersions, UpdateMachine: () => ({ wait: 30 }) })
  await change({ version: 'v1.36.1' })
  await env.advance(seconds(20))
  await env.client.delete(Cluster, key)
  await env.advance(seconds(60))
  for (const kind of [Cluster, MachineSet, Machine, LocalMachine, LocalBootstrapConfig]) {
    expect((await env.client.list<any>(kind, { namespace: 'default' })).items).toEqual([])
  }
})

describe('an in-place upgrade', async () => {
  /**
   * Runs the upgrade. If the process makes `stopAfter` commits, stops it immediately after the last of these, and starts the next process.
   * Returns the number of commits of the first process, whether the Machines have the same names as before, the versions of their Nodes, and
   * remaining annotations of the update.
   */
  async function upgrade(stopAfter = Number.POSITIVE_INFINITY): Promise<{ commits: number; result: object }> {
    const base = memoryStores()
    await aRunningCluster(updatesVersions, base)
    const namesBefore = (await workers()).map(({ metadata }) => metadata.name)
    await env.close()

    const stores = mortalStores(base, stopAfter)
    const whileAlive = <T>(work: Promise<T>) => Promise.race([work, stores.death])
    const start = (view: MortalStores, clock: VirtualClock) =>
      managementEnv({ stores: view, clock, runtime: scriptedRuntime(updatesVersions) })
    const { clock } = env
    const started = await whileAlive(start(stores, clock))
    if (started) {
      env = started
      await whileAlive(change({ version: 'v1.36.1' }))
      if (!stores.isDead) await whileAlive(env.advance(seconds(90)))
    }
    if (stores.isDead) {
      stores.rejectPending()
      if (started) await env.close()
      env = await start(mortalStores(base), new VirtualClock(clock.now()))
      await change({ version: 'v1.36.1' })
      await env.advance(seconds(120))
    }
    const machines = await workers()
    const annotations = machines
      .flatMap(({ metadata }) => Object.keys(metadata.annotations ?? {}))
      .filter((name) => /place|hooks/.test(name))
    const names = machines.map(({ metadata }) => metadata.name)
    const versions = (await nodes()).map((line) => line.split(' ')[2])
    return { commits: stores.commits, result: { isSame: names.join() === namesBefore.join(), versions, annotations } }
  }

  const { commits, result: expected } = await upgrade()
  await env.close()
  test('keeps the Machines and leaves no annotations of the update', () => {
    expect(expected).toEqual({ isSame: true, versions: ['v1.36.1', 'v1.36.1', 'v1.36.1'], annotations: [] })
  })

  test.each(stopsOf(commits, 4))(
    'has the same result when the process is stopped after write %i and restarted',
    async (stop) => {
      expect((await upgrade(stop)).result).toEqual(expected)
    },
    60_000,
  )
})
