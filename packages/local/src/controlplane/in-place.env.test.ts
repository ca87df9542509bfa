/**
 * Tests in-place updates of control plane Machines, in a whole management cluster on the virtual clock. `npm run interop -- old-contract`
 * runs this file with contract v1beta1.
 */
import {
  CanUpdateMachine,
  Cluster,
  DeleteMachineAnnotation,
  ExtensionConfig,
  Machine,
  pluralOf,
  type RequestOf,
  UpdateMachine,
} from '@capstan/api'
import { installKinds } from '@capstan/controller'
import type { RuntimeClient } from '@capstan/extension'
import { defineExtension, extensionServer, holdFor, inPlaceUpdates, inProcess, on, proceedNow } from '@capstan/extension'
import {
  defineKind,
  Event,
  Node,
  s,
  seconds,
  seededRandom,
  StatusError,
  timestamp,
  type Transport,
  VirtualClock,
  withSend,
} from '@capstan/kube'
import { memoryStores } from '@capstan/lab'
import {
  conditionText,
  type HookScript,
  mortalStores,
  managementEnv,
  type ManagementEnv,
  type ManagementEnvOptions,
  scriptedRuntime,
  stopsOf,
} from '@capstan/testing'
import { afterEach, describe, expect, test } from 'vitest'
import { LocalBootstrapConfig } from '../kinds/local-bootstrap-config.ts'
import { LocalCluster } from '../kinds/local-cluster.ts'
import { LocalControlPlane } from '../kinds/local-control-plane.ts'
import { LocalMachine, LocalMachineTemplate } from '../kinds/local-machine.ts'

type Objects = RequestOf<typeof CanUpdateMachine>['current']
type ObjectName = keyof Objects
type UpdateRequest = RequestOf<typeof CanUpdateMachine>

const key = { namespace: 'default', name: 'demo' }
const named = (name: string) => ({ metadata: { name, namespace: 'default' } })
const ref = (apiGroup: string, kind: string, name: string) => ({ apiGroup, kind, name })
const templateRef = (name: string) => ref('infrastructure.capstan.dev', 'LocalMachineTemplate', name)

let env: ManagementEnv
afterEach(() => env.close())

/** Returns a response of CanUpdateMachine that covers all changes of `coveredObjects`, and no change of the other objects. */
function coveringResponse(request: object, ...coveredObjects: ObjectName[]) {
  const { desired } = request as UpdateRequest
  const patch = (objectName: ObjectName) => ({
    patchType: 'JSONPatch',
    patch: btoa(JSON.stringify([{ op: 'add', path: '/spec', value: (desired[objectName] as { spec?: unknown }).spec }])),
  })
  return { response: Object.fromEntries(coveredObjects.map((objectName) => [`${objectName}Patch`, patch(objectName)])) }
}
const allObjects: readonly ObjectName[] = ['machine', 'infrastructureMachine', 'bootstrapConfig']
const coversAll: HookScript = {
  CanUpdateMachine: ({ request }) => coveringResponse(request, ...allObjects),
  UpdateMachine: () => undefined,
}

interface Setup {
  readonly replicas?: number
  readonly maxSurge?: 0 | 1
  readonly management?: Partial<ManagementEnvOptions>
}

async function createControlPlane(script: HookScript | undefined, { replicas = 3, maxSurge = 0, management = {} }: Setup = {}) {
  env = await managementEnv({ ...(script && { runtime: scriptedRuntime(script) }), ...management })
  await create(replicas, maxSurge)
}

async function create(replicas: number, maxSurge: number) {
  const { client } = env
  await client.create(LocalMachineTemplate, {
    ...named('small'),
    spec: { template: { spec: { simulated: { nodeDelay: '1s' } } } },
  })
  await client.create(LocalCluster, named('demo'))
  await client.create(LocalControlPlane, {
    ...named('demo'),
    spec: {
      replicas,
      version: 'v1.35.0',
      machineTemplate: { spec: { infrastructureRef: templateRef('small') } },
      rollout: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge } } },
    },
  })
  await client.create(Cluster, {
    ...named('demo'),
    spec: {
      infrastructureRef: ref('infrastructure.capstan.dev', 'LocalCluster', 'demo'),
      controlPlaneRef: ref('controlplane.capstan.dev', 'LocalControlPlane', 'demo'),
    },
  })
  await env.advance(seconds(60))
}

const changeSpec = async (spec: object) => {
  await env.client.patch(LocalControlPlane, key, { type: 'merge', body: { spec } })
  await env.settle()
}
const upgrade = () => changeSpec({ version: 'v1.36.0' })
const machines = async () => (await env.client.list(Machine, { namespace: 'default' })).items
const names = async () => (await machines()).map(({ metadata }) => metadata.name).sort()
const versions = async () => (await machines()).map(({ spec }) => spec.version ?? '')
const kubelets = async () => {
  const { items } = await env.management.workloads.clientFor(key)!.list(Node)
  return items.map(({ status }) => status?.nodeInfo?.kubeletVersion)
}
const condition = async (type: string) => conditionText(await env.client.get(LocalControlPlane, key), type)
const events = async (reason: string) =>
  (await env.client.list(Event, { namespace: 'default' })).items.filter((event) => event.reason === reason)
const calls = () => env.hooks.map(({ hook }) => hook)

test('an upgrade updates one Machine after another in place, with their Nodes', async () => {
  await createControlPlane({
    ...coversAll,
    UpdateMachine: ({ nth }) => (nth < 2 ? { wait: 10, message: 'installing' } : undefined),
  })
  const namesBefore = await names()
  await upgrade()

  // One Machine is updated at a time. Its Node keeps its version until the update is complete.
  expect((await versions()).filter((version) => version === 'v1.36.0')).toHaveLength(1)
  expect(await kubelets()).toEqual(['v1.35.0', 'v1.35.0', 'v1.35.0'])
  expect(calls()).toEqual(['CanUpdateMachine', 'UpdateMachine'])
  const updating = (await machines()).find(({ spec }) => spec.version === 'v1.36.0')!
  expect(updating.status?.phase).toBe('Updating')
  expect(conditionText(updating, 'UpToDate')).toBe('False Updating: * In-place update in progress: installing')
  expect(await condition('RollingOut')).toBe(
    'True RollingOut: Rolling out 3 not up-to-date replicas\n* Version v1.35.0, v1.36.0 required\n* In-place update in progress: installing',
  )
  expect((await env.client.get(LocalControlPlane, key)).status).toMatchObject({ upToDateReplicas: 0, version: 'v1.35.0' })

  await env.advance(seconds(60))
  expect(await names()).toEqual(namesBefore)
  expect(await versions()).toEqual(['v1.36.0', 'v1.36.0', 'v1.36.0'])
  expect(await kubelets()).toEqual(['v1.36.0', 'v1.36.0', 'v1.36.0'])
  expect(calls()).toEqual(namesBefore.flatMap(() => ['CanUpdateMachine', 'UpdateMachine', 'UpdateMachine']))
  expect(await condition('RollingOut')).toBe('False NotRollingOut')
  expect((await env.client.get(LocalControlPlane, key)).status).toMatchObject({
    upToDateReplicas: 3,
    readyReplicas: 3,
    versions: [{ version: 'v1.36.0', replicas: 3 }],
  })
  const started = await events('SuccessfulStartInPlaceUpdate')
  expect(started.map(({ message, type }) => `${type} ${message}`)).toEqual(
    namesBefore.map(() => 'Normal Machine starting in-place update'),
  )
  expect(started.map(({ involvedObject }) => involvedObject.name ?? '').sort()).toEqual(namesBefore)
})

test('a request contains current and desired objects that differ only in the fields to update', async () => {
  const requests: UpdateRequest[] = []
  await createControlPlane({
    ...coversAll,
    CanUpdateMachine({ request }) {
      requests.push(request as UpdateRequest)
      return coveringResponse(request, ...allObjects)
    },
  })
  await upgrade()
  const { current, desired } = requests[0]!
  expect(current.machine.spec).toMatchObject({ version: 'v1.35.0', providerID: expect.any(String) })
  expect(desired.machine).toEqual({ ...current.machine, spec: { ...current.machine.spec, version: 'v1.36.0' } })
  expect(desired.infrastructureMachine).toEqual(current.infrastructureMachine)
  expect(desired.infrastructureMachine).toMatchObject({ kind: 'LocalMachine', spec: { providerID: expect.any(String) } })
  expect(desired.bootstrapConfig).toEqual(current.bootstrapConfig)
  expect(desired.bootstrapConfig).toMatchObject({ kind: 'LocalBootstrapConfig', spec: {} })
})

test('infrastructure and bootstrap config get the new spec; infrastructure loses the fields that only its earlier template has', async () => {
  await createControlPlane(coversAll)
  const namesBefore = await names()
  const spec = { simulated: { deletionDelay: '1s' } }
  await env.client.create(LocalMachineTemplate, { ...named('large'), spec: { template: { spec } } })
  await changeSpec({
    machineTemplate: { spec: { infrastructureRef: templateRef('large') } },
    bootstrapConfigSpec: { nodeLabels: { a: 'b' } },
  })
  await env.advance(seconds(60))
  expect(await names()).toEqual(namesBefore)
  for (const name of namesBefore) {
    const machine = await env.client.get(LocalMachine, { namespace: 'default', name })
    expect(machine.spec).toEqual({ ...spec, providerID: `local:////default/${name}` })
    expect(machine.metadata.annotations).toMatchObject({ 'cluster.x-k8s.io/cloned-from-name': 'large' })
    expect((await env.client.get(LocalBootstrapConfig, { namespace: 'default', name })).spec).toEqual({ nodeLabels: { a: 'b' } })
  }
  expect(await condition('MachinesUpToDate')).toBe('True UpToDate')
  expect(calls().filter((hook) => hook === 'CanUpdateMachine')).toHaveLength(3)
})

test('with maxSurge 1, one Machine is replaced, and the two others are updated in place', async () => {
  await createControlPlane(coversAll, { maxSurge: 1 })
  const namesBefore = await names()
  await upgrade()
  await env.advance(seconds(120))
  const namesAfter = await names()
  expect(namesAfter).toHaveLength(3)
  expect(namesAfter.filter((name) => namesBefore.includes(name))).toHaveLength(2)
  expect(await kubelets()).toEqual(['v1.36.0', 'v1.36.0', 'v1.36.0'])
})

test.each([
  [
    'no change',
    [],
    'Machine cannot be updated in-place: spec.version; LocalMachine cannot be updated in-place: spec.simulated.nodeDelay',
  ],
  ['only the change of the Machine', ['machine'], 'LocalMachine cannot be updated in-place: spec.simulated.nodeDelay'],
] as const)('when %s is covered, Machines are replaced, and an event has the reason', async (_, coveredObjects, reasons) => {
  await createControlPlane({ ...coversAll, CanUpdateMachine: ({ request }) => coveringResponse(request, ...coveredObjects) })
  const namesBefore = await names()
  await env.client.create(LocalMachineTemplate, {
    ...named('slow'),
    spec: { template: { spec: { simulated: { nodeDelay: '2s' } } } },
  })
  await changeSpec({ version: 'v1.36.0', machineTemplate: { spec: { infrastructureRef: templateRef('slow') } } })
  await env.advance(seconds(180))
  const namesAfter = await names()
  expect(namesAfter).toHaveLength(3)
  expect(namesAfter.filter((name) => namesBefore.includes(name))).toEqual([])
  expect(await versions()).toEqual(['v1.36.0', 'v1.36.0', 'v1.36.0'])
  const recorded = await events('InPlaceUpdateNotPossible')
  expect(recorded.map(({ message }) => message ?? '').sort()).toEqual(
    namesBefore.map((name) => `Machine ${name} is replaced: ${reasons}`),
  )
  expect(recorded[0]!.involvedObject).toMatchObject({ kind: 'LocalControlPlane', name: 'demo' })
  expect(calls()).not.toContain('UpdateMachine')
})

test('without an extension, Machines are replaced, without an event InPlaceUpdateNotPossible', async () => {
  await createControlPlane({})
  const namesBefore = await names()
  await upgrade()
  await env.advance(seconds(120))
  expect((await names()).filter((name) => namesBefore.includes(name))).toEqual([])
  expect(await events('InPlaceUpdateNotPossible')).toEqual([])
})

test('a failing extension blocks the rollout, with an event, until it succeeds', async () => {
  let isBroken = true
  await createControlPlane({
    ...coversAll,
    CanUpdateMachine({ request }) {
      if (isBroken) throw new Error('no database')
      return coveringResponse(request, ...allObjects)
    },
  })
  const namesBefore = await names()
  await upgrade()
  await env.advance(seconds(30))
  expect(await names()).toEqual(namesBefore)
  expect(await versions()).toEqual(['v1.35.0', 'v1.35.0', 'v1.35.0'])
  const [failed] = await events('FailedCanUpdateMachine')
  expect(failed!.message).toMatch(/^failed to determine if Machine demo-\w+ can be updated in-place: no database$/)
  isBroken = false
  await env.advance(seconds(120))
  expect(await names()).toEqual(namesBefore)
  expect(await kubelets()).toEqual(['v1.36.0', 'v1.36.0', 'v1.36.0'])
})

test('two handlers of CanUpdateMachine block the rollout until one is removed', async () => {
  let handlers = ['a.x', 'b.y']
  let changed: (extensionConfig: string) => void = () => {}
  const runtime: RuntimeClient = {
    ...scriptedRuntime(coversAll),
    handlersFor: () => Promise.resolve(handlers),
    onChanged(listener) {
      const earlierListeners = changed
      changed = (name) => {
        earlierListeners(name)
        listener(name)
      }
    },
  }
  await createControlPlane(undefined, { management: { runtime } })
  const namesBefore = await names()
  await upgrade()
  await env.advance(seconds(30))
  expect(await names()).toEqual(namesBefore)
  expect((await events('FailedCanUpdateMachine'))[0]!.message).toMatch(
    /found multiple CanUpdateMachine hooks \(a\.x,b\.y\): only one hook is supported$/,
  )
  // Without the change of an extension, the next retry would be minutes later.
  await env.advance(seconds(300))
  handlers = ['a.x']
  changed('y')
  await env.advance(seconds(5))
  expect(await names()).toEqual(namesBefore)
  expect(await kubelets()).toEqual(['v1.36.0', 'v1.36.0', 'v1.36.0'])
})

test('no Machine is replaced before the registered extensions are known', async () => {
  let isReady = false
  const scripted = scriptedRuntime(coversAll)
  const runtime: RuntimeClient = {
    ...scripted,
    get ready() {
      return isReady
    },
  }
  await createControlPlane(undefined, { management: { runtime } })
  const namesBefore = await names()
  await upgrade()
  await env.advance(seconds(30))
  expect(await versions()).toEqual(['v1.35.0', 'v1.35.0', 'v1.35.0'])
  expect(await names()).toEqual(namesBefore)
  isReady = true
  await env.advance(seconds(60))
  expect(await names()).toEqual(namesBefore)
  expect(await kubelets()).toEqual(['v1.36.0', 'v1.36.0', 'v1.36.0'])
})

test.each([
  [
    'has another kind than the new template creates',
    async () => {
      const template = kindOf('OtherMachineTemplate')
      await installKinds(env.client, [kindOf('OtherMachine'), template], { clock: env.clock, random: seededRandom(1) })
      await env.client.create(template, { ...named('other'), spec: { template: { spec: {} } } } as never)
      await changeSpec({
        machineTemplate: { spec: { infrastructureRef: ref('infrastructure.capstan.dev', 'OtherMachineTemplate', 'other') } },
      })
    },
    'LocalMachine cannot be updated in-place: OtherMachine.infrastructure.capstan.dev is required',
  ],
  [
    'was not applied by this control plane',
    async () => {
      for (const { metadata } of (await env.client.list(LocalMachine, { namespace: 'default' })).items) {
        const body = { metadata: { managedFields: [{}] } }
        await env.client.patch(LocalMachine, { namespace: 'default', name: metadata.name }, { type: 'merge', body })
      }
      await upgrade()
    },
    /LocalMachine demo-\w+ was not applied by this control plane$/,
  ],
] as const)('a Machine whose infrastructure %s is not updated in place, and an event has the reason', async (_, act, reason) => {
  await createControlPlane(coversAll)
  await act()
  await env.advance(seconds(20))
  expect(calls()).toEqual([])
  const [recorded] = await events('InPlaceUpdateNotPossible')
  expect(recorded!.message).toMatch(reason)
})

test('no other Machine is changed while an update fails', async () => {
  let isFull = true
  await createControlPlane({
    ...coversAll,
    UpdateMachine() {
      if (isFull) throw new Error('disk full')
      return undefined
    },
  })
  const namesBefore = await names()
  await upgrade()
  await env.advance(seconds(30))
  expect((await versions()).sort()).toEqual(['v1.35.0', 'v1.35.0', 'v1.36.0'])
  const updating = (await machines()).find(({ spec }) => spec.version === 'v1.36.0')!
  const message = 'UpdateMachine hook failed: please check controller logs for errors'
  expect(conditionText(updating, 'Updating')).toBe(`True InPlaceUpdateFailed: ${message}`)
  expect(conditionText(updating, 'UpToDate')).toBe(`False Updating: * ${message}`)
  isFull = false
  await env.advance(seconds(120))
  expect(await names()).toEqual(namesBefore)
  expect(await kubelets()).toEqual(['v1.36.0', 'v1.36.0', 'v1.36.0'])
})

test('scaling waits for the Machine that is being updated, and the condition ScalingUp names this Machine', async () => {
  await createControlPlane({ ...coversAll, UpdateMachine: ({ nth }) => (nth < 2 ? { wait: 30 } : undefined) })
  await upgrade()
  const updating = (await machines()).find(({ spec }) => spec.version === 'v1.36.0')!.metadata.name
  await changeSpec({ replicas: 5 })
  await env.advance(seconds(10))
  expect(await names()).toHaveLength(3)
  expect(await condition('ScalingUp')).toBe(
    `True ScalingUp: Scaling up from 3 to 5 replicas is blocked because:\n* waiting for in-place update of Machine ${updating} to complete`,
  )
  await env.advance(seconds(300))
  expect(await names()).toHaveLength(5)
  expect(await kubelets()).toEqual(Array(5).fill('v1.36.0'))
})

test('a Machine that is deleted during its update is replaced', async () => {
  await createControlPlane({ ...coversAll, UpdateMachine: () => ({ wait: 3600 }) })
  await upgrade()
  const updating = (await machines()).find(({ spec }) => spec.version === 'v1.36.0')!.metadata.name
  await env.client.delete(Machine, { namespace: 'default', name: updating })
  await env.advance(seconds(60))
  const machinesAfter = await machines()
  expect(machinesAfter.map(({ metadata }) => metadata.name)).not.toContain(updating)
  // After the replacement, the next Machine is being updated.
  expect(machinesAfter.map(({ spec }) => spec.version ?? '').sort()).toEqual(['v1.35.0', 'v1.36.0', 'v1.36.0'])
})

test.each([
  ['that a user marked for deletion', { metadata: { annotations: { [DeleteMachineAnnotation]: '' } } }],
  ['that is to be remediated', { metadata: { annotations: { 'cluster.x-k8s.io/remediate-machine': '' } } }],
] as const)('a Machine %s is replaced, not updated', async (_, body) => {
  await createControlPlane(coversAll)
  const [oldest, ...otherMachines] = (await machines()).toSorted((a, b) =>
    a.metadata.creationTimestamp < b.metadata.creationTimestamp ? -1 : 1,
  )
  await env.client.patch(Machine, { namespace: 'default', name: oldest!.metadata.name }, { type: 'merge', body })
  await upgrade()
  await env.advance(seconds(120))
  const namesAfter = await names()
  expect(namesAfter).not.toContain(oldest!.metadata.name)
  expect(namesAfter).toEqual(expect.arrayContaining(otherMachines.map(({ metadata }) => metadata.name)))
})

test('all Machines are replaced, without a call of a hook, when rollout.after has passed', async () => {
  await createControlPlane(coversAll)
  const namesBefore = await names()
  await changeSpec({ rollout: { after: timestamp(env.clock.now() - 1000) } })
  await env.advance(seconds(180))
  expect((await names()).filter((name) => namesBefore.includes(name))).toEqual([])
  expect(calls()).toEqual([])
})

test('Machines are replaced when the API server rejects the dry run of their new infrastructure', async () => {
  const rejecting = (transport: Transport): Transport =>
    withSend(transport, async (request, signal) => {
      const spec = JSON.stringify((request.body as { spec?: unknown } | undefined)?.spec ?? {})
      const isChange = request.patchType === 'application/apply-patch+yaml' && request.options?.dryRun && spec.includes('"2s"')
      if (isChange) throw new StatusError('Forbidden', 'nodeDelay cannot be changed')
      return transport.send(request, signal)
    })
  await createControlPlane(coversAll, { management: { between: rejecting } })
  const namesBefore = await names()
  await env.client.create(LocalMachineTemplate, {
    ...named('slow'),
    spec: { template: { spec: { simulated: { nodeDelay: '2s' } } } },
  })
  await changeSpec({ machineTemplate: { spec: { infrastructureRef: templateRef('slow') } } })
  await env.advance(seconds(180))
  expect((await names()).filter((name) => namesBefore.includes(name))).toEqual([])
  const [recorded] = await events('InPlaceUpdateNotPossible')
  expect(recorded!.message).toMatch(
    /^Machine demo-\w+ is replaced: server side apply dry-run for desired InfraMachine failed: nodeDelay cannot be changed$/,
  )
  expect(calls()).toEqual([])
})

test('an extension that is discovered through its ExtensionConfig updates Machines in place, unless it does not cover a change', async () => {
  const inPlace = inPlaceUpdates({ machine: ['version'], infrastructureMachine: ['simulated'] })
  let requests = 0
  const extension = defineExtension({
    name: 'updater',
    handlers: [
      on(CanUpdateMachine, { name: 'can-update-machine' }, inPlace.canUpdateMachine),
      on(UpdateMachine, { name: 'update-machine' }, () => (++requests % 2 === 1 ? holdFor(5, 'installing') : proceedNow())),
    ],
  })
  env = await managementEnv({ hookTransport: inProcess(extensionServer(extension)) })
  await env.client.create(ExtensionConfig, {
    metadata: { name: 'updater' },
    spec: { clientConfig: { url: 'https://127.0.0.1:9443' } },
  })
  await create(3, 0)
  const namesBefore = await names()
  await upgrade()
  await env.advance(seconds(120))
  expect(await names()).toEqual(namesBefore)
  expect(await kubelets()).toEqual(['v1.36.0', 'v1.36.0', 'v1.36.0'])
  expect(requests).toBe(6)
  // The extension does not cover labels of Nodes.
  await changeSpec({ bootstrapConfigSpec: { nodeLabels: { a: 'b' } } })
  await env.advance(seconds(180))
  expect((await names()).filter((name) => namesBefore.includes(name))).toEqual([])
  expect((await events('InPlaceUpdateNotPossible'))[0]!.message).toMatch(
    /is replaced: LocalBootstrapConfig cannot be updated in-place: spec\.nodeLabels$/,
  )
})

/** Runs an in-place upgrade in a new process, and restarts the process directly after its write number `stopAfter`, if it has so many. */
async function upgradeWithStop(stopAfter: number) {
  const base = memoryStores()
  const first = mortalStores(base)
  await createControlPlane(undefined, { management: { runtime: scriptedRuntime(coversAll), stores: first } })
  const namesBefore = await names()
  await env.close()

  const clock = new VirtualClock(env.clock.now())
  let stores = mortalStores(base, stopAfter)
  const updated: string[] = []
  const runtime = () =>
    scriptedRuntime({
      ...coversAll,
      UpdateMachine({ request }) {
        updated.push((request as unknown as { desired: { machine: Machine } }).desired.machine.metadata.name)
        return undefined
      },
    })
  const whileAlive = <T>(work: Promise<T>) => Promise.race([work, stores.death])
  const started = await whileAlive(managementEnv({ runtime: runtime(), stores, clock }))
  if (started) {
    env = started
    await whileAlive(upgrade())
    if (!stores.isDead) await whileAlive(env.advance(seconds(60)))
  }
  const { commits } = stores
  if (stores.isDead) {
    stores.rejectPending()
    await started?.close()
    stores = mortalStores(base)
    env = await managementEnv({ runtime: runtime(), stores, clock: new VirtualClock(clock.now()) })
    await upgrade()
    await env.advance(seconds(90))
  }
  return { before: namesBefore, updated, commits }
}

describe('a process that is stopped between two writes of an in-place upgrade', async () => {
  const { commits } = await upgradeWithStop(Number.POSITIVE_INFINITY)
  await env.close()

  test.each(stopsOf(commits, 6))(
    'continues after write %i: no Machine is replaced, and no annotation of the update is left',
    async (stop) => {
      const { before: namesBefore, updated } = await upgradeWithStop(stop)
      expect(await names()).toEqual(namesBefore)
      expect(await versions()).toEqual(['v1.36.0', 'v1.36.0', 'v1.36.0'])
      expect(await kubelets()).toEqual(['v1.36.0', 'v1.36.0', 'v1.36.0'])
      const objects = [
        ...(await machines()),
        ...(await env.client.list(LocalMachine, { namespace: 'default' })).items,
        ...(await env.client.list(LocalBootstrapConfig, { namespace: 'default' })).items,
      ]
      const annotationNames = objects.flatMap(({ metadata }) => Object.keys(metadata.annotations ?? {})).filter(isStateAnnotation)
      expect(annotationNames).toEqual([])
      // Requests whose responses were not recorded are sent once more.
      expect([...new Set(updated)].sort()).toEqual(namesBefore)
      expect(updated.length).toBeLessThanOrEqual(4)
    },
  )
})

/** Defines a kind of infrastructure that no provider reconciles. */
const kindOf = (kind: string) =>
  defineKind({
    group: 'infrastructure.capstan.dev',
    version: 'v1alpha1',
    kind,
    plural: pluralOf(kind),
    scope: 'Namespaced',
    doc: 'A kind for tests.',
    labels: { 'cluster.x-k8s.io/v1beta2': 'v1alpha1' },
    spec: s.of<object>({ type: 'object', 'x-kubernetes-preserve-unknown-fields': true }).optional(),
  })

const isStateAnnotation = (name: string) => name.startsWith('in-place-updates') || name.endsWith('/pending-hooks')
