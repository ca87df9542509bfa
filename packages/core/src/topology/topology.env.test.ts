/**
 * Managed topologies in the test environment: the test acts as the provider and as the Cluster controller, and the runtime client records the
 * calls of hooks.
 */
import {
  Cluster,
  ClusterClass,
  coreKinds,
  type Hook,
  Machine,
  MachineDeployment,
  MachineHealthCheck,
  MachineSet,
  type WaitingHook,
  waitingHooks,
} from '@capstan/api'
import { memoryStore, type Store } from '@capstan/apiserver'
import type { ReconcileContext } from '@capstan/controller'
import type { RuntimeClient } from '@capstan/extension'
import {
  CustomResourceDefinition,
  Event,
  getCondition,
  keyOf,
  type Kind,
  type KubeObject,
  minutes,
  seconds,
  seededRandom,
  silent,
  StatusError,
  timestamp,
  type Transport,
  type UnknownObject,
  VirtualClock,
  withSend,
} from '@capstan/kube'
import {
  DevCluster,
  DevClusterTemplate,
  DevConfigTemplate,
  DevControlPlane,
  DevControlPlaneTemplate,
  DevMachineTemplate,
  devKinds,
  devTemplateKinds,
  testContract,
  testEnv,
} from '@capstan/testing'
import { afterEach, describe, expect, test } from 'vitest'
import { clusterClassAdmission } from '../clusterclass/admission.ts'
import { createClusterClassController } from '../clusterclass/controller.ts'
import { clusterTopologyAdmission } from './admission/admission.ts'
import { createTopologyController } from './controller.ts'
import { TopologyMemory } from './scope.ts'
import { reconcileTopology } from './reconcile.ts'
import { createTopologyMachineDeploymentController, createTopologyMachineSetController } from './template-cleanup.ts'

type HookResponse = { readonly retryAfterSeconds?: number; readonly message?: string; readonly [field: string]: unknown }

const versionFields = [
  'fromKubernetesVersion',
  'fromControlPlaneKubernetesVersion',
  'fromWorkersKubernetesVersion',
  'toKubernetesVersion',
  'kubernetesVersion',
]

/** Makes a runtime client that records calls, and whose handlers are functions. */
function aRuntime() {
  const trace: string[] = []
  const handlers = new Map<string, (request: Record<string, unknown>) => HookResponse>()
  const respond = (hook: Hook, request: object) => {
    const fields = request as Record<string, unknown>
    const versions = versionFields.map((name) => fields[name] as string | undefined)
    trace.push([hook.name, ...versions.filter(Boolean)].join(' '))
    const response = handlers.get(hook.name)?.(fields) ?? {}
    return { apiVersion: 'v1', kind: `${hook.name}Response`, status: 'Success', ...response } as never
  }
  const client: RuntimeClient = {
    ready: true,
    handlersFor: async (hook: Hook) => (handlers.has(hook.name) ? [`${hook.name.toLowerCase()}.test`] : []),
    callAll: async (hook, _for, request, { onCall, onAnswer } = {}) => {
      const handler = `${hook.name.toLowerCase()}.test`
      onCall?.(handler)
      const response = respond(hook, request)
      onAnswer?.(handler, response)
      return response
    },
    call: async (hook, _for, _handler, request) => respond(hook, request),
  }
  const proceedAll = (...names: string[]) => names.forEach((name) => handlers.set(name, () => ({})))
  return { client, trace, on: handlers.set.bind(handlers), proceedAll }
}

/** The lifecycle hooks except BeforeControlPlaneUpgrade, BeforeWorkersUpgrade and AfterWorkersUpgrade. */
const mainHooks = [
  'BeforeClusterCreate',
  'AfterControlPlaneInitialized',
  'BeforeClusterUpgrade',
  'AfterControlPlaneUpgrade',
  'AfterClusterUpgrade',
  'BeforeClusterDelete',
]

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

interface WorldOptions {
  readonly store?: Store
  readonly clock?: VirtualClock
  readonly runtime?: ReturnType<typeof aRuntime>
  /** Runs the controllers without a runtime client, as when the feature gate RuntimeSDK is disabled. */
  readonly withoutRuntime?: boolean
  /** Wraps the transport between the controllers and the server, for example with faults. */
  readonly between?: (transport: Transport) => Transport
  /** Number of turns of the event loop for which `settle` waits without progress; see `testEnv`. */
  readonly patience?: number
}

/** Starts an environment with the controllers of classes and topologies, and with functions that read and change its objects. */
async function aWorld({ runtime = aRuntime(), withoutRuntime = false, ...options }: WorldOptions = {}) {
  const runtimeClient = withoutRuntime ? undefined : runtime.client
  const env = await testEnv({
    ...options,
    kinds: [...coreKinds, ...devKinds, ...devTemplateKinds],
    admission: [clusterTopologyAdmission(), clusterClassAdmission],
    controllers: ({ clock }) => [
      createClusterClassController({ runtime: runtimeClient }),
      createTopologyController({ runtime: runtimeClient, clock }),
      createTopologyMachineDeploymentController(),
      createTopologyMachineSetController(),
    ],
  })
  closers.push(() => env.close())
  const { client } = env
  const key = (name: string) => ({ namespace: 'default', name })
  const only = async (kind: Kind): Promise<UnknownObject> => {
    const { items } = await client.list(kind, { namespace: 'default' })
    if (items.length !== 1) throw new Error(`expected one ${kind.kind}, found ${items.length}`)
    return items[0] as UnknownObject
  }
  return {
    ...env,
    runtime,
    only,
    cluster: () => client.get(Cluster, key('demo')),
    create: <T extends KubeObject>(kind: Kind<T>, name: string, fields: object) =>
      client.create(kind, { metadata: { name, namespace: 'default' }, ...fields } as never),
    async patch(kind: Kind, name: string, { status, ...main }: { status?: object; [field: string]: unknown }) {
      if (Object.keys(main).length > 0) await client.patch(kind, key(name), { type: 'merge', body: main })
      if (status) await client.patch(kind, key(name), { type: 'merge', body: { status } }, { subresource: 'status' })
      await env.settle()
    },
    /** Reports the version of the control plane, as its provider would. */
    async reportControlPlane(version: string) {
      const { name } = (await only(DevControlPlane)).metadata
      await client.patch(DevControlPlane, key(name), { type: 'merge', body: { status: { version } } }, { subresource: 'status' })
      await env.settle()
    },
    async reconciled() {
      const condition = getCondition((await client.get(Cluster, key('demo'))) as never, 'TopologyReconciled')
      return condition && `${condition.status} ${condition.reason}${condition.message ? `: ${condition.message}` : ''}`
    },
    names: async (kind: Kind) => (await client.list(kind, { namespace: 'default' })).items.map(({ metadata }) => metadata.name),
  }
}

/** Starts an environment with a class, and a Cluster whose control plane is initialized. */
async function aReadyWorld(options?: WorldOptions) {
  const world = await aWorld(options)
  await createClass(world)
  await createCluster(world)
  await becomeReady(world)
  return world
}
type World = Awaited<ReturnType<typeof aWorld>>

const infra = 'infra.example.com/v1beta1'
const aString = (defaultValue: string) => ({ openAPIV3Schema: { type: 'string', default: defaultValue } })
const classSpec = {
  infrastructure: { templateRef: { apiVersion: infra, kind: 'DevClusterTemplate', name: 'quick' } },
  controlPlane: {
    templateRef: { apiVersion: 'controlplane.example.com/v1beta1', kind: 'DevControlPlaneTemplate', name: 'quick' },
    machineInfrastructure: { templateRef: { apiVersion: infra, kind: 'DevMachineTemplate', name: 'quick' } },
  },
  workers: {
    machineDeployments: [
      {
        class: 'default',
        bootstrap: { templateRef: { apiVersion: 'bootstrap.example.com/v1beta1', kind: 'DevConfigTemplate', name: 'quick' } },
        infrastructure: { templateRef: { apiVersion: infra, kind: 'DevMachineTemplate', name: 'quick' } },
      },
    ],
  },
  variables: [{ name: 'size', required: false, schema: aString('m') }],
  patches: [
    {
      name: 'size',
      definitions: [
        {
          selector: {
            apiVersion: infra,
            kind: 'DevMachineTemplate',
            matchResources: { controlPlane: true, machineDeploymentClass: { names: ['*'] } },
          },
          jsonPatches: [{ op: 'add', path: '/spec/template/spec/size', valueFrom: { variable: 'size' } }],
        },
      ],
    },
  ],
}

async function createTemplates(world: World) {
  await world.create(DevClusterTemplate, 'quick', {
    spec: { template: { spec: { region: 'x', controlPlaneEndpoint: { host: '', port: 0 } } } },
  })
  await world.create(DevControlPlaneTemplate, 'quick', { spec: { template: { spec: { config: {} } } } })
  await world.create(DevMachineTemplate, 'quick', { spec: { template: { spec: { disk: 1 } } } })
  await world.create(DevConfigTemplate, 'quick', { spec: { template: { spec: {} } } })
}

async function createClass(world: World, spec: object = classSpec) {
  await createTemplates(world)
  await world.create(ClusterClass, 'quick', { spec })
  await world.settle()
}

const topology = (overrides: object = {}) => ({
  classRef: { name: 'quick' },
  version: 'v1.34.0',
  controlPlane: { replicas: 1 },
  workers: { machineDeployments: [{ class: 'default', name: 'md-0', replicas: 2 }] },
  ...overrides,
})

async function createCluster(world: World, overrides: object = {}) {
  await world.create(Cluster, 'demo', { spec: { topology: topology(overrides) } })
  await world.settle()
}

/** Reports the version of the control plane, as its provider would, and that it is initialized, as the Cluster controller would. */
async function becomeReady(world: World, version = 'v1.34.0') {
  await world.reportControlPlane(version)
  const condition = {
    type: 'ControlPlaneInitialized',
    status: 'True',
    reason: 'Initialized',
    message: '',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  }
  const { status } = await world.cluster()
  await world.patch(Cluster, 'demo', { status: { conditions: [...(status?.conditions ?? []), condition] } })
}

describe('without a runtime client', () => {
  const patch = {
    name: 'net',
    external: { generatePatchesExtension: 'net.ext', discoverVariablesExtension: 'vars.ext' },
  }

  const annotationsOf = async (world: World) => (await world.cluster()).metadata.annotations ?? {}
  const pendingHooks = ['runtime.cluster.x-k8s.io/pending-hooks']
  const step = ['topology.internal.cluster.x-k8s.io/upgrade-step']

  test('a Cluster is created and upgraded without pending hooks, and gets no annotation ok-to-delete when it is deleted', async () => {
    const world = await aWorld({ withoutRuntime: true })
    await createClass(world)
    await createCluster(world)
    expect(await annotationsOf(world)).not.toHaveProperty(pendingHooks)
    await becomeReady(world)
    expect(await world.reconciled()).toBe('True ReconcileSucceeded')

    await world.patch(Cluster, 'demo', { spec: { topology: { version: 'v1.35.0' } } })
    expect((await world.only(DevControlPlane))['spec']).toMatchObject({ version: 'v1.35.0' })
    expect(await annotationsOf(world)).toHaveProperty(step, 'v1.35.0')
    expect(await annotationsOf(world)).not.toHaveProperty(pendingHooks)
    await world.reportControlPlane('v1.35.0')
    expect(await world.reconciled()).toBe('True ReconcileSucceeded')
    expect(await annotationsOf(world)).not.toHaveProperty(step)

    await world.patch(Cluster, 'demo', { metadata: { finalizers: ['test.example.com/keep'] } })
    await world.client.delete(Cluster, { namespace: 'default', name: 'demo' })
    await world.settle()
    expect(await annotationsOf(world)).not.toHaveProperty(['runtime.cluster.x-k8s.io/ok-to-delete'])
    expect(await world.reconciled()).toContain('Deleting')
    expect(world.runtime.trace).toEqual([])
  })

  test('annotations with the prefix before-upgrade.hook do not block an upgrade', async () => {
    const world = await aReadyWorld({ withoutRuntime: true })
    const annotations = { 'before-upgrade.hook.cluster.cluster.x-k8s.io/test': 'true' }
    await world.patch(Cluster, 'demo', { metadata: { annotations }, spec: { topology: { version: 'v1.35.0' } } })
    expect((await world.only(DevControlPlane))['spec']).toMatchObject({ version: 'v1.35.0' })
  })

  test('variables of extensions are not discovered, and external patches are rejected', async () => {
    const world = await aWorld({ withoutRuntime: true })
    await createClass(world, { ...classSpec, patches: [...classSpec.patches, patch] })
    const { status } = await world.client.get(ClusterClass, { namespace: 'default', name: 'quick' })
    expect(status?.variables?.map(({ name }) => name)).toEqual(['size'])
    await createCluster(world)
    expect(await world.reconciled()).toBe(
      'False ReconcileFailed: error computing the desired state of the Cluster topology: failed to apply patches: can not use external patch "net" if RuntimeSDK feature flag is disabled',
    )
  })

  test('an upgrade that an extension plans is rejected', async () => {
    const world = await aWorld({ withoutRuntime: true })
    await createClass(world, { ...classSpec, upgrade: { external: { generateUpgradePlanExtension: 'plan.test' } } })
    await createCluster(world)
    await becomeReady(world)
    await world.patch(Cluster, 'demo', { spec: { topology: { version: 'v1.35.0' } } })
    expect(await world.reconciled()).toBe(
      'False ReconcileFailed: error computing the desired state of the Cluster topology: can not use GenerateUpgradePlan extension "plan.test" if RuntimeSDK feature flag is disabled',
    )
  })
})

describe('creation', () => {
  test('waits for BeforeClusterCreate, then creates all objects and writes their references to the Cluster', async () => {
    const world = await aWorld()
    let blocks = true
    world.runtime.on('BeforeClusterCreate', () => (blocks ? { retryAfterSeconds: 2, message: 'quota is being raised' } : {}))
    await createClass(world)
    await createCluster(world)

    expect(await world.reconciled()).toBe(
      'False ClusterCreating: Following hooks are blocking Cluster topology creation: BeforeClusterCreate: quota is being raised',
    )
    expect(await world.names(DevCluster)).toEqual([])
    await world.advance(seconds(1))
    expect(world.runtime.trace).toEqual(['BeforeClusterCreate'])

    blocks = false
    await world.advance(seconds(2))
    expect(world.runtime.trace).toEqual(['BeforeClusterCreate', 'BeforeClusterCreate'])
    const [infrastructure, controlPlane, machineDeployment] = [
      await world.only(DevCluster),
      await world.only(DevControlPlane),
      await world.only(MachineDeployment as never),
    ]
    const { spec, metadata } = await world.cluster()
    expect(spec.infrastructureRef).toEqual({
      apiGroup: 'infra.example.com',
      kind: 'DevCluster',
      name: infrastructure.metadata.name,
    })
    expect(spec.controlPlaneRef?.name).toBe(controlPlane.metadata.name)
    expect(metadata.annotations).toMatchObject({ 'runtime.cluster.x-k8s.io/pending-hooks': 'AfterControlPlaneInitialized' })
    expect(controlPlane['spec']).toMatchObject({ version: 'v1.34.0', replicas: 1 })
    expect(machineDeployment).toMatchObject({ spec: { replicas: 2, template: { spec: { version: 'v1.34.0' } } } })
    const copies = (await world.client.list(DevMachineTemplate)).items.filter(
      ({ metadata: { name } }) => name !== 'quick',
    ) as UnknownObject[]
    expect(copies.map((copy) => copy['spec'])).toEqual([
      { template: { spec: { disk: 1, size: 'm' } } },
      { template: { spec: { disk: 1, size: 'm' } } },
    ])

    await becomeReady(world)
    expect(await world.reconciled()).toBe('True ReconcileSucceeded')
  })

  test('records the hook for which a Cluster waits, and calls it at once on a retry request', async () => {
    const world = await aWorld()
    let blocks = true
    world.runtime.on('BeforeClusterCreate', () => (blocks ? { retryAfterSeconds: 60, message: 'no quota' } : {}))
    await createClass(world)
    await createCluster(world)
    const [record] = waitingHooks(await world.cluster())
    expect(record).toEqual({
      hook: 'BeforeClusterCreate',
      handlers: ['beforeclustercreate.test'],
      since: record!.since,
      until: timestamp(Date.parse(record!.since) + minutes(1)),
      requestKey: record!.requestKey,
      calls: 1,
      message: 'no quota',
    })
    await world.advance(minutes(1))
    expect(waitingHooks(await world.cluster())).toMatchObject([{ since: record!.since, calls: 2 }])

    blocks = false
    await world.patch(Cluster, 'demo', { metadata: { annotations: { 'runtime.capstan.dev/retry-hooks': 'now' } } })
    expect(world.runtime.trace).toHaveLength(3)
    expect(waitingHooks(await world.cluster())).toEqual([])
    for (const name of ['waiting-hooks', 'retry-hooks'])
      expect((await world.cluster()).metadata.annotations ?? {}).not.toHaveProperty([`runtime.capstan.dev/${name}`])
    expect(await world.names(DevCluster)).toHaveLength(1)
  })

  test.each([
    ['a blocking message', (message: string) => ({ retryAfterSeconds: 60, message }), 'ClusterCreating'],
    [
      'an error message',
      (message: string): HookResponse => {
        throw new Error(message)
      },
      'ReconcileFailed',
    ],
  ])('%s that is longer than a condition allows is truncated', async (_, respond, reason) => {
    const world = await aWorld()
    world.runtime.on('BeforeClusterCreate', () => respond('😀'.repeat(33_000)))
    await createClass(world)
    await createCluster(world)
    const { status, metadata } = await world.cluster()
    const condition = getCondition({ status } as never, 'TopologyReconciled')!
    expect(condition).toMatchObject({ status: 'False', reason, observedGeneration: metadata.generation })
    expect(Array.from(condition.message ?? '')).toHaveLength(32_768)
    expect(condition.message).toMatch(/😀\.\.\. \(truncated\)$/)
    const [record] = waitingHooks(await world.cluster())
    expect(Array.from(record!.message)).toHaveLength(1024)
    expect(record!.message).toMatch(/😀\.\.\. \(truncated\)$/)
  })

  test('a handler that fails with a different message each time is called with growing delays, although each new message changes the Cluster', async () => {
    const world = await aWorld()
    let calls = 0
    world.runtime.on('BeforeClusterCreate', () => {
      throw new Error(`request ${++calls} failed`)
    })
    await createClass(world)
    await createCluster(world)
    await world.advance(minutes(1))
    // 5 ms, doubled with each failure: the fourteenth call is after 41 s.
    expect(calls).toBe(14)
    const [record] = waitingHooks(await world.cluster())
    expect(record).toEqual({
      hook: 'BeforeClusterCreate',
      handlers: ['beforeclustercreate.test'],
      since: record!.since,
      calls: 14,
      message: 'request 14 failed',
    })
    expect(await world.reconciled()).toBe('False ReconcileFailed: request 14 failed')
  })

  test('keeps the record of a blocking hook that then fails, and of a hook that a reconcile did not reach', async () => {
    const world = await aWorld()
    let fails = false
    world.runtime.on('BeforeClusterCreate', () => {
      if (fails) throw new Error('gone for lunch')
      return { retryAfterSeconds: 60, message: 'no quota' }
    })
    await createClass(world)
    await createCluster(world)
    const [{ since }] = waitingHooks(await world.cluster()) as [WaitingHook]
    fails = true
    await world.advance(minutes(1))
    expect(waitingHooks(await world.cluster())).toMatchObject([{ since, message: 'gone for lunch' }])
    expect(waitingHooks(await world.cluster())[0]).not.toHaveProperty('until')
    fails = false
    await world.advance(minutes(1))
    expect(waitingHooks(await world.cluster())).toMatchObject([{ since, message: 'no quota' }])

    await world.client.delete(DevClusterTemplate, { namespace: 'default', name: 'quick' })
    await world.settle()
    expect(await world.reconciled()).toMatch(/^False ReconcileFailed: error reading the ClusterClass/)
    expect(waitingHooks(await world.cluster())).toMatchObject([{ since, message: 'no quota' }])
  })

  test('AfterControlPlaneInitialized is called once', async () => {
    const world = await aWorld()
    world.runtime.proceedAll('AfterControlPlaneInitialized')
    await createClass(world)
    await createCluster(world)
    expect(world.runtime.trace).toEqual([])
    await becomeReady(world)
    await world.advance(minutes(10))
    expect(world.runtime.trace).toEqual(['AfterControlPlaneInitialized'])
    expect((await world.cluster()).metadata.annotations?.['runtime.cluster.x-k8s.io/pending-hooks']).toBeUndefined()
  })

  test('AfterControlPlaneInitialized is called once, even when removing it from the pending hooks fails at first', async () => {
    const runtime = aRuntime()
    runtime.proceedAll('AfterControlPlaneInitialized')
    let failures = 0
    const between = (transport: Transport): Transport =>
      withSend(transport, async (request, signal) => {
        const isMetadataPatch = request.verb === 'patch' && request.plural === 'clusters' && request.subresource === undefined
        if (isMetadataPatch && runtime.trace.length > 0 && failures++ < 2) throw new Error('the server is busy')
        return transport.send(request, signal)
      })
    const world = await aReadyWorld({ runtime, between })
    await world.advance(minutes(5))
    expect(failures).toBe(3)
    expect(runtime.trace).toEqual(['AfterControlPlaneInitialized'])
    expect(await world.reconciled()).toBe('True ReconcileSucceeded')
  })

  test('reports and retries a failing AfterControlPlaneInitialized, without blocking', async () => {
    const world = await aWorld()
    let fails = true
    world.runtime.on('AfterControlPlaneInitialized', () => {
      if (fails) throw new Error('failed to call extension handlers')
      return {}
    })
    await createClass(world)
    await createCluster(world)
    await becomeReady(world)
    expect(await world.reconciled()).toBe(
      'False ReconcileFailed: error reconciling the Cluster topology: failed to call extension handlers',
    )
    await world.patch(Cluster, 'demo', { spec: { topology: { controlPlane: { replicas: 3 } } } })
    expect((await world.only(DevControlPlane))['spec']).toMatchObject({ replicas: 3 })
    fails = false
    await world.advance(minutes(2))
    expect(await world.reconciled()).toBe('True ReconcileSucceeded')
  })

  test('writes nothing when idle', async () => {
    const world = await aReadyWorld()
    // On a slow server, the reconcile after a change of the MachineDeployment waits, at most a second.
    await world.advance(minutes(1))
    const { revision } = world.store
    await world.advance(minutes(30))
    expect(world.store.revision).toBe(revision)
  })
})

describe('reports why a topology cannot be created', () => {
  test('a class that does not exist', async () => {
    const world = await aWorld()
    await createCluster(world)
    expect(await world.reconciled()).toBe(
      'False ReconcileFailed: failed to retrieve ClusterClass default/quick: ClusterClass.cluster.x-k8s.io "quick" not found',
    )
    await world.patch(Cluster, 'demo', { metadata: { labels: { team: 'a' } } })
    await expect(world.patch(Cluster, 'demo', { spec: { topology: { version: 'v1.35.0' } } })).rejects.toThrow(
      'spec.topology.class: Internal error: ClusterClass default/quick not found',
    )
    await createClass(world)
    await becomeReady(world)
    expect(await world.reconciled()).toBe('True ReconcileSucceeded')
  })

  test('a class with a missing template', async () => {
    const world = await aWorld()
    await createClass(world)
    await world.client.delete(DevClusterTemplate, { namespace: 'default', name: 'quick' })
    await createCluster(world)
    expect(await world.reconciled()).toBe(
      'False ReconcileFailed: error reading the ClusterClass: failed to get infrastructure cluster template for ClusterClass default/quick: ' +
        'failed to retrieve DevClusterTemplate default/quick: failed to retrieve DevClusterTemplate default/quick: DevClusterTemplate.infra.example.com "quick" not found',
    )
    await world.create(DevClusterTemplate, 'quick', { spec: { template: { spec: {} } } })
    await world.settle()
    expect(await world.names(DevCluster)).toHaveLength(1)
  })

  test('an infrastructure kind that is not served, without waiting for it', async () => {
    const world = await aWorld()
    await createClass(world)
    await world.client.delete(CustomResourceDefinition, { name: `${DevCluster.plural}.${DevCluster.group}` })
    await createCluster(world)
    expect(await world.reconciled()).toMatch(/^False ReconcileFailed: .*failed to create DevCluster/)
  })

  test('an object of another creator, which is not overwritten', async () => {
    const world = await aWorld()
    const { infrastructure } = classSpec
    await createClass(world, { ...classSpec, infrastructure: { ...infrastructure, naming: { template: '{{ .cluster.name }}' } } })
    await world.create(DevCluster, 'demo', { spec: {} })
    await createCluster(world)
    expect(await world.reconciled()).toContain(
      'Cannot create DevCluster default/demo: it exists already, and Cluster demo does not own it',
    )
    await world.client.delete(DevCluster, { namespace: 'default', name: 'demo' })
    await world.advance(seconds(1000))
    await becomeReady(world)
    expect(await world.reconciled()).toBe('True ReconcileSucceeded')
  })

  test('a patch that does not apply', async () => {
    const world = await aWorld()
    const jsonPatches = [{ op: 'replace', path: '/spec/template/spec/none', value: 1 }]
    const selector = { apiVersion: infra, kind: 'DevClusterTemplate', matchResources: { infrastructureCluster: true } }
    await createClass(world, { ...classSpec, patches: [{ name: 'broken', definitions: [{ selector, jsonPatches }] }] })
    await createCluster(world)
    expect(await world.reconciled()).toBe(
      'False ReconcileFailed: error computing the desired state of the Cluster topology: failed to apply patches: failed to apply patches for patch "broken": ' +
        'failed to apply patch: error applying json patch (RFC6902): replace operation does not apply: doc is missing key: /spec/template/spec/none: missing value',
    )
  })

  test.each([
    [
      'a variable that breaks its schema',
      { variables: [{ name: 'size', value: 3 }] },
      'spec.topology.variables[size].value: Invalid value: "3": must be of type string: "integer"',
    ],
    [
      'an unknown MachineDeployment class',
      { workers: { machineDeployments: [{ class: 'gpu', name: 'md-0' }] } },
      'spec.topology.workers.machineDeployments[0].class: Invalid value: "gpu": MachineDeploymentClass with name "gpu" does not exist in ClusterClass "quick"',
    ],
    [
      'an unknown MachinePool class',
      { workers: { machinePools: [{ class: 'p', name: 'mp-0' }] } },
      'spec.topology.workers.machinePools[0].class: Invalid value: "p": MachinePoolClass with name "p" does not exist in ClusterClass "quick"',
    ],
  ])('%s is rejected', async (_, overrides, message) => {
    const world = await aWorld()
    await createClass(world)
    await expect(createCluster(world, overrides)).rejects.toThrow(`Cluster.cluster.x-k8s.io "demo" is invalid: ${message}`)
  })
})

test('MachineHealthChecks are created, updated and deleted as the class and the topology define them', async () => {
  const world = await aWorld()
  const checks = { unhealthyNodeConditions: [{ type: 'Ready', status: 'False', timeoutSeconds: 300 }] }
  const [workers] = classSpec.workers!.machineDeployments!
  const healthCheck = { checks, remediation: { maxInFlight: 1, triggerIf: { unhealthyLessThanOrEqualTo: '40%' } } }
  await createClass(world, { ...classSpec, workers: { machineDeployments: [{ ...workers!, healthCheck }] } })
  await createCluster(world)
  await becomeReady(world)
  const [name] = await world.names(MachineDeployment as never)
  const createdCheck = await world.client.get(MachineHealthCheck, { namespace: 'default', name: name! })
  expect(createdCheck).toMatchObject({
    metadata: {
      labels: { 'topology.cluster.x-k8s.io/owned': '', 'cluster.x-k8s.io/cluster-name': 'demo' },
      ownerReferences: [{ kind: 'Cluster', name: 'demo' }],
    },
    spec: {
      clusterName: 'demo',
      selector: { matchLabels: { 'topology.cluster.x-k8s.io/owned': '', 'topology.cluster.x-k8s.io/deployment-name': 'md-0' } },
      checks: { ...checks, nodeStartupTimeoutSeconds: 600 },
      remediation: { triggerIf: { unhealthyLessThanOrEqualTo: '40%' } },
    },
  })
  const deployment = await world.client.get(MachineDeployment, { namespace: 'default', name: name! })
  expect(deployment.spec.remediation).toEqual({ maxInFlight: 1 })

  const topology = (await world.client.get(Cluster, { namespace: 'default', name: 'demo' })).spec.topology!
  const withCheck = (check: object) => ({
    spec: {
      topology: { workers: { machineDeployments: [{ ...topology.workers!.machineDeployments![0]!, healthCheck: check }] } },
    },
  })
  await world.patch(Cluster, 'demo', withCheck({ checks: { nodeStartupTimeoutSeconds: 60 } }))
  expect((await world.client.get(MachineHealthCheck, { namespace: 'default', name: name! })).spec).toMatchObject({
    checks: { nodeStartupTimeoutSeconds: 60 },
  })
  await world.patch(Cluster, 'demo', withCheck({ enabled: false }))
  expect(await world.names(MachineHealthCheck as never)).toEqual([])
})

test('a MachineHealthCheck is deleted with its MachineDeployment, and created with the next one', async () => {
  const world = await aWorld()
  await createClass(world)
  const healthCheck = { checks: { nodeStartupTimeoutSeconds: 60 } }
  const machineDeployments = [{ class: 'default', name: 'md-0', replicas: 2, healthCheck }]
  await createCluster(world, { workers: { machineDeployments } })
  const [name] = await world.names(MachineDeployment as never)
  expect(await world.names(MachineHealthCheck as never)).toEqual([name])
  await world.patch(MachineDeployment, name!, { metadata: { finalizers: ['test.example.com/hold'] } })
  await world.client.delete(MachineDeployment, { namespace: 'default', name: name! })
  await world.settle()
  expect(await world.names(MachineHealthCheck as never)).toEqual([])
  await world.patch(MachineDeployment, name!, { metadata: { finalizers: null } })
  expect(await world.names(MachineHealthCheck as never)).toEqual(await world.names(MachineDeployment as never))
})

const machineSetSpecOf = ({ spec: { clusterName, selector, template } }: MachineDeployment) => ({
  clusterName,
  selector,
  template,
  replicas: 0,
})

test('templates of a deleted MachineDeployment are kept while a MachineSet without topology labels uses them', async () => {
  const world = await aReadyWorld()
  const deployment = (await world.only(MachineDeployment)) as unknown as MachineDeployment
  const { infrastructureRef, bootstrap } = deployment.spec.template.spec
  await world.create(MachineSet, 'restored', {
    metadata: { name: 'restored', namespace: 'default', labels: { 'cluster.x-k8s.io/cluster-name': 'demo' } },
    spec: machineSetSpecOf(deployment),
  })
  const uids = async () => [
    (await world.client.get(DevMachineTemplate, { namespace: 'default', name: infrastructureRef.name })).metadata.uid,
    (await world.client.get(DevConfigTemplate, { namespace: 'default', name: bootstrap.configRef!.name })).metadata.uid,
  ]
  const before = await uids()
  await world.client.delete(MachineDeployment, keyOf(deployment))
  await world.settle()
  expect(await uids()).toEqual(before)
})

test('a MachineSet with the pause annotation does not get the finalizer of the topology', async () => {
  const world = await aReadyWorld()
  const deployment = (await world.only(MachineDeployment)) as unknown as MachineDeployment
  const labels = { 'cluster.x-k8s.io/cluster-name': 'demo', 'topology.cluster.x-k8s.io/owned': '' }
  const spec = machineSetSpecOf(deployment)
  const finalizersOf = async (name: string) =>
    (await world.client.get(MachineSet, { namespace: 'default', name })).metadata.finalizers
  const annotations = { 'cluster.x-k8s.io/paused': '' }
  await world.create(MachineSet, 'paused', { metadata: { name: 'paused', namespace: 'default', labels, annotations }, spec })
  await world.create(MachineSet, 'other', { metadata: { name: 'other', namespace: 'default', labels }, spec })
  await world.settle()
  expect([await finalizersOf('paused'), await finalizersOf('other')]).toEqual([
    undefined,
    ['machineset.topology.cluster.x-k8s.io'],
  ])
})

describe('an upgrade', () => {
  const hook = (world: World, name: string) => {
    const state = { blocks: true }
    world.runtime.on(name, () => (state.blocks ? { retryAfterSeconds: 5, message: `${name} is not done` } : {}))
    return state
  }

  test('has its steps in the status even when the first hook fails', async () => {
    const world = await aReadyWorld()
    world.runtime.on('BeforeClusterUpgrade', () => {
      throw new Error('gone for lunch')
    })
    await world.patch(Cluster, 'demo', { spec: { topology: { version: 'v1.35.0' } } })
    expect(await world.reconciled()).toMatch('gone for lunch')
    expect((await world.cluster()).status?.controlPlane?.upgradePlan).toEqual([{ version: 'v1.35.0' }])
  })

  test('keeps its steps in the status while the version of the control plane is missing', async () => {
    const world = await aReadyWorld()
    hook(world, 'BeforeClusterUpgrade')
    await world.patch(Cluster, 'demo', { spec: { topology: { version: 'v1.35.0' } } })
    await world.reconciled()
    const { name } = (await world.only(DevControlPlane)).metadata
    await world.patch(DevControlPlane, name, { spec: { version: null } })
    expect(await world.reconciled()).toBe(
      'False ReconcileFailed: error computing the desired state of the Cluster topology: failed to get the version from control plane spec: path .spec.version: field not found',
    )
    expect((await world.cluster()).status?.controlPlane?.upgradePlan).toEqual([{ version: 'v1.35.0' }])
  })

  test('upgrades the control plane, then the workers, and waits for a blocking hook before, between and after them', async () => {
    const world = await aReadyWorld()
    const [beforeUpgrade, afterControlPlane, afterUpgrade] = [
      'BeforeClusterUpgrade',
      'AfterControlPlaneUpgrade',
      'AfterClusterUpgrade',
    ].map((name) => hook(world, name))
    const version = async () => [
      ((await world.only(DevControlPlane))['spec'] as { version: string }).version,
      ((await world.only(MachineDeployment as never)) as unknown as MachineDeployment).spec.template.spec.version,
    ]

    await world.patch(Cluster, 'demo', { spec: { topology: { version: 'v1.35.0' } } })
    const [md] = await world.names(MachineDeployment as never)
    expect(await world.reconciled()).toBe(
      [
        'False ClusterUpgrading: Cluster is upgrading to v1.35.0',
        'Following hooks are blocking upgrade: BeforeClusterUpgrade: BeforeClusterUpgrade is not done',
        'DevControlPlane pending upgrade to version v1.35.0',
        `MachineDeployment ${md} pending upgrade to version v1.35.0`,
      ].join('\n  * '),
    )
    expect(await version()).toEqual(['v1.34.0', 'v1.34.0'])
    expect((await world.cluster()).status?.controlPlane?.upgradePlan).toEqual([{ version: 'v1.35.0' }])

    beforeUpgrade!.blocks = false
    await world.advance(seconds(6))
    expect(await version()).toEqual(['v1.35.0', 'v1.34.0'])
    expect((await world.cluster()).metadata.annotations).toMatchObject({
      'runtime.cluster.x-k8s.io/pending-hooks':
        'AfterClusterUpgrade,AfterControlPlaneUpgrade,AfterWorkersUpgrade,BeforeWorkersUpgrade',
      'topology.internal.cluster.x-k8s.io/upgrade-step': 'v1.35.0',
    })
    expect(await world.reconciled()).toMatch(
      /^False ClusterUpgrading: .*\n {2}\* DevControlPlane upgrading to version v1.35.0\n/s,
    )

    await world.reportControlPlane('v1.35.0')
    expect(await version()).toEqual(['v1.35.0', 'v1.34.0'])
    expect(await world.reconciled()).toMatch('blocking upgrade: AfterControlPlaneUpgrade: AfterControlPlaneUpgrade is not done')
    afterControlPlane!.blocks = false
    await world.advance(seconds(6))
    expect(await version()).toEqual(['v1.35.0', 'v1.35.0'])

    expect(await world.reconciled()).toBe(
      'False ClusterUpgrading: Cluster is upgrading to v1.35.0\n  * Following hooks are blocking upgrade: AfterClusterUpgrade: AfterClusterUpgrade is not done',
    )
    await expect(world.patch(Cluster, 'demo', { spec: { topology: { version: 'v1.36.0' } } })).rejects.toThrow(
      'version cannot be changed when the "AfterClusterUpgrade" hook is still blocking',
    )
    afterUpgrade!.blocks = false
    await world.advance(seconds(6))
    expect(await world.reconciled()).toBe('True ReconcileSucceeded')
    expect((await world.cluster()).metadata.annotations ?? {}).toEqual({})
    expect(new Set(world.runtime.trace)).toEqual(
      new Set(['BeforeClusterUpgrade v1.34.0 v1.35.0', 'AfterControlPlaneUpgrade v1.35.0', 'AfterClusterUpgrade v1.35.0']),
    )
  })

  test('a MachineDeployment that is removed during its rollout counts as upgrading while it has a Machine of the old version', async () => {
    const world = await aWorld()
    await createClass(world)
    const workers = (...names: string[]) => ({
      workers: { machineDeployments: names.map((name) => ({ class: 'default', name, replicas: 1 })) },
    })
    await createCluster(world, workers('md-0', 'md-1'))
    await becomeReady(world)
    const deployments = async () =>
      new Map(
        (await world.client.list(MachineDeployment, { namespace: 'default' })).items.map((deployment) => [
          deployment.metadata.labels!['topology.cluster.x-k8s.io/deployment-name'],
          deployment,
        ]),
      )
    const { metadata, spec } = (await deployments()).get('md-0')!
    await world.client.create(Machine, {
      metadata: { name: 'old', namespace: 'default', labels: spec.selector.matchLabels! },
      spec: { ...spec.template.spec, version: 'v1.34.0' },
    } as never)
    await world.patch(MachineDeployment, metadata.name, { metadata: { finalizers: ['test.example.com/hold'] } })
    await world.patch(Cluster, 'demo', { spec: { topology: { version: 'v1.35.0' } } })
    await world.reportControlPlane('v1.35.0')
    await world.patch(Cluster, 'demo', { spec: { topology: workers('md-1') } })

    const version = async () => (await deployments()).get('md-1')!.spec.template.spec.version
    expect(await version()).toBe('v1.34.0')
    expect(await world.reconciled()).toMatch(`MachineDeployment ${metadata.name} upgrading to version v1.35.0`)
    await world.client.delete(Machine, { namespace: 'default', name: 'old' })
    await world.patch(MachineDeployment, metadata.name, { metadata: { finalizers: null } })
    expect(await version()).toBe('v1.35.0')
  })

  test('records the version of the control plane in the annotation upgrade-step while BeforeControlPlaneUpgrade blocks, so that MachineSets can still create Machines', async () => {
    const world = await aReadyWorld()
    const step = async () => {
      const annotations = (await world.cluster()).metadata.annotations ?? {}
      return [
        annotations['topology.internal.cluster.x-k8s.io/upgrade-step'],
        annotations['runtime.cluster.x-k8s.io/pending-hooks'],
      ]
    }
    const beforeUpgrade = hook(world, 'BeforeControlPlaneUpgrade')
    await world.patch(Cluster, 'demo', { spec: { topology: { version: 'v1.35.0' } } })
    expect(await step()).toEqual(['v1.34.0', 'AfterClusterUpgrade'])
    beforeUpgrade.blocks = false
    await world.advance(seconds(6))
    expect((await step())[0]).toBe('v1.35.0')
  })

  test('has the pending hook AfterClusterUpgrade when BeforeControlPlaneUpgrade fails and BeforeClusterUpgrade has no handler', async () => {
    const world = await aReadyWorld()
    world.runtime.on('BeforeControlPlaneUpgrade', () => {
      throw new Error('no quota')
    })
    await world.patch(Cluster, 'demo', { spec: { topology: { version: 'v1.35.0' } } })
    expect(await world.reconciled()).toMatch(/^False ReconcileFailed: .*: no quota$/)
    expect((await world.cluster()).metadata.annotations).toMatchObject({
      'runtime.cluster.x-k8s.io/pending-hooks': 'AfterClusterUpgrade',
    })
  })

  describe('another version while a hook blocks', () => {
    const notYet =
      'version cannot be changed: [Cluster.spec.topology.version 1.35.0 was not propagated to control plane yet (control plane version 1.34.0), there are still MachineDeployments completing a previous upgrade'
    const stillBlocking = 'version cannot be changed when the "AfterClusterUpgrade" hook is still blocking'

    /** Creates a Cluster whose upgrade from v1.34.0 to v1.35.0 waits for the hook `name`. */
    async function waitingFor(name: string) {
      const world = await aWorld()
      await createClass(world)
      await createCluster(world)
      await becomeReady(world)
      world.runtime.proceedAll(...mainHooks)
      const state = hook(world, name)
      const setVersion = (version: string, annotations: object = {}) =>
        world.patch(Cluster, 'demo', { metadata: { annotations }, spec: { topology: { version } } })
      await setVersion('v1.35.0')
      if (name.startsWith('After')) await world.reportControlPlane('v1.35.0')
      await world.advance(seconds(1))
      expect(waitingHooks(await world.cluster())).toMatchObject([{ hook: name }])
      world.runtime.trace.length = 0
      return { world, state, setVersion }
    }
    const unchecked = { 'unsafe.topology.cluster.x-k8s.io/disable-update-version-check': '' }

    test.each([
      ['BeforeClusterUpgrade', notYet],
      ['BeforeControlPlaneUpgrade', stillBlocking],
      ['AfterControlPlaneUpgrade', stillBlocking],
      ['AfterClusterUpgrade', stillBlocking],
    ])('is rejected, as by upstream: %s', async (name, message) => {
      const { world, setVersion } = await waitingFor(name)
      await expect(setVersion('v1.36.0')).rejects.toThrow(message)
      await expect(setVersion('v1.34.0')).rejects.toThrow('version cannot be decreased from "1.35.0" to "1.34.0"')
      expect((await world.cluster()).spec.topology!.version).toBe('v1.35.0')
    })

    test('without the version check, BeforeClusterUpgrade is called at once for another version, but not for that of the control plane', async () => {
      const { world, setVersion } = await waitingFor('BeforeClusterUpgrade')
      await setVersion('v1.35.1', unchecked)
      expect(world.runtime.trace).toEqual(['BeforeClusterUpgrade v1.34.0 v1.35.1'])
      await setVersion('v1.34.0', unchecked)
      await world.advance(seconds(30))
      expect(world.runtime.trace).toHaveLength(1)
      expect(waitingHooks(await world.cluster())).toEqual([])
      expect(await world.reconciled()).toBe('True ReconcileSucceeded')
      await setVersion('v1.35.1')
      expect(world.runtime.trace).toEqual(Array(2).fill('BeforeClusterUpgrade v1.34.0 v1.35.1'))
    })

    test('without the version check, BeforeControlPlaneUpgrade is called at once for another version, and setting the version of the control plane ends the upgrade', async () => {
      const { world, setVersion } = await waitingFor('BeforeControlPlaneUpgrade')
      await setVersion('v1.35.1', unchecked)
      expect(world.runtime.trace).toEqual(['BeforeControlPlaneUpgrade v1.34.0 v1.35.1'])
      await setVersion('v1.34.0', unchecked)
      await world.advance(seconds(30))
      expect(world.runtime.trace.slice(1)).toEqual(['AfterClusterUpgrade v1.34.0'])
      expect(waitingHooks(await world.cluster())).toEqual([])
      expect(await world.reconciled()).toBe('True ReconcileSucceeded')
    })

    test('without the version check, a version below that of the control plane is an error until it is set back', async () => {
      const { world, state, setVersion } = await waitingFor('AfterControlPlaneUpgrade')
      await setVersion('v1.34.0', unchecked)
      expect(await world.reconciled()).toMatch(
        'invalid ControlPlane upgrade plan: item 0; version v1.34.0 must be greater than v1.35.0',
      )
      state.blocks = false
      await setVersion('v1.35.0', unchecked)
      await world.advance(seconds(10))
      expect(await world.reconciled()).toBe('True ReconcileSucceeded')
    })

    test('without the version check, a running upgrade continues to the new version after its step, with one AfterClusterUpgrade and without another BeforeClusterUpgrade', async () => {
      const { world, state, setVersion } = await waitingFor('AfterControlPlaneUpgrade')
      await setVersion('v1.36.0', unchecked)
      state.blocks = false
      await world.advance(seconds(10))
      await world.reportControlPlane('v1.36.0')
      await world.advance(seconds(10))
      expect(world.runtime.trace).toEqual([
        'AfterControlPlaneUpgrade v1.35.0',
        'AfterControlPlaneUpgrade v1.35.0',
        'AfterControlPlaneUpgrade v1.36.0',
        'AfterClusterUpgrade v1.36.0',
      ])
      expect(await world.reconciled()).toBe('True ReconcileSucceeded')
    })
  })

  test('calls hooks with the Cluster and its pending hooks', async () => {
    const world = await aReadyWorld()
    const pending: string[] = []
    for (const name of ['BeforeControlPlaneUpgrade', 'AfterControlPlaneUpgrade', 'AfterWorkersUpgrade', 'AfterClusterUpgrade'])
      world.runtime.on(name, ({ cluster }) => {
        const { annotations } = (cluster as Cluster).metadata
        pending.push(`${name}: ${annotations?.['runtime.cluster.x-k8s.io/pending-hooks']}`)
        return {}
      })
    world.runtime.proceedAll('BeforeClusterUpgrade')
    await world.patch(Cluster, 'demo', { spec: { topology: { version: 'v1.35.0' } } })
    await world.reportControlPlane('v1.35.0')
    await world.advance(seconds(10))
    expect(pending).toEqual([
      'BeforeControlPlaneUpgrade: AfterClusterUpgrade',
      'AfterControlPlaneUpgrade: AfterClusterUpgrade,AfterControlPlaneUpgrade,AfterWorkersUpgrade,BeforeWorkersUpgrade',
      'AfterWorkersUpgrade: AfterClusterUpgrade,AfterWorkersUpgrade',
      'AfterClusterUpgrade: AfterClusterUpgrade',
    ])
  })

  test('over several minor versions has the versions of the class as steps, and one step for workers', async () => {
    const world = await aWorld()
    world.runtime.proceedAll(...mainHooks)
    await createClass(world, { ...classSpec, kubernetesVersions: ['v1.34.0', 'v1.35.1', 'v1.36.2'] })
    await createCluster(world)
    await becomeReady(world)
    const versions = async () => [
      ((await world.only(DevControlPlane))['spec'] as { version: string }).version,
      ((await world.only(MachineDeployment as never)) as unknown as MachineDeployment).spec.template.spec.version,
    ]
    await world.patch(Cluster, 'demo', { spec: { topology: { version: 'v1.36.2' } } })
    expect(await versions()).toEqual(['v1.35.1', 'v1.34.0'])
    expect(await world.reconciled()).toMatch('DevControlPlane upgrading to version v1.35.1 (v1.36.2 pending)')
    await world.reportControlPlane('v1.35.1')
    expect(await versions()).toEqual(['v1.36.2', 'v1.34.0'])
    await world.reportControlPlane('v1.36.2')
    expect(await versions()).toEqual(['v1.36.2', 'v1.36.2'])
    expect(await world.reconciled()).toBe('True ReconcileSucceeded')
    expect(world.runtime.trace.slice(2)).toEqual([
      'BeforeClusterUpgrade v1.34.0 v1.36.2',
      'AfterControlPlaneUpgrade v1.35.1',
      'AfterControlPlaneUpgrade v1.36.2',
      'AfterClusterUpgrade v1.36.2',
    ])
    await expect(world.patch(Cluster, 'demo', { spec: { topology: { version: 'v1.36.3' } } })).rejects.toThrow(
      'version must match one of the versions defined in the ClusterClass',
    )
  })

  test('has the steps that an extension plans, with four hooks around each step', async () => {
    const world = await aWorld()
    world.runtime.proceedAll(...mainHooks, 'BeforeControlPlaneUpgrade', 'BeforeWorkersUpgrade', 'AfterWorkersUpgrade')
    const steps = (...versions: string[]) => versions.map((version) => ({ version }))
    world.runtime.on('GenerateUpgradePlan', (request) => {
      const from = request['fromControlPlaneKubernetesVersion']
      const ahead = ['v1.35.1', 'v1.36.2'].filter((version) => version > String(from))
      const workers = ['v1.35.1', 'v1.36.2'].filter((version) => version > String(request['fromWorkersKubernetesVersion']))
      return { controlPlaneUpgrades: steps(...ahead), workersUpgrades: steps(...workers) }
    })
    await createClass(world, { ...classSpec, upgrade: { external: { generateUpgradePlanExtension: 'plan.test' } } })
    await createCluster(world)
    await becomeReady(world)
    await world.patch(Cluster, 'demo', { spec: { topology: { version: 'v1.36.2' } } })
    await world.reportControlPlane('v1.35.1')
    await world.reportControlPlane('v1.36.2')
    expect(await world.reconciled()).toBe('True ReconcileSucceeded')
    expect(world.runtime.trace.slice(2)).toEqual([
      'GenerateUpgradePlan v1.34.0 v1.34.0 v1.36.2',
      'BeforeClusterUpgrade v1.34.0 v1.36.2',
      'BeforeControlPlaneUpgrade v1.34.0 v1.35.1',
      'GenerateUpgradePlan v1.35.1 v1.34.0 v1.36.2',
      'AfterControlPlaneUpgrade v1.35.1',
      'BeforeWorkersUpgrade v1.34.0 v1.35.1',
      'GenerateUpgradePlan v1.35.1 v1.35.1 v1.36.2',
      'AfterWorkersUpgrade v1.35.1',
      'BeforeControlPlaneUpgrade v1.35.1 v1.36.2',
      'GenerateUpgradePlan v1.36.2 v1.35.1 v1.36.2',
      'AfterControlPlaneUpgrade v1.36.2',
      'BeforeWorkersUpgrade v1.35.1 v1.36.2',
      'AfterWorkersUpgrade v1.36.2',
      'AfterClusterUpgrade v1.36.2',
    ])
    expect((await world.cluster()).metadata.annotations ?? {}).toEqual({})
  })

  test('records a failed call of GenerateUpgradePlan among the waiting hooks', async () => {
    const world = await aWorld()
    let fails = true
    world.runtime.on('GenerateUpgradePlan', () => {
      if (fails) throw new Error('no map')
      return { controlPlaneUpgrades: [{ version: 'v1.35.0' }] }
    })
    await createClass(world, { ...classSpec, upgrade: { external: { generateUpgradePlanExtension: 'plan.test' } } })
    await createCluster(world)
    await becomeReady(world)
    await world.patch(Cluster, 'demo', { spec: { topology: { version: 'v1.35.0' } } })
    expect(await world.reconciled()).toBe(
      'False ReconcileFailed: error computing the desired state of the Cluster topology: failed to get upgrade plan from extension: no map',
    )
    await world.advance(seconds(1))
    expect(waitingHooks(await world.cluster())).toMatchObject([
      { hook: 'GenerateUpgradePlan', handlers: ['plan.test'], calls: 8, message: 'no map' },
    ])
    fails = false
    await world.advance(seconds(2))
    expect(waitingHooks(await world.cluster())).toEqual([])
    expect((await world.only(DevControlPlane))['spec']).toMatchObject({ version: 'v1.35.0' })
  })

  test('fails with an invalid plan of an extension', async () => {
    const world = await aWorld()
    world.runtime.on('GenerateUpgradePlan', () => ({ controlPlaneUpgrades: [{ version: 'v1.36.2' }] }))
    await createClass(world, { ...classSpec, upgrade: { external: { generateUpgradePlanExtension: 'plan.test' } } })
    await createCluster(world)
    await becomeReady(world)
    await world.patch(Cluster, 'demo', { spec: { topology: { version: 'v1.36.2' } } })
    expect(await world.reconciled()).toBe(
      'False ReconcileFailed: error computing the desired state of the Cluster topology: ' +
        'invalid ControlPlane upgrade plan: item 0; expecting a version with minor 34 or 35, found version v1.36.2',
    )
  })

  test.each([
    ['down', 'v1.33.0', 'version cannot be decreased from "1.34.0" to "1.33.0"'],
    ['two minor versions up', 'v1.36.0', 'version cannot be increased from "1.34.0" to "1.36.0"'],
    ['to an invalid version', 'v1.x', 'version must be a valid semantic version'],
  ])('%s is rejected', async (_, version, message) => {
    const world = await aReadyWorld()
    await expect(world.patch(Cluster, 'demo', { spec: { topology: { version } } })).rejects.toThrow(message)
  })
})

describe('changes', () => {
  test('another value of a variable creates new templates, and the control plane refers to its new template, with the events of upstream', async () => {
    const world = await aReadyWorld()
    const namesBefore = await world.names(DevMachineTemplate)
    await world.patch(Cluster, 'demo', { spec: { topology: { variables: [{ name: 'size', value: 'xl' }] } } })

    const namesAfter = await world.names(DevMachineTemplate)
    expect(namesAfter.filter((name) => !namesBefore.includes(name))).toHaveLength(2)
    const { items } = await world.client.list(Event, { namespace: 'default' })
    const events = items.map(({ reason, message }) => `${reason} ${message}`.replaceAll(/demo[a-z0-9-]*/g, 'demo'))
    expect(events).toContain(
      'TopologyCreate Created DevMachineTemplate "default/demo" as a replacement for "demo" (template rotation)',
    )
    expect(events).toContain('TopologyUpdate Updated DevControlPlane "default/demo"')
    expect(events, 'upstream has no such event').not.toContain('TopologyDelete Deleted DevMachineTemplate "default/demo"')
    const controlPlane = await world.only(DevControlPlane)
    const ref = (controlPlane['spec'] as { machineTemplate: { spec: { infrastructureRef: { name: string } } } }).machineTemplate
      .spec.infrastructureRef
    expect(namesBefore).not.toContain(ref.name)
    const template = (await world.client.get(DevMachineTemplate, { namespace: 'default', name: ref.name })) as UnknownObject
    expect(template['spec']).toEqual({ template: { spec: { disk: 1, size: 'xl' } } })
    const { revision } = world.store
    await world.advance(minutes(5))
    expect(world.store.revision).toBe(revision)
  })

  test('the default of a new variable is stored, so that another default does not change existing Clusters', async () => {
    const world = await aReadyWorld()
    const withDefault = (value: string) => ({
      spec: { variables: [...classSpec.variables, { ...classSpec.variables[0], name: 'zone', schema: aString(value) }] },
    })
    await world.patch(ClusterClass, 'quick', withDefault('a'))
    await world.patch(ClusterClass, 'quick', withDefault('b'))
    expect((await world.cluster()).spec.topology?.variables).toEqual([
      { name: 'size', value: 'm' },
      { name: 'zone', value: 'a' },
    ])
  })

  test('a changed template of the class is applied to the Clusters of the class', async () => {
    const world = await aReadyWorld()
    await world.patch(DevMachineTemplate, 'quick', { spec: { template: { spec: { disk: 2 } } } })
    const { spec } = (await world.only(MachineDeployment as never)) as unknown as MachineDeployment
    const { name } = spec.template.spec.infrastructureRef
    const template = (await world.client.get(DevMachineTemplate, { namespace: 'default', name })) as UnknownObject
    expect(template['spec']).toEqual({ template: { spec: { disk: 2, size: 'm' } } })
  })

  test('an edit of the class is applied to its Clusters without an error condition', async () => {
    const world = await aReadyWorld()
    const since = async () => getCondition((await world.cluster()) as never, 'TopologyReconciled')?.lastTransitionTime
    const timeBefore = await since()
    await world.advance(minutes(1))
    await world.patch(ClusterClass, 'quick', { spec: { controlPlane: { metadata: { labels: { tier: 'gold' } } } } })
    expect((await world.only(DevControlPlane)).metadata.labels).toMatchObject({ tier: 'gold' })
    expect(await since()).toBe(timeBefore)
  })

  test('reports a broken class on its Clusters', async () => {
    const world = await aReadyWorld()
    const templateRef = { ...classSpec.infrastructure.templateRef, name: 'gone' }
    await world.patch(ClusterClass, 'quick', { spec: { infrastructure: { templateRef } } })
    expect(await world.reconciled()).toBe(
      'False ReconcileFailed: ClusterClass is not successfully reconciled: ClusterClass.status.observedGeneration must be 2, but is 1',
    )
  })

  test('labels of a template of the class and of the topology are applied in place, without new templates', async () => {
    const world = await aReadyWorld()
    const namesBefore = await world.names(DevMachineTemplate)
    await world.patch(DevMachineTemplate, 'quick', { metadata: { labels: { shelf: '2' } } })
    await world.patch(Cluster, 'demo', { spec: { topology: { controlPlane: { metadata: { labels: { tier: 'gold' } } } } } })
    expect(await world.names(DevMachineTemplate)).toEqual(namesBefore)
    const labels = (await world.client.list(DevMachineTemplate)).items.map(({ metadata }) => metadata.labels?.['shelf'])
    expect(labels).toEqual(['2', '2', '2'])
    const { items: events } = await world.client.list(Event, { namespace: 'default' })
    expect(events.map(({ reason, message }) => `${reason} ${message}`)).toContain(
      `TopologyUpdate Updated DevMachineTemplate "default/${namesBefore[0]}" (metadata changes)`,
    )
    expect((await world.only(DevControlPlane)).metadata.labels).toMatchObject({ tier: 'gold' })
  })

  test('another order of taints and readiness gates is applied, once', async () => {
    const world = await aReadyWorld()
    const setWorker = async (taintKeys: string[], conditionTypes: string[]) => {
      const taints = taintKeys.map((key) => ({ key, effect: 'NoSchedule', propagation: 'Always' }))
      const readinessGates = conditionTypes.map((conditionType) => ({ conditionType }))
      const worker = { class: 'default', name: 'md-0', replicas: 2, taints, readinessGates }
      await world.patch(Cluster, 'demo', { spec: { topology: { workers: { machineDeployments: [worker] } } } })
      const { taints: appliedTaints, readinessGates: appliedGates } = (
        (await world.only(MachineDeployment)) as unknown as MachineDeployment
      ).spec.template.spec
      return [appliedTaints?.map(({ key }) => key), appliedGates?.map(({ conditionType }) => conditionType)]
    }
    expect(await setWorker(['a', 'b'], ['A', 'B'])).toEqual([
      ['a', 'b'],
      ['A', 'B'],
    ])
    expect(await setWorker(['b', 'a'], ['B', 'A'])).toEqual([
      ['b', 'a'],
      ['B', 'A'],
    ])
    await world.advance(minutes(1))
    const { revision } = world.store
    await world.advance(minutes(30))
    expect(world.store.revision).toBe(revision)
  })

  test('new MachineDeployments are created although the update of an existing one fails', async () => {
    let rejected: string | undefined
    const between = (transport: Transport): Transport =>
      withSend(transport, async (request, signal) => {
        const isRejected = request.verb === 'patch' && request.plural === MachineDeployment.plural && request.name === rejected
        if (isRejected) throw new StatusError('Forbidden', 'quota')
        return transport.send(request, signal)
      })
    const world = await aReadyWorld({ between })
    rejected = (await world.only(MachineDeployment as never)).metadata.name
    const worker = (name: string, replicas: number) => ({ class: 'default', name, replicas })
    const machineDeployments = [worker('md-0', 3), worker('md-1', 1)]
    await world.patch(Cluster, 'demo', { spec: { topology: { workers: { machineDeployments } } } })
    const replicas = async () =>
      Object.fromEntries(
        (await world.client.list(MachineDeployment, { namespace: 'default' })).items.map(({ metadata, spec }) => [
          metadata.labels?.['topology.cluster.x-k8s.io/deployment-name'],
          spec.replicas,
        ]),
      )
    // Upstream: reconcileMachineDeployments in reconcile_state.go
    expect(await replicas()).toEqual({ 'md-0': 2, 'md-1': 1 })
    expect(await world.reconciled()).toBe(
      'False ReconcileFailed: error reconciling the Cluster topology: ' +
        `failed to create patch helper for MachineDeployment default/${rejected}: ` +
        'server side apply dry-run failed for modified object: quota',
    )
    rejected = undefined
    await world.advance(minutes(5))
    expect(await replicas()).toEqual({ 'md-0': 3, 'md-1': 1 })
    expect(await world.reconciled()).toBe('True ReconcileSucceeded')
  })

  test('the kind of a bootstrap template cannot change, as in upstream', async () => {
    const world = await aReadyWorld()
    const before = (await world.only(MachineDeployment as never))['spec']
    const { name, uid } = (await world.client.list(DevConfigTemplate, { namespace: 'default' })).items
      .map(({ metadata }) => metadata)
      .find(({ name }) => name !== 'quick')!
    const controlPlaneTemplates = await world.names(DevControlPlaneTemplate)
    // Any kind other than that of the current template.
    const bootstrap = { templateRef: classSpec.controlPlane.templateRef }
    const machineDeployments = [{ ...classSpec.workers.machineDeployments[0], bootstrap }]
    await world.patch(ClusterClass, 'quick', { spec: { workers: { machineDeployments } } })
    await world.advance(seconds(30))

    const deployment = await world.only(MachineDeployment as never)
    // Upstream: updateMachineDeployment in reconcile_state.go, dryRunSSAPatch in dryrun.go; applyPatcher in patch.go of k8s.io/apiserver.
    expect(await world.reconciled()).toBe(
      `False ReconcileFailed: error reconciling the Cluster topology: failed to reconcile MachineDeployment default/${deployment.metadata.name}: ` +
        `failed to create patch helper for DevConfigTemplate default/${name}: server side apply dry-run failed for modified object: ` +
        `Operation cannot be fulfilled on devcontrolplanetemplates.controlplane.example.com "${name}": ` +
        `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`,
    )
    expect(deployment['spec']).toEqual(before)
    expect(await world.names(DevControlPlaneTemplate)).toEqual(controlPlaneTemplates)
  })

  test('keeps fields of the provider, and restores fields that a user changed', async () => {
    const world = await aReadyWorld()
    const { name } = (await world.only(DevCluster)).metadata
    await world.patch(DevCluster, name, { spec: { region: 'y', controlPlaneEndpoint: { host: '10.0.0.1', port: 6443 } } })
    expect((await world.only(DevCluster))['spec']).toEqual({
      region: 'x',
      controlPlaneEndpoint: { host: '10.0.0.1', port: 6443 },
    })
  })

  test.each<[string, Kind, Kind | undefined]>([
    ['an infrastructure cluster', DevCluster, DevClusterTemplate],
    ['a template', DevMachineTemplate, DevMachineTemplate],
    ['a health check', MachineHealthCheck, undefined],
  ])('an update does not create %s that was deleted after it was read', async (_, kind, template) => {
    let toDelete: string | undefined
    const results: unknown[] = []
    const between = (transport: Transport): Transport =>
      withSend(transport, async (request, signal) => {
        const { patchType, group, version, plural, namespace, name } = request
        const isUpdate = patchType === 'application/apply-patch+yaml' && plural === kind.plural && name === toDelete
        if (!isUpdate) return transport.send(request, signal)
        toDelete = undefined
        await transport.send({ verb: 'delete', group, version, plural, namespace: namespace!, name: name! }, signal)
        const result = transport.send(request, signal)
        results.push(await result.catch(({ reason }: StatusError) => reason))
        return result
      })
    const world = await aReadyWorld({ between })
    const setChecks = (nodeStartupTimeoutSeconds: number) =>
      world.patch(Cluster, 'demo', {
        spec: { topology: { controlPlane: { healthCheck: { checks: { nodeStartupTimeoutSeconds } } } } },
      })
    await setChecks(60)
    toDelete = (await world.names(kind)).find((name) => name !== 'quick')!
    if (template) await world.patch(template, 'quick', { spec: { template: { metadata: { labels: { shelf: '2' } } } } })
    else await setChecks(90)
    expect(results).toEqual(['Conflict'])
  })

  test('lost managedFields of an object are repaired, so that fields can be removed again', async () => {
    const world = await aReadyWorld()
    const withLabels = (labels: object) => ({ spec: { topology: { controlPlane: { metadata: { labels } } } } })
    await world.patch(Cluster, 'demo', withLabels({ tier: 'gold' }))
    const { name } = (await world.only(DevControlPlane)).metadata
    await world.patch(DevControlPlane, name, { metadata: { managedFields: [{}] } })
    const { managedFields } = (await world.only(DevControlPlane)).metadata
    expect(managedFields?.map(({ manager }) => manager)).toEqual(['capi-topology'])
    await world.patch(Cluster, 'demo', withLabels({ tier: null }))
    expect((await world.only(DevControlPlane)).metadata.labels).not.toHaveProperty('tier')
  })

  test('a MachineDeployment that is removed from the topology is deleted with its templates', async () => {
    const world = await aReadyWorld()
    await world.client.patch(
      Cluster,
      { namespace: 'default', name: 'demo' },
      { type: 'merge', body: { spec: { topology: { workers: null } } } },
    )
    await world.advance(seconds(5))
    expect(await world.names(MachineDeployment as never)).toEqual([])
    expect(await world.names(DevConfigTemplate)).toEqual(['quick'])
    expect(await world.names(DevMachineTemplate)).toHaveLength(2)
  })
})

test('deletion waits for BeforeClusterDelete', async () => {
  const world = await aWorld()
  let blocks = true
  world.runtime.on('BeforeClusterDelete', () => (blocks ? { retryAfterSeconds: 3, message: 'backup' } : {}))
  await createClass(world)
  await world.client.create(Cluster, {
    metadata: { name: 'demo', namespace: 'default', finalizers: ['cluster.cluster.x-k8s.io'] },
    spec: { topology: topology() },
  } as never)
  await world.settle()
  await becomeReady(world)
  await world.client.delete(Cluster, { namespace: 'default', name: 'demo' })
  await world.settle()
  expect(await world.reconciled()).toBe(
    'False Deleting: Cluster is deleting. Following hooks are blocking delete: BeforeClusterDelete: backup',
  )
  expect((await world.cluster()).metadata.annotations?.['runtime.cluster.x-k8s.io/ok-to-delete']).toBeUndefined()
  blocks = false
  await world.advance(seconds(4))
  expect((await world.cluster()).metadata.annotations?.['runtime.cluster.x-k8s.io/ok-to-delete']).toBe('')
  expect(world.runtime.trace).toEqual(['BeforeClusterDelete', 'BeforeClusterDelete'])
  expect(await world.reconciled()).toBe('False Deleting: Cluster is deleting')
})

/**
 * Returns a wrapper for a transport, and its state. The wrapper lets `writes` writes pass, not counting Events and dry runs. From the next
 * write on, all requests except watches fail, as for a killed process, until `state.stopped` is reset.
 */
function stopAfter(writes: number) {
  const state = { stopped: false, wasStopped: false }
  let remainingWrites = writes
  const between = (transport: Transport): Transport =>
    withSend(transport, async (request, signal) => {
      const isWrite = !['get', 'list'].includes(request.verb) && request.plural !== 'events' && request.options?.dryRun !== true
      if (isWrite && remainingWrites-- <= 0 && !state.wasStopped) state.stopped = state.wasStopped = true
      if (state.stopped) throw new Error('stopped')
      return transport.send(request, signal)
    })
  return { state, between }
}

test('repeated conflicts are not reported in TopologyReconciled', async () => {
  let conflicts = 0
  const bodies: string[] = []
  const between = (transport: Transport): Transport =>
    withSend(transport, async (request, signal) => {
      if (request.verb === 'patch' && request.plural === 'clusters') {
        bodies.push(JSON.stringify(request.body))
        const writesReferences = request.subresource === undefined && bodies.at(-1)!.includes('infrastructureRef')
        if (writesReferences && conflicts++ < 5) throw new StatusError('Conflict', 'the object has been modified')
      }
      return transport.send(request, signal)
    })
  const world = await aWorld({ between })
  await createClass(world)
  await createCluster(world)
  await world.advance(seconds(1))
  expect(conflicts).toBeGreaterThan(5)
  expect(await world.reconciled()).toBe('True ReconcileSucceeded')
  expect(bodies.filter((body) => body.includes('ReconcileFailed'))).toEqual([])
})

describe('a stale copy of the Cluster', () => {
  /** Reconciles once, like a new process whose cache contains the Cluster `stale`. */
  async function reconcileWith(world: World, stale: Cluster) {
    const { clock } = world
    const client = world.controllerClient()
    const list = <T extends KubeObject>(kind: Kind<T>) => client.list(kind, { namespace: stale.metadata.namespace! })
    const objects = new Map<string, KubeObject>()
    const crds = (await client.list(CustomResourceDefinition)).items
    for (const kind of [ClusterClass, ...devKinds, ...devTemplateKinds] as Kind[]) {
      for (const object of (await list(kind)).items) objects.set(`${kind.kind}/${object.metadata.name}`, object)
    }
    const peek = (kind: Kind, key: { name: string }) =>
      kind === (Cluster as Kind) ? stale : objects.get(`${kind.kind}/${key.name}`)
    const cache = {
      peek,
      newest: peek,
      get: async (_: Kind, key: { name: string }) => crds.find(({ metadata }) => metadata.name === key.name),
      list: async () => ({ items: [] }),
      byIndex: () => [],
    }
    const { signal } = new AbortController()
    const context = {
      client,
      cache,
      clock,
      log: silent,
      signal,
      events: { event() {} },
      random: seededRandom(1),
      withoutWorker: <T>(work: () => Promise<T>) => work(),
      watch: async () => {},
    }
    const memory = new TopologyMemory(world.runtime.client, clock)
    await reconcileTopology({ namespace: 'default', name: 'demo' }, context as unknown as ReconcileContext, memory)
  }

  test('read before its references were written: no object is created twice', async () => {
    const world = await aWorld()
    await createClass(world)
    await world.manager.stop()
    const { metadata } = await world.create(Cluster, 'demo', { spec: { topology: topology() } })
    const stale = await world.cluster()
    expect(metadata.uid).toBe(stale.metadata.uid)
    await reconcileWith(world, stale)
    const namesBefore = await Promise.all(
      [DevCluster, DevControlPlane, MachineDeployment as Kind, DevMachineTemplate].map((kind) => world.names(kind)),
    )
    await reconcileWith(world, stale)
    const namesAfter = await Promise.all(
      [DevCluster, DevControlPlane, MachineDeployment as Kind, DevMachineTemplate].map((kind) => world.names(kind)),
    )
    expect(namesBefore.map((names) => names.length)).toEqual([1, 1, 1, 3])
    expect(namesAfter).toEqual(namesBefore)
  })

  test('read before its pending hook was removed: AfterControlPlaneInitialized is not called again', async () => {
    const world = await aWorld()
    world.runtime.proceedAll('AfterControlPlaneInitialized')
    await createClass(world)
    await createCluster(world)
    await world.reportControlPlane('v1.34.0')
    const { status, ...cluster } = await world.cluster()
    await becomeReady(world)
    const initialized = { ...cluster, status: { ...status, conditions: (await world.cluster()).status!.conditions! } }
    expect(initialized.metadata.annotations).toMatchObject({
      'runtime.cluster.x-k8s.io/pending-hooks': 'AfterControlPlaneInitialized',
    })
    await reconcileWith(world, initialized)
    expect(world.runtime.trace).toEqual(['AfterControlPlaneInitialized'])
    expect((await world.cluster()).metadata.annotations?.['runtime.cluster.x-k8s.io/pending-hooks']).toBeUndefined()
  })
})

describe('a stop between any two writes leads to the same result', () => {
  const kinds = [DevCluster, DevControlPlane, DevMachineTemplate, DevConfigTemplate, MachineDeployment] as Kind[]
  const inventory = async (world: World) =>
    Promise.all(kinds.map(async (kind) => `${kind.kind} ${(await world.names(kind)).length}`))

  /**
   * Returns the objects that would not be deleted with the Cluster. MachineDeployments are left out: their own controller, which does not run
   * here, adds their owner.
   */
  const unownedObjects = async (world: World) => {
    const { metadata } = await world.cluster().catch(() => ({ metadata: { uid: '' } }))
    const lists = await Promise.all(
      kinds.filter((kind) => kind.kind !== 'MachineDeployment').map((kind) => world.client.list(kind)),
    )
    return lists
      .flatMap(({ items }) => items)
      .filter((object) => object.metadata.labels?.['topology.cluster.x-k8s.io/owned'] !== undefined)
      .filter((object) => !object.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid))
      .map((object) => `${object.kind} ${object.metadata.name}`)
  }

  /**
   * Creates a Cluster, makes it ready, changes a variable and upgrades it. If this takes more than `writes` writes, the first process stops
   * after them, and a second process continues.
   */
  async function runLifecycle(writes: number) {
    const [store, clock, runtime] = [memoryStore(), new VirtualClock(), aRuntime()]
    runtime.proceedAll(...mainHooks)
    const { state, between } = stopAfter(writes)
    const unowned: string[] = []
    // Requests of the stopped process fail again and again, so `settle` must not wait long for their success.
    let world = await aWorld({ store, clock, runtime, between, patience: 20 })
    const proceed = async () => {
      await world.settle()
      if (!state.stopped) return
      state.stopped = false
      await world.manager.stop()
      unowned.push(...(await unownedObjects(world)))
      world = await aWorld({ store, clock, runtime })
      await world.advance(seconds(1))
    }
    await createTemplates(world)
    await world.create(ClusterClass, 'quick', { spec: classSpec })
    await proceed()
    await world.create(Cluster, 'demo', { spec: { topology: topology() } })
    await proceed()
    await becomeReady(world)
    await proceed()
    await world.patch(Cluster, 'demo', { spec: { topology: { variables: [{ name: 'size', value: 'xl' }] } } })
    await proceed()
    await world.patch(Cluster, 'demo', { spec: { topology: { version: 'v1.35.0' } } })
    await proceed()
    await world.reportControlPlane('v1.35.0')
    await proceed()
    await world.advance(minutes(1))
    const result = {
      inventory: await inventory(world),
      reconciled: await world.reconciled(),
      trace: runtime.trace,
      unowned: [...unowned, ...(await unownedObjects(world))],
      wasStopped: state.wasStopped,
    }
    for (const close of closers.splice(0).reverse()) await close()
    return result
  }

  test('no object is created twice, and no hook is skipped', async () => {
    const undisturbed = await runLifecycle(10_000)
    expect(undisturbed.reconciled).toBe('True ReconcileSucceeded')
    const hooks = mainHooks.slice(0, 5)
    expect(undisturbed.trace.map((line) => line.split(' ')[0])).toEqual(hooks)

    for (let writes = 0; ; writes++) {
      const { reconciled, trace, inventory: finalInventory, unowned, wasStopped } = await runLifecycle(writes)
      if (!wasStopped) break
      const stop = `stopped after ${writes} writes`
      expect(`${stop}: ${reconciled}`).toBe(`${stop}: True ReconcileSucceeded`)
      expect([stop, new Set(trace.map((line) => line.split(' ')[0]))]).toEqual([stop, new Set(hooks)])
      expect([stop, ...finalInventory]).toEqual([stop, ...undisturbed.inventory])
      // An object that the Cluster does not own would remain after the Cluster is deleted.
      expect([stop, ...unowned]).toEqual([stop])
    }
  })
})

describe('patches of extensions', () => {
  interface WireItem {
    uid: string
    holderReference: { kind: string; name: string; fieldPath: string }
    object: { kind: string; spec: { template: { spec: Record<string, unknown> } } }
    variables?: { name: string; value: { [part: string]: unknown } }[]
  }
  type Request = { variables: { name: string; value: unknown }[]; items: WireItem[]; settings?: object }
  const base64 = (patch: unknown) => Buffer.from(JSON.stringify(patch)).toString('base64')
  const json = (item: WireItem, ...operations: object[]) => ({ uid: item.uid, patchType: 'JSONPatch', patch: base64(operations) })
  const merge = (item: WireItem, patch: object) => ({ uid: item.uid, patchType: 'JSONMergePatch', patch: base64(patch) })
  const withPatches = (...patches: object[]) => ({ ...classSpec, patches: [...classSpec.patches, ...patches] })
  const external = { name: 'net', external: { generatePatchesExtension: 'net.ext' } }
  const itemOf = (request: unknown, kind: string, field = '') =>
    (request as Request).items.find(
      ({ object, holderReference }) => object.kind === kind && holderReference.fieldPath.includes(field),
    )!

  async function aPatchedCluster(generate: (request: Request) => HookResponse, patch: object = external) {
    const world = await aWorld()
    const requests: Request[] = []
    world.runtime.on('GeneratePatches', (request) => {
      requests.push(structuredClone(request) as unknown as Request)
      return generate(request as unknown as Request)
    })
    await createClass(world, withPatches(patch))
    await createCluster(world)
    return { world, requests }
  }
  const machineTemplates = async (world: World) =>
    (await world.client.list(DevMachineTemplate)).items
      .filter(({ metadata: { name } }) => name !== 'quick')
      .map((template) => (template as unknown as WireItem['object']).spec.template.spec)

  test('see every template with its variables and the changes of earlier patches, and change the spec', async () => {
    const { world, requests } = await aPatchedCluster((request) => ({
      items: [
        json(itemOf(request, 'DevMachineTemplate', 'spec.template.spec'), {
          op: 'replace',
          path: '/spec/template/spec/disk',
          value: 9,
        }),
        merge(itemOf(request, 'DevControlPlaneTemplate'), { spec: { template: { spec: { config: { audit: true } } } } }),
        json(itemOf(request, 'DevClusterTemplate')),
        merge(itemOf(request, 'DevConfigTemplate'), {}),
      ],
    }))
    await becomeReady(world)
    expect(await world.reconciled()).toBe('True ReconcileSucceeded')
    const [first] = requests
    expect(first!.items.map(({ object, holderReference: { kind, fieldPath } }) => `${object.kind} ${kind} ${fieldPath}`)).toEqual(
      [
        'DevClusterTemplate Cluster spec.infrastructureRef',
        'DevControlPlaneTemplate Cluster spec.controlPlaneRef',
        `DevMachineTemplate DevControlPlane ${testContract() === 'v1beta1' ? 'spec.machineTemplate' : 'spec.machineTemplate.spec'}.infrastructureRef`,
        'DevConfigTemplate MachineDeployment spec.template.spec.bootstrap.configRef',
        'DevMachineTemplate MachineDeployment spec.template.spec.infrastructureRef',
      ],
    )
    // The inline patch of the class is applied first; its variable is not visible to the external patch.
    expect(first!.items[2]!.object.spec.template.spec).toEqual({ disk: 1, size: 'm' })
    expect(first!.variables.map(({ name }) => name)).toEqual(['builtin'])
    // The first request already has the labels that the first reconcile adds to the Cluster.
    const labels = { 'cluster.x-k8s.io/cluster-name': 'demo', 'topology.cluster.x-k8s.io/owned': '' }
    expect(first!.variables[0]!.value).toMatchObject({ cluster: { metadata: { labels } } })
    expect(first!.items[4]!.variables?.[0]?.value).toMatchObject({ machineDeployment: { topologyName: 'md-0', replicas: 2 } })
    expect(first!.items[0]!.variables).toBeUndefined()
    // The uids of the templates are the same in every reconcile.
    expect(new Set(requests.map(({ items }) => items.map(({ uid }) => uid).join())).size).toBe(1)

    expect(await machineTemplates(world)).toEqual(
      expect.arrayContaining([
        { disk: 1, size: 'm' },
        { disk: 9, size: 'm' },
      ]),
    )
    expect(await world.only(DevControlPlane)).toMatchObject({ spec: { config: { audit: true }, version: 'v1.34.0' } })
  })

  test('do not see annotations of kubectl and of conversion on the templates of the class', async () => {
    const world = await aWorld()
    const requests: Request[] = []
    world.runtime.on('GeneratePatches', (request) => {
      requests.push(structuredClone(request) as unknown as Request)
      return { items: [] }
    })
    await createClass(world, withPatches(external))
    const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': '{}', 'cluster.x-k8s.io/conversion-data': '{}' }
    for (const kind of [DevClusterTemplate, DevMachineTemplate]) {
      await world.client.patch(
        kind,
        { namespace: 'default', name: 'quick' },
        { type: 'merge', body: { metadata: { annotations } } },
      )
    }
    await createCluster(world)
    const visible = requests.at(-1)!.items.flatMap(({ object }) => {
      const { metadata } = object as unknown as { metadata: { annotations?: Record<string, string> } }
      return Object.keys(metadata.annotations ?? {}).filter((name) => name in annotations)
    })
    expect(visible).toEqual([])
    expect(requests.at(-1)!.items).toHaveLength(5)
  })

  test('cannot change fields that core sets, and the attempt is reported once', async () => {
    const { world } = await aPatchedCluster((request) => ({
      items: [
        merge(itemOf(request, 'DevControlPlaneTemplate'), {
          metadata: { name: 'mine' },
          spec: { template: { spec: { version: 'v9.9.9', replicas: 7 } } },
        }),
      ],
    }))
    await becomeReady(world)
    expect(await world.only(DevControlPlane)).toMatchObject({ spec: { version: 'v1.34.0', replicas: 1 } })
    const { items } = await world.client.list(Event, { namespace: 'default' })
    const events = items.filter(({ reason }) => reason === 'PatchPartsIgnored')
    expect(events.map(({ message }) => message?.replaceAll(/demo-[a-z0-9]{5}/g, 'demo-x'))).toEqual([
      'patch "net" of DevControlPlaneTemplate for Cluster demo (spec.controlPlaneRef) does not change metadata.name: only spec, ' +
        'labels and annotations of a template can be patched; patches of DevControlPlane demo-x do not change spec.replicas, ' +
        'spec.version: core sets these fields',
    ])
  })

  test.each([
    [
      'is for an unknown template',
      (): HookResponse => ({ items: [{ uid: 'nobody', patchType: 'JSONPatch', patch: base64([{}]) }] }),
      'unable to find corresponding request item for patch',
    ],
    [
      'does not apply',
      (request: Request): HookResponse => ({ items: [json(request.items[0]!, { op: 'remove', path: '/spec/nothing' })] }),
      'failed to apply patch: error applying json patch (RFC6902): ',
    ],
    [
      'is not a list of operations',
      (request: Request): HookResponse => ({
        items: [{ uid: request.items[0]!.uid, patchType: 'JSONPatch', patch: base64({}) }],
      }),
      'failed to apply patch: error decoding json patch (RFC6902)',
    ],
    [
      'is of an unknown type',
      (request: Request): HookResponse => ({ items: [{ uid: request.items[0]!.uid, patchType: 'Other', patch: base64({}) }] }),
      'failed to apply patch: unknown patchType Other',
    ],
  ])('the reconcile fails after a response whose patch %s', async (_, generate, problem) => {
    const { world } = await aPatchedCluster(generate)
    expect(await world.reconciled()).toMatch(
      /^False ReconcileFailed: error computing the desired state of the Cluster topology: failed to apply patches: failed to apply patches for patch "net": /,
    )
    expect(await world.reconciled()).toMatch(problem)
    expect(await world.names(DevCluster)).toEqual([])
  })

  test('are requested even when enabledIf is false, as by upstream', async () => {
    const { requests, world } = await aPatchedCluster(() => ({}), {
      ...external,
      enabledIf: '{{ eq .builtin.cluster.name "other" }}',
    })
    expect(requests).not.toEqual([])
    expect(await world.names(DevCluster)).toHaveLength(1)
  })

  test('the reconcile fails, as in upstream, if a patch has only a handler of ValidateTopology', async () => {
    const world = await aWorld()
    await createClass(world, withPatches({ name: 'check', external: { validateTopologyExtension: 'check.ext' } }))
    await createCluster(world)
    expect(await world.reconciled()).toBe(
      'False ReconcileFailed: error computing the desired state of the Cluster topology: failed to apply patches: failed to create patch generator for patch "check"',
    )
    expect(await world.names(DevCluster)).toEqual([])
  })

  test('a topology that an extension rejects is not applied', async () => {
    const world = await aWorld()
    const requests: Request[] = []
    let accepts = false
    world.runtime.on('ValidateTopology', (request) => {
      requests.push(structuredClone(request) as unknown as Request)
      if (!accepts) throw new Error('failed to call extension handler "check.ext": got failure response with message: no disks')
      return {}
    })
    world.runtime.on('GeneratePatches', () => ({}))
    const external = { generatePatchesExtension: 'patch.ext', validateTopologyExtension: 'check.ext' }
    await createClass(world, withPatches({ name: 'check', external }))
    await createCluster(world)
    expect(await world.reconciled()).toBe(
      'False ReconcileFailed: error computing the desired state of the Cluster topology: failed to apply patches: validation of patch "check" failed: ' +
        'failed to call extension handler "check.ext": got failure response with message: no disks',
    )
    expect(await world.names(DevCluster)).toEqual([])
    // The validation runs after all patches, and its items have no uid.
    expect(requests[0]!.items[4]!.object.spec.template.spec).toEqual({ disk: 1, size: 'm' })
    expect(requests[0]!.items[0]!.uid).toBeUndefined()
    accepts = true
    await world.advance(minutes(1))
    expect(await world.names(DevCluster)).toHaveLength(1)
  })
})
