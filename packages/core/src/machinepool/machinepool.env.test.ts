import { Cluster, Machine, MachinePool, ReplicasManagedByAnnotation } from '@capstan/api'
import {
  type ApiRequest,
  Event,
  hours,
  isReason,
  legacyConditionsOf,
  type Logger,
  messageOf,
  minutes,
  Node,
  orAbsent,
  seconds,
  silent,
  StatusError,
  type Transport,
  withSend,
} from '@capstan/kube'
import {
  aMachinePool,
  type CoreEnv,
  collectWrites,
  conditionText,
  coreEnv,
  DevConfig,
  DevControlPlane,
  DevMachine,
  DevMachinePool,
  nodeConditions,
  OldMachinePool,
  stateText,
} from '@capstan/testing'
import { afterEach, describe, expect, test } from 'vitest'

let env: CoreEnv
afterEach(() => env.close())

type InfraPoolKind = typeof DevMachinePool
/**
 * For each contract version: a kind of infrastructure machine pool, and the status with which its provider reports whether the pool is
 * provisioned.
 */
const providers = [
  ['v1beta2', DevMachinePool, (provisioned: boolean) => ({ initialization: { provisioned } })],
  ['v1beta1', OldMachinePool, (ready: boolean) => ({ ready })],
] as const

const idOf = (name: string) => `dev:///${name}`

async function aNodeNamed(name: string, { version = 'v1.34.0', ready = 'True' } = {}): Promise<void> {
  await env.workload.create(Node, {
    metadata: { name },
    spec: {
      providerID: idOf(name),
      taints: [{ key: 'node.cluster.x-k8s.io/uninitialized', effect: 'NoSchedule' }],
    },
  })
  const status = { conditions: nodeConditions({ Ready: ready }), nodeInfo: { kubeletVersion: version } }
  await env.workload.patch(Node, { name }, { type: 'merge', body: { status } }, { subresource: 'status' })
}

const nodeNames = async () => (await env.workload.list(Node)).items.map(({ metadata }) => metadata.name)
const machineNames = async () =>
  (await env.client.list(Machine, { namespace: 'default' })).items.map(({ metadata }) => metadata.name)

/**
 * Provisions the Cluster and creates a MachinePool, its bootstrap config, which reports bootstrap data, and its infrastructure machine pool,
 * which has no status.
 */
async function aPool(kind: InfraPoolKind, spec: Partial<MachinePool['spec']> = {}, metadata: object = {}): Promise<void> {
  await env.provisionCluster()
  await env.create(DevConfig, 'mp')
  await env.create(kind, 'mp')
  const { template } = aMachinePool().spec
  const infrastructureRef = { ...template.spec.infrastructureRef, kind: kind.kind }
  await env.create(MachinePool, 'mp', {
    metadata,
    spec: { ...aMachinePool().spec, template: { ...template, spec: { ...template.spec, infrastructureRef } }, ...spec },
  })
  await env.patch(DevConfig, 'mp', {
    status: { initialization: { dataSecretCreated: true }, ready: true, dataSecretName: 'mp-data' },
  })
}

const pool = () => env.get(MachinePool, 'mp')
const legacy = async (type: string) => {
  const condition = legacyConditionsOf(await pool()).find((candidate) => candidate.type === type)
  return condition && stateText(condition)
}
const legacyCounts = async () => {
  const { readyReplicas, availableReplicas, unavailableReplicas } = (await pool()).status?.deprecated?.v1beta1 ?? {}
  return [readyReplicas, availableReplicas, unavailableReplicas]
}

// Upstream: reconcileBootstrap rejects only a missing name.
test('an empty name of the data Secret is copied', async () => {
  env = await coreEnv()
  await aPool(providers[0][1])
  await env.patch(DevConfig, 'mp', { status: { dataSecretName: '' } })
  const { spec, status } = await pool()
  expect([spec.template.spec.bootstrap.dataSecretName, status?.initialization?.bootstrapDataSecretCreated]).toEqual(['', true])
})

describe.each(providers)('a MachinePool whose infrastructure has contract %s', (_, kind, provisioned) => {
  const report = (ids: readonly string[], replicas = ids.length) =>
    env.patch(kind, 'mp', { spec: { providerIDList: ids.map(idOf) }, status: { ...provisioned(true), replicas } })

  test('copies provider IDs and replicas, finds its Nodes, and is Running', async () => {
    env = await coreEnv()
    await aPool(kind)
    expect(await pool()).toMatchObject({
      metadata: {
        finalizers: ['machinepool.cluster.x-k8s.io'],
        labels: { 'cluster.x-k8s.io/cluster-name': 'demo' },
        ownerReferences: [{ kind: 'Cluster', name: 'demo' }],
      },
      spec: { template: { spec: { bootstrap: { dataSecretName: 'mp-data' } } } },
      status: { phase: 'Provisioning', initialization: { bootstrapDataSecretCreated: true, infrastructureProvisioned: false } },
    })
    for (const owned of [kind, DevConfig]) {
      expect(await env.get(owned, 'mp')).toMatchObject({
        metadata: {
          labels: { 'cluster.x-k8s.io/cluster-name': 'demo' },
          ownerReferences: [{ kind: 'MachinePool', name: 'mp', controller: true }],
        },
      })
    }
    expect(await legacy('InfrastructureReady')).toBe('False WaitingForInfrastructure')

    await report(['a', 'b'])
    expect((await pool()).spec.providerIDList).toEqual(['dev:///a', 'dev:///b'])
    expect((await pool()).status).toMatchObject({
      phase: 'ScalingUp',
      replicas: 2,
      initialization: { infrastructureProvisioned: true },
    })
    expect(await legacyCounts()).toEqual([undefined, undefined, 2])

    await aNodeNamed('b')
    await aNodeNamed('a', { ready: 'False' })
    await env.settle()
    expect((await pool()).status?.nodeRefs?.map(({ name }) => name)).toEqual(['a', 'b'])
    expect(await legacyCounts()).toEqual([1, 1, 1])
    expect(await legacy('ReplicasReady')).toBe('False WaitingForReplicasReady')
    const ready = { status: { conditions: nodeConditions() } }
    await env.workload.patch(Node, { name: 'a' }, { type: 'merge', body: ready }, { subresource: 'status' })
    await env.advance(seconds(30))

    const machinePool = await pool()
    expect(machinePool.status).toMatchObject({
      phase: 'Running',
      replicas: 2,
      readyReplicas: 2,
      availableReplicas: 2,
      upToDateReplicas: 2,
      versions: [{ version: 'v1.34.0', replicas: 2 }],
      observedGeneration: machinePool.metadata.generation,
    })
    expect(conditionText(machinePool, 'Paused')).toBe('False NotPaused')
    expect(legacyConditionsOf(machinePool).map((condition) => `${condition.type} ${condition.status}`)).toEqual([
      'Ready True',
      'BootstrapReady True',
      'InfrastructureReady True',
      'ReplicasReady True',
    ])
    const node = await env.workload.get(Node, { name: 'a' })
    expect(node.metadata.annotations).toMatchObject({
      'cluster.x-k8s.io/cluster-name': 'demo',
      'cluster.x-k8s.io/cluster-namespace': 'default',
      'cluster.x-k8s.io/owner-kind': 'MachinePool',
      'cluster.x-k8s.io/owner-name': 'mp',
    })
    expect(node.spec?.taints).toBeUndefined()
    const { items } = await env.client.list(Event, { namespace: 'default' })
    const written = (event: Event) => Number(event.metadata.resourceVersion)
    const events = items.filter(({ reason }) => reason === 'SuccessfulSetNodeRefs').sort((a, b) => written(a) - written(b))
    expect(events.at(-1)?.message).toMatch(
      /^\[\{Kind:Node Namespace: Name:a UID:\S+ APIVersion:v1 ResourceVersion: FieldPath:\} \{Kind:Node /,
    )
  })

  test('updates its nodeRefs when the list of provider IDs changes order, shrinks or grows, and deletes the Nodes of removed IDs', async () => {
    env = await coreEnv()
    await aPool(kind)
    for (const name of ['a', 'b', 'c', 'd', 'other']) await aNodeNamed(name)
    await report(['a', 'b'])
    await report(['b', 'a'])
    expect((await pool()).status?.nodeRefs?.map(({ name }) => name)).toEqual(['b', 'a'])
    expect(await legacyCounts()).toEqual([2, 2, undefined])

    await report(['b', 'c'])
    expect((await pool()).status?.nodeRefs?.map(({ name }) => name)).toEqual(['b', 'c'])
    expect(await nodeNames()).toEqual(['b', 'c', 'd', 'other'])
    expect((await pool()).status?.phase).toBe('Running')

    await report(['b', 'c', 'd'])
    expect((await pool()).status).toMatchObject({ phase: 'ScalingDown', replicas: 3 })
    expect((await pool()).status?.nodeRefs?.map(({ name }) => name)).toEqual(['b', 'c', 'd'])
    await env.patch(MachinePool, 'mp', { spec: { replicas: 0 } })
    await report([])
    expect((await pool()).status).toMatchObject({ phase: 'Running', replicas: 0 })
    expect((await pool()).status?.nodeRefs).toBeUndefined()
    expect((await pool()).spec.providerIDList).toBeUndefined()
    expect(await nodeNames()).toEqual(['other'])
  })

  test('keeps its Nodes while the list of provider IDs is empty although replicas exist, and counts an ID without a Node as unavailable', async () => {
    env = await coreEnv()
    await aPool(kind)
    for (const name of ['a', 'b']) await aNodeNamed(name)
    await report(['a', 'b'])
    await report([], 2)
    expect((await pool()).spec.providerIDList).toEqual(['dev:///a', 'dev:///b'])
    expect(await nodeNames()).toEqual(['a', 'b'])

    await report(['a', 'b', 'ghost'], 3)
    expect((await pool()).status).toMatchObject({ replicas: 3, nodeRefs: [{ name: 'a' }, { name: 'b' }] })
    expect(await legacyCounts()).toEqual([2, 2, 1])
    expect(await legacy('ReplicasReady')).toBe('False WaitingForReplicasReady')
  })

  test('reports terminal failures of its provider, and infrastructure that has been deleted', async () => {
    env = await coreEnv()
    await aPool(kind)
    await env.patch(kind, 'mp', { status: { failureReason: 'Quota', failureMessage: 'no capacity' } })
    expect((await pool()).status?.deprecated?.v1beta1).toMatchObject({
      failureReason: 'Quota',
      failureMessage: `Failure detected from referenced resource infra.example.com/v1beta1, Kind=${kind.kind} with name "mp": no capacity`,
    })
    await report(['a'])
    await env.client.delete(kind, { namespace: 'default', name: 'mp' })
    await env.settle()
    expect((await pool()).status?.deprecated?.v1beta1).toMatchObject({
      failureReason: 'InvalidConfiguration',
      failureMessage: `MachinePool infrastructure resource ${kind.kind} default/mp has been deleted after being ready`,
    })
    expect(await legacy('InfrastructureReady')).toBe(
      `False IncorrectExternalRef: could not find infra reference of kind ${kind.kind} with name mp`,
    )
  })

  test('becomes unprovisioned when its provider reports so, and copies neither provider IDs nor replicas meanwhile', async () => {
    env = await coreEnv()
    await aPool(kind)
    await report(['a', 'b'])
    await env.patch(kind, 'mp', { status: { ...provisioned(false), replicas: 1 } })
    await env.patch(kind, 'mp', { spec: { providerIDList: [idOf('c')] } })
    expect(await pool()).toMatchObject({
      spec: { providerIDList: ['dev:///a', 'dev:///b'] },
      status: { replicas: 2, initialization: { infrastructureProvisioned: false } },
    })
  })

  test.each([
    ['spec.providerIDList[1]: expected a string of 1 to 512 characters, got number', { spec: { providerIDList: ['a', 7] } }],
    ['spec.providerIDList: expected a list of strings, got string', { spec: { providerIDList: 'a' } }],
    ['status.replicas: expected a 32-bit integer, got string', { status: { replicas: 'many' } }],
    ['status.infrastructureMachineKind: expected a string, got number', { status: { infrastructureMachineKind: 7 } }],
    [
      'spec.providerIDList: expected at most 10000 entries, got 10001',
      { spec: { providerIDList: Array.from({ length: 10_001 }, (_, index) => `i-${index}`) } },
    ],
  ])('names the field that breaks the contract, keeps its provider IDs, and does not write again: %s', async (message, wrong) => {
    const writes: ApiRequest[] = []
    env = await coreEnv({ between: collectWrites(writes) })
    await aPool(kind)
    await report(['a'])
    writes.length = 0
    await env.patch(kind, 'mp', wrong)
    expect(await legacy('InfrastructureReady')).toBe(
      `False IncorrectExternalRef: ${kind.kind} default/mp breaks the contract: ${message}`,
    )
    expect((await pool()).spec.providerIDList).toEqual(['dev:///a'])
    expect(writes.length).toBeLessThan(10)
    writes.length = 0
    await env.advance(minutes(30))
    expect(writes).toEqual([])
  })
})

describe('a MachinePool', () => {
  const kind = DevMachinePool
  test.each([DevConfig, kind])('has no observedGeneration until its $kind exists', async (missing) => {
    const writes: ApiRequest[] = []
    env = await coreEnv({ between: collectWrites(writes) })
    await env.provisionCluster()
    for (const providerKind of [DevConfig, kind]) if (providerKind !== missing) await env.create(providerKind, 'mp')
    await env.create(MachinePool, 'mp', { spec: aMachinePool().spec })
    await env.advance(minutes(5))
    expect((await pool()).status?.observedGeneration).toBeUndefined()
    writes.length = 0
    await env.advance(minutes(30))
    expect(writes).toEqual([])

    await env.create(missing, 'mp')
    await env.settle()
    const { status, metadata } = await pool()
    expect(status?.observedGeneration).toBe(metadata.generation)
  })

  test('has ReplicasReady True while it has no Node, and no counts of Nodes until its provider reports a machine', async () => {
    env = await coreEnv()
    await aPool(kind)
    expect(await legacy('ReplicasReady')).toBe('True ')
    expect(await legacyCounts()).toEqual([undefined, undefined, undefined])
    await env.patch(kind, 'mp', {
      spec: { providerIDList: [idOf('a')] },
      status: { initialization: { provisioned: true }, replicas: 1 },
    })
    expect(await legacy('ReplicasReady')).toBe('True ')
    expect(await legacyCounts()).toEqual([undefined, undefined, 1])
  })

  const report = (ids: readonly string[], replicas = ids.length, overrides: object = {}) =>
    env.patch(kind, 'mp', {
      spec: { providerIDList: ids.map(idOf) },
      status: { initialization: { provisioned: true }, replicas, ...overrides },
    })

  test('keeps ReplicasReady when the counts of Nodes are reset', async () => {
    env = await coreEnv()
    await aPool(kind)
    for (const name of ['a', 'b']) await aNodeNamed(name)
    await report(['a', 'b'])
    expect(await legacyCounts()).toEqual([2, 2, undefined])
    await report([])
    expect(await legacyCounts()).toEqual([undefined, undefined, undefined])
    expect(await legacy('ReplicasReady')).toBe('True ')
  })

  test('finds no Node until its provider reports how many machines there are', async () => {
    env = await coreEnv()
    await aPool(kind)
    await aNodeNamed('a')
    await env.patch(kind, 'mp', {
      spec: { providerIDList: [idOf('a')] },
      status: { initialization: { provisioned: true } },
    })
    expect(await legacy('ReplicasReady')).toBe('True ')
    expect((await pool()).status?.nodeRefs).toBeUndefined()
    await env.patch(kind, 'mp', { status: { replicas: 1 } })
    expect((await pool()).status?.nodeRefs).toHaveLength(1)
  })

  test('drops the counts of its Machines when its provider no longer supports Machines and has never reported replicas', async () => {
    env = await coreEnv()
    await aPool(kind)
    await report([], undefined, { infrastructureMachineKind: 'DevMachine', replicas: null })
    expect((await pool()).status).toMatchObject({ readyReplicas: 0, availableReplicas: 0 })
    await env.patch(kind, 'mp', { status: { infrastructureMachineKind: null } })
    expect((await pool()).status).not.toHaveProperty('readyReplicas')
    expect((await pool()).status).not.toHaveProperty('availableReplicas')
  })

  test.each([
    ['with a Node, keeps observedGeneration', ['a'], false],
    ['without provider IDs, updates observedGeneration', [], true],
  ] as const)('while its infrastructure is being deleted reports no versions and, %s', async (_, names, isObserved) => {
    env = await coreEnv()
    await aPool(kind)
    for (const name of names) await aNodeNamed(name)
    await report(names)
    expect((await pool()).status?.versions ?? []).toHaveLength(names.length)
    await env.patch(kind, 'mp', { metadata: { finalizers: ['test.dev/hold'] } })
    await env.client.delete(kind, { namespace: 'default', name: 'mp' })
    await env.patch(MachinePool, 'mp', { spec: { replicas: 5 } })
    await env.settle()
    const { metadata, status } = await pool()
    expect(status?.versions).toBeUndefined()
    expect(status?.observedGeneration === metadata.generation).toBe(isObserved)
  })

  test('deletes the Node of a removed ID even if the Node has registered again', async () => {
    env = await coreEnv()
    await aPool(kind)
    for (const name of ['a', 'b']) await aNodeNamed(name)
    await report(['a', 'b'])
    // The controller does not see the new Node `a` before the ID of `a` is removed.
    env.reachable = false
    await env.advance(minutes(3))
    await env.workload.delete(Node, { name: 'a' })
    await aNodeNamed('a')
    await report(['b'])
    env.reachable = true
    await env.advance(minutes(3))
    expect(await nodeNames()).toEqual(['b'])
    expect((await pool()).status?.nodeRefs?.map(({ name }) => name)).toEqual(['b'])
  })

  test('counts a Node once when the list of provider IDs repeats its ID, and reports the ID', async () => {
    env = await coreEnv()
    await aPool(kind)
    await aNodeNamed('a')
    await report(['a', 'a'])
    expect((await pool()).spec.providerIDList).toEqual(['dev:///a', 'dev:///a'])
    expect((await pool()).status?.nodeRefs).toHaveLength(1)
    expect(await legacy('ReplicasReady')).toBe(
      'False WaitingForReplicasReady: spec.providerIDList has IDs more than once: dev:///a',
    )
  })

  test('reports the versions of its Nodes; once the last Node has been deleted, reports no version, and keeps the reference to this Node', async () => {
    env = await coreEnv()
    await aPool(kind)
    for (const name of ['a', 'b']) await aNodeNamed(name)
    await report(['a', 'b'])
    expect((await pool()).status?.versions).toEqual([{ version: 'v1.34.0', replicas: 2 }])
    for (const name of ['b', 'a']) {
      await env.workload.delete(Node, { name })
      await env.settle()
    }
    const { versions, nodeRefs } = (await pool()).status ?? {}
    expect([versions, nodeRefs?.map(({ name }) => name)]).toEqual([undefined, ['a']])
  })

  test('counts a Node as available minReadySeconds after it became Ready, also after the clock was set back', async () => {
    env = await coreEnv()
    const spec = aMachinePool().spec
    await aPool(kind, { template: { spec: { ...spec.template.spec, minReadySeconds: 60 } } })
    await env.workload.create(Node, { metadata: { name: 'a' }, spec: { providerID: idOf('a') } })
    const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: new Date(env.clock.now()).toISOString() }]
    await env.workload.patch(Node, { name: 'a' }, { type: 'merge', body: { status: { conditions } } }, { subresource: 'status' })
    await report(['a'])
    expect(await legacyCounts()).toEqual([1, undefined, 1])
    await env.advance(seconds(61))
    expect(await legacyCounts()).toEqual([1, 1, undefined])
    env.clock.shift(-hours(1))
    await report([])
    await report(['a'])
    expect(await legacyCounts()).toEqual([1, 1, undefined])
  })

  test('with externally managed replicas is Scaling, in both directions', async () => {
    env = await coreEnv()
    await aPool(kind, {}, { annotations: { [ReplicasManagedByAnnotation]: 'autoscaler' } })
    await aNodeNamed('a')
    await report(['a'])
    expect((await pool()).status?.phase).toBe('Scaling')
    await env.patch(MachinePool, 'mp', { spec: { replicas: 0 } })
    expect((await pool()).status?.phase).toBe('Scaling')
    await env.patch(MachinePool, 'mp', { spec: { replicas: 1 } })
    expect((await pool()).status?.phase).toBe('Running')
  })

  test('copies no provider IDs while it is paused, and copies them afterwards', async () => {
    env = await coreEnv()
    await aPool(kind)
    await env.patch(MachinePool, 'mp', { metadata: { annotations: { 'cluster.x-k8s.io/paused': '' } } })
    await report(['a'])
    expect(conditionText(await pool(), 'Paused')).toBe('True Paused: MachinePool has the cluster.x-k8s.io/paused annotation')
    expect((await pool()).spec.providerIDList).toBeUndefined()
    await env.patch(MachinePool, 'mp', { metadata: { annotations: { 'cluster.x-k8s.io/paused': null } } })
    expect((await pool()).spec.providerIDList).toEqual(['dev:///a'])
  })

  test('adopts provider objects that have the paused annotation', async () => {
    env = await coreEnv()
    const metadata = { annotations: { 'cluster.x-k8s.io/paused': '' } }
    for (const providerKind of [DevConfig, kind]) await env.create(providerKind, 'mp', { metadata })
    await env.provisionCluster()
    await env.create(MachinePool, 'mp', { spec: aMachinePool().spec })
    await env.settle()
    for (const providerKind of [DevConfig, kind]) {
      const { ownerReferences } = (await env.get(providerKind, 'mp')).metadata
      expect(ownerReferences).toMatchObject([{ kind: 'MachinePool', name: 'mp', controller: true }])
    }
  })

  test('with bootstrap data from the user needs no bootstrap config', async () => {
    env = await coreEnv()
    const { template } = aMachinePool().spec
    await aPool(kind, { template: { spec: { ...template.spec, bootstrap: { dataSecretName: 'mine' } } } })
    expect((await pool()).status?.initialization?.bootstrapDataSecretCreated).toBe(true)
    expect(await legacy('BootstrapReady')).toBe('True ')
  })

  test('is deleted after its bootstrap config and infrastructure', async () => {
    env = await coreEnv()
    await aPool(kind)
    for (const name of ['a', 'b']) await aNodeNamed(name)
    await report(['a', 'b'])
    await env.client.patch(
      kind,
      { namespace: 'default', name: 'mp' },
      { type: 'merge', body: { metadata: { finalizers: ['dev/x'] } } },
    )
    await env.client.delete(MachinePool, { namespace: 'default', name: 'mp' })
    await env.settle()
    expect((await pool()).status?.phase).toBe('Deleting')
    await expect(env.get(DevConfig, 'mp')).rejects.toSatisfy((err) => isReason(err, 'NotFound'))
    expect((await env.get(kind, 'mp')).metadata.deletionTimestamp).toBeDefined()
    await env.client.patch(
      kind,
      { namespace: 'default', name: 'mp' },
      { type: 'merge', body: { metadata: { finalizers: null } } },
    )
    await env.settle()
    expect(await orAbsent(pool())).toBeUndefined()
  })

  test('is counted in the workers of its Cluster, and delays the deletion of the Cluster', async () => {
    env = await coreEnv()
    await aPool(kind)
    await report(['a'])
    expect((await env.get(Cluster, 'demo')).status?.workers).toMatchObject({
      desiredReplicas: 2,
      replicas: 1,
      upToDateReplicas: 2,
    })
    const addFinalizer = { type: 'merge', body: { metadata: { finalizers: ['dev/x'] } } } as const
    await env.client.patch(kind, { namespace: 'default', name: 'mp' }, addFinalizer)
    await env.client.delete(Cluster, { namespace: 'default', name: 'demo' })
    await env.settle()
    expect(conditionText(await env.get(Cluster, 'demo'), 'Deleting')).toBe('True WaitingForWorkersDeletion: * MachinePools: mp')
    const removeFinalizer = { type: 'merge', body: { metadata: { finalizers: null } } } as const
    await env.client.patch(kind, { namespace: 'default', name: 'mp' }, removeFinalizer)
    await env.advance(seconds(30))
    expect(await orAbsent(env.get(Cluster, 'demo'))).toBeUndefined()
  })

  test('is deleted after nodeDeletionTimeoutSeconds although the workload cluster is unreachable', async () => {
    env = await coreEnv()
    await aPool(kind)
    await aNodeNamed('a')
    await report(['a'])
    env.reachable = false
    await env.advance(minutes(3))
    await env.client.delete(MachinePool, { namespace: 'default', name: 'mp' })
    await env.advance(seconds(8))
    expect((await pool()).status?.phase).toBe('Deleting')
    await env.advance(seconds(4))
    expect(await orAbsent(pool())).toBeUndefined()
  })

  test('is deleted when the clock is set back while its workload cluster is unreachable', async () => {
    env = await coreEnv()
    await aPool(kind)
    await aNodeNamed('a')
    await report(['a'])
    env.reachable = false
    await env.advance(minutes(3))
    await env.client.delete(MachinePool, { namespace: 'default', name: 'mp' })
    env.clock.shift(-hours(1))
    await env.advance(seconds(12))
    expect(await orAbsent(pool())).toBeUndefined()
  })

  describe('with MachinePool Machines', () => {
    const labels = { 'cluster.x-k8s.io/pool-name': 'mp', 'cluster.x-k8s.io/cluster-name': 'demo' }
    const withMachines = { infrastructureMachineKind: 'DevMachine' }
    const anInfraMachine = (name: string) =>
      env.create(DevMachine, name, {
        metadata: { labels },
        spec: { providerID: idOf(name) },
      })
    const provisionInfraMachine = async (name: string) => {
      await anInfraMachine(name)
      await env.patch(DevMachine, name, { status: { initialization: { provisioned: true } } })
    }

    test('has one Machine for each infrastructure machine, with the metadata of the template of the MachinePool', async () => {
      env = await coreEnv()
      const { template } = aMachinePool().spec
      const metadata = { labels: { team: 'x' }, annotations: { note: 'y' } }
      await aPool(kind, { template: { ...template, metadata } })
      for (const name of ['a', 'b']) await aNodeNamed(name)
      await report(['a', 'b'], 2, withMachines)
      for (const name of ['a', 'b']) await provisionInfraMachine(name)
      await env.advance(seconds(30))
      expect(await machineNames()).toEqual(['a', 'b'])
      expect(await env.get(Machine, 'a')).toMatchObject({
        metadata: {
          labels: { ...labels, team: 'x' },
          annotations: { note: 'y' },
          ownerReferences: [{ kind: 'MachinePool', name: 'mp', controller: true }],
        },
        spec: {
          clusterName: 'demo',
          version: 'v1.34.0',
          bootstrap: { dataSecretName: '' },
          infrastructureRef: { apiGroup: 'infra.example.com', kind: 'DevMachine', name: 'a' },
          providerID: 'dev:///a',
        },
        status: { phase: 'Running', nodeRef: { name: 'a' } },
      })
      expect(conditionText(await env.get(Machine, 'a'), 'UpToDate')).toBe('True UpToDate')
      expect((await pool()).status).toMatchObject({
        phase: 'Running',
        readyReplicas: 2,
        availableReplicas: 2,
        upToDateReplicas: 2,
        versions: [{ version: 'v1.34.0', replicas: 2 }],
      })

      await env.patch(MachinePool, 'mp', { spec: { template: { metadata: { labels: { team: null, role: 'z' } } } } })
      const labelsAfter = (await env.get(Machine, 'a')).metadata.labels
      expect([labelsAfter?.['team'], labelsAfter?.['role']]).toEqual([undefined, 'z'])
    })

    test('adopts a Machine without controller, but no Machine of another controller', async () => {
      env = await coreEnv()
      await aPool(kind)
      await report(['a'], 1, withMachines)
      const spec = {
        clusterName: 'demo',
        bootstrap: { dataSecretName: '' },
        infrastructureRef: { apiGroup: 'infra.example.com', kind: 'DevMachine', name: 'a' },
      }
      await env.create(Machine, 'mine', { metadata: { labels }, spec })
      const ownerReferences = [{ apiVersion: 'v1', kind: 'Other', name: 'other', uid: 'u', controller: true }]
      const foreignSpec = { ...spec, infrastructureRef: { ...spec.infrastructureRef, name: 'b' } }
      await env.create(Machine, 'theirs', { metadata: { labels, ownerReferences }, spec: foreignSpec })
      await provisionInfraMachine('a')
      await provisionInfraMachine('b')
      expect(await machineNames()).toEqual(['mine', 'theirs'])
      expect((await env.get(Machine, 'mine')).metadata.ownerReferences).toMatchObject([{ kind: 'MachinePool', controller: true }])
      expect((await env.get(Machine, 'theirs')).metadata.ownerReferences).toMatchObject([{ kind: 'Other' }])
    })

    /**
     * Creates a pool on an API server that rejects the patches of Machines for which `isRejected` returns true. Returns the texts of the
     * errors that the controllers log.
     */
    async function aPoolWithRejections(isRejected: (request: ApiRequest) => boolean): Promise<readonly string[]> {
      const errors: string[] = []
      const log: Logger = { ...silent, error: (_, fields) => void errors.push(messageOf(fields?.['err'])), child: () => log }
      const between = (transport: Transport): Transport =>
        withSend(transport, async (request, signal) => {
          if (request.plural === Machine.plural && request.verb === 'patch' && isRejected(request)) {
            throw new StatusError('Forbidden', 'quota')
          }
          return transport.send(request, signal)
        })
      env = await coreEnv({ between, log })
      await aPool(kind)
      return errors
    }

    test('writes the other Machines although many cannot be written, and logs ten errors and the number of others', async () => {
      const rejected = Array.from({ length: 12 }, (_, index) => `a-${index}`)
      const errors = await aPoolWithRejections(({ name }) => name?.startsWith('a-') ?? false)
      await report(['b'], 1, withMachines)
      for (const name of [...rejected, 'b']) await provisionInfraMachine(name)
      await env.advance(seconds(60))
      expect(await machineNames()).toEqual(['b'])
      const start =
        'Cannot reconcile MachinePool default/mp: failed to create machines for MachinePool "mp" in namespace "default": '
      const problem = 'failed to apply Machine: quota'
      expect(errors[0]).toBe(start + problem)
      expect(errors.at(-1)).toBe(`${start}${`${problem}; `.repeat(10)}and 2 more errors`)
    })

    test('sets UpToDate on other Machines when it cannot be written on one Machine', async () => {
      await aPoolWithRejections(({ name, subresource, body }) => {
        const text = JSON.stringify(body ?? {})
        return name === 'a' && subresource === 'status' && text.includes('"UpToDate"')
      })
      await report(['a', 'b'], 2, withMachines)
      for (const name of ['a', 'b']) await provisionInfraMachine(name)
      await env.advance(seconds(60))
      expect(conditionText(await env.get(Machine, 'a'), 'UpToDate')).toBeUndefined()
      expect(conditionText(await env.get(Machine, 'b'), 'UpToDate')).toBe('True UpToDate')
    })

    test('does not create a Machine again that was deleted together with its infrastructure and Node', async () => {
      env = await coreEnv()
      await aPool(kind)
      for (const name of ['a', 'b']) await aNodeNamed(name)
      await report(['a', 'b'], 2, withMachines)
      for (const name of ['a', 'b']) await provisionInfraMachine(name)
      await env.advance(seconds(30))
      // Otherwise Nodes would not be deleted, because no control plane Machine exists.
      await env.patch(DevControlPlane, 'demo', { status: { externalManagedControlPlane: true } })
      await env.client.delete(Machine, { namespace: 'default', name: 'a' })
      await env.advance(seconds(60))
      expect(await machineNames()).toEqual(['b'])
      expect(await orAbsent(env.get(DevMachine, 'a'))).toBeUndefined()
      expect(await nodeNames()).toEqual(['b'])
      await report(['b'], 1, withMachines)
      expect((await pool()).status).toMatchObject({ replicas: 1, readyReplicas: 1, upToDateReplicas: 1, phase: 'ScalingUp' })
    })

    test('writes all Machines of a pool that has more Machines than one reconcile writes', async () => {
      env = await coreEnv()
      await aPool(kind)
      await report(['x'], 1)
      for (let index = 0; index < 210; index++) await anInfraMachine(`m-${index}`)
      await report(['x'], 1, withMachines)
      await env.advance(seconds(60))
      expect(await machineNames()).toHaveLength(210)
    }, 60_000)
  })
})
