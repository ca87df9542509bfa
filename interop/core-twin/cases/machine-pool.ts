/**
 * Cases of MachinePools.
 * Every case does the same with upstream's core and with Capstan's, and compares all objects after each step (`settle`).
 */
import { Cluster, Machine, MachineHealthCheck, MachinePool } from '@capstan/api'
import { getCondition, type Input, type KubeObject, Node, seconds, sleep, systemClock, timestamp } from '@capstan/kube'
import { clusterName, machine, named, nodeCondition } from '../objects.ts'
import { everythingReady, noReport } from '../providers.ts'
import { nodeInfoOf, type Report, reportNodeStatus } from '../side.ts'
import { oldStub, stub } from '../stub-kinds.ts'
import type { Case, Cases, Twin } from '../twin.ts'
import { createReadyCluster } from './machine.ts'
import { deny } from './machine-set.ts'
import * as managed from './topology.ts'

const ref = (kind: string, { group } = stub) => ({ apiGroup: group, kind, name: 'p' })

/** Returns the MachinePool `p`. The arguments are further fields of its spec, of the spec of its template, and of its metadata. */
export const pool = (spec: object = {}, template: object = {}, metadata: object = {}): Input<MachinePool> =>
  ({
    metadata: { name: 'p', ...metadata },
    spec: {
      clusterName,
      replicas: 1,
      template: {
        spec: {
          clusterName,
          version: 'v1.35.0',
          bootstrap: { configRef: ref('StubConfig') },
          infrastructureRef: ref('StubMachine'),
          ...template,
        },
      },
      ...spec,
    },
  }) as Input<MachinePool>

/** Returns the report of a pool's infrastructure provider about machines with these provider IDs. */
const reported = (ids: readonly string[], fields: object = {}): Report => ({
  spec: { providerIDList: ids },
  status: { ready: true, initialization: { provisioned: true }, replicas: ids.length, ...fields },
})

async function createPool(twin: Twin, report: Report | undefined, object = pool()): Promise<void> {
  await createReadyCluster(twin)
  await twin.setReports({ machine: () => report })
  await twin.create(stub.config, named('p', { spec: {} }))
  await twin.create(stub.machine, named('p', { spec: {} }))
  await twin.create(MachinePool, object)
  await twin.settle('the MachinePool is created')
}

const lifecycle: Case = async (twin) => {
  await createPool(twin, reported([]), pool({ replicas: 0 }))
  await twin.delete(MachinePool, 'p')
  await twin.settle('the MachinePool is deleted')
}

const lateProviders: Case = async (twin) => {
  await createReadyCluster(twin)
  await twin.setReports({ machine: noReport, config: noReport })
  await twin.create(MachinePool, pool())
  await twin.settle('neither provider object exists')
  await twin.create(stub.config, named('p', { spec: {} }))
  await twin.create(stub.machine, named('p', { spec: {} }))
  await twin.touch(MachinePool, 'p')
  await twin.settle('neither provider reports')
}

const paused: Case = async (twin) => {
  await createPool(twin, reported([]), pool({ replicas: 0 }, {}, { annotations: { 'cluster.x-k8s.io/paused': '' } }))
  await twin.patch(MachinePool, 'p', { metadata: { annotations: { 'cluster.x-k8s.io/paused': null } } })
  await twin.settle('the MachinePool is resumed')
}

const dataSecret: Case = async (twin) => {
  await createReadyCluster(twin)
  await twin.setReports({ machine: () => reported([]) })
  await twin.create(stub.machine, named('p', { spec: {} }))
  await twin.create(MachinePool, pool({ replicas: 0 }, { bootstrap: { dataSecretName: 'mine' } }))
  await twin.settle('the user supplies the bootstrap data Secret')
}

const noCluster: Case = async (twin) => {
  await twin.create(MachinePool, pool())
  await twin.settle('the Cluster does not exist')
}

const takenBack: Case = async (twin) => {
  await createPool(twin, reported([]), pool({ replicas: 0 }))
  await twin.setReports({ machine: () => ({ status: { ready: false, initialization: { provisioned: false } } }) })
  await twin.settle('the infrastructure is no longer provisioned')
}

const infrastructureDeleted: Case = async (twin) => {
  await createPool(twin, reported([]), pool({ replicas: 0 }))
  await twin.delete(stub.machine, 'p')
  await twin.settle('the infrastructure is deleted by another client')
}

const withMachines: Case = async (twin) => {
  await createPool(twin, reported([], { infrastructureMachineKind: 'StubMachine' }), pool({ replicas: 0 }))
  await twin.settle('the pool has no machine yet')
  await twin.runOnBoth('list the Machines of the pool', async (client) => {
    const { items } = await client.list(Machine, { namespace: twin.namespace })
    return { names: items.map(({ metadata }) => metadata.name) }
  })
  await twin.settle('the Machines of the pool are listed')
}

/** The infrastructure provider reports the status of each step. */
const reports =
  (...steps: readonly (readonly [name: string, status: object])[]): Case =>
  async (twin) => {
    await createPool(twin, reported([]), pool({ replicas: 0 }))
    for (const [name, status] of steps) {
      await twin.setReports({ machine: () => reported([], status) })
      await twin.settle(name)
    }
  }

const readyIs = (status: string, fields: object) => ({
  conditions: [{ type: 'Ready', status, lastTransitionTime: '2026-01-01T00:00:00Z', ...fields }],
})

/** Returns the provider ID of the machine whose Node has this name. */
export const idOf = (name: string) => `twin://${name}`
const withNodes = (...names: readonly string[]) => reported(names.map(idOf))

/** Registers Nodes, as the kubelets of the pool's machines do. */
export const registerNodes = (twin: Twin, ...names: readonly string[]) =>
  twin.inWorkload(clusterName, async (client) => {
    const ready = nodeCondition('Ready', 'True', { time: timestamp(Date.now()) })
    for (const name of names) {
      await client.create(Node, { metadata: { name }, spec: { providerID: idOf(name) } }, { fieldManager: 'kubelet' })
      await reportNodeStatus(client, name, { conditions: [ready] })
    }
  })

/** Lists the Nodes of the workload cluster on both sides. */
const listNodes = (twin: Twin) =>
  twin.runOnBoth('list the Nodes of the pool', async (_, side) => {
    const { items } = await side.workload({ namespace: twin.namespace, name: clusterName }).list(Node)
    return items.map(({ metadata: { name, annotations, labels }, spec }) => ({ name, annotations, labels, taints: spec?.taints }))
  })

const idsOfNodes: Case = async (twin) => {
  await createPool(twin, reported([]), pool({ replicas: 2 }))
  await registerNodes(twin, 'a', 'b')
  await twin.setReports({ machine: () => withNodes('a') })
  await twin.settle('one of two machines exists')
  await twin.setReports({ machine: () => withNodes('b', 'a') })
  await twin.settle('both machines exist, in another order')
  await listNodes(twin)
  await twin.setReports({ machine: () => withNodes('b') })
  await twin.patch(MachinePool, 'p', { spec: { replicas: 1 } })
  await twin.settle('the first machine no longer exists')
  await listNodes(twin)
}

const idWithoutNode: Case = async (twin) => {
  await createPool(twin, withNodes('a', 'ghost'), pool({ replicas: 2 }))
  await registerNodes(twin, 'a')
  await twin.settle('one machine has no Node')
  await registerNodes(twin, 'ghost')
  await twin.settle('the Node of the machine has joined')
}

/**
 * A Node is deleted, and the Node of another machine registers with the same name. Core deletes this Node, because the pool refers to it by
 * its name, but does not list its provider ID. Then the Node of the first machine registers again.
 */
const nodeReplaced: Case = async (twin) => {
  await createPool(twin, reported([]), pool({ replicas: 1 }))
  await registerNodes(twin, 'a')
  await twin.inWorkload(clusterName, (client) => reportNodeStatus(client, 'a', { nodeInfo: nodeInfoOf('v1.35.0') }))
  await twin.setReports({ machine: () => withNodes('a') })
  await twin.settle('the Node has joined', (objects) => allAvailable(1)(objects) && hasVersions(true)(objects))
  await twin.inWorkload(clusterName, (client) => client.delete(Node, { name: 'a' }))
  await twin.settle('the Node is deleted', hasVersions(false))
  await twin.inWorkload(clusterName, (client) =>
    client.create(Node, { metadata: { name: 'a' }, spec: { providerID: idOf('other') } }, { fieldManager: 'kubelet' }),
  )
  await twin.settle('the Node of another machine is deleted')
  await listNodes(twin)
  await registerNodes(twin, 'a')
  await twin.settle('the Node has joined again', allAvailable(1))
  await listNodes(twin)
}

const hasVersions = (isExpected: boolean) => poolIs(({ versions }) => (versions !== undefined) === isExpected)

const scaledToZero: Case = async (twin) => {
  await createPool(twin, reported([]), pool({ replicas: 1 }))
  await registerNodes(twin, 'a')
  await twin.setReports({ machine: () => withNodes('a') })
  await twin.settle('the Node has joined', allAvailable(1))
  await twin.patch(MachinePool, 'p', { spec: { replicas: 0 } })
  await twin.setReports({ machine: () => reported([]) })
  await twin.settle(
    'the pool has no machines',
    poolIs(({ replicas, nodeRefs }) => replicas === 0 && nodeRefs === undefined),
  )
  await listNodes(twin)
}

/** The objects of the providers have the paused annotation. */
const pausedReferences: Case = async (twin) => {
  await createReadyCluster(twin)
  await twin.setReports({ machine: () => reported([]) })
  const metadata = { name: 'p', annotations: { 'cluster.x-k8s.io/paused': '' } }
  await twin.create(stub.config, named('p', { metadata, spec: {} }))
  await twin.create(stub.machine, named('p', { metadata, spec: {} }))
  await twin.create(MachinePool, pool({ replicas: 0 }))
  await twin.settle(
    'the pool is created',
    poolIs(({ phase }) => phase !== undefined),
  )
}

const ofClass: Case = async (twin) => {
  const templateRef = (kind: string) => ({ templateRef: { apiVersion: `${stub.group}/v1`, kind, name: 'quick-worker' } })
  const poolClass = {
    class: 'pool',
    bootstrap: templateRef('StubConfigTemplate'),
    infrastructure: templateRef('StubMachineTemplate'),
  }
  const pools = (...machinePools: readonly object[]) => ({ workers: { machinePools } })
  const poolTopology = (fields: object = {}) => ({ class: 'pool', name: 'p', replicas: 0, ...fields })
  await twin.setReports({ machine: () => reported([]) })
  await managed.createTopology(twin, { workers: { machinePools: [poolClass] } }, { workers: [], topology: pools(poolTopology()) })
  const steps: readonly (readonly [name: string, topology: object])[] = [
    ['metadata is set', pools(poolTopology({ metadata: { labels: { tier: 'one' }, annotations: { note: 'two' } } }))],
    ['the Cluster is upgraded', { version: 'v1.35.0' }],
    ['a second pool is added', pools(poolTopology(), poolTopology({ name: 'q' }))],
    ['the first pool is removed', pools(poolTopology({ name: 'q' }))],
  ]
  for (const [name, topology] of steps) {
    await twin.patch(Cluster, clusterName, managed.topology(topology))
    await twin.settle(name)
  }
}

const isPool = (object: KubeObject): object is MachinePool => object.kind === 'MachinePool'
const isMachine = (object: KubeObject): object is Machine => object.kind === 'Machine'

/** Returns a check for `settle`: whether the status of a MachinePool fulfils `isExpected`. */
const poolIs =
  (isExpected: (status: NonNullable<MachinePool['status']>) => boolean) =>
  (objects: readonly KubeObject[]): boolean =>
    objects.some((object) => isPool(object) && isExpected(object.status ?? {}))

/** Lets the provider report a pool whose machines have their own objects. */
const reportMachines = (twin: Twin, ids: readonly string[], status: object = {}) =>
  twin.setReports({
    machine: (object) =>
      object.metadata.name === 'p'
        ? reported(ids.map(idOf), { infrastructureMachineKind: 'StubMachine', ...status })
        : everythingReady.machine(object, []),
  })

/**
 * Status that the provider reports until the Nodes of all machines have registered. If the provider reported its machines earlier, core
 * would record an Event whenever a Node registers.
 */
const notProvisioned = { ready: false, initialization: { provisioned: false } }

const machineLabels = { 'cluster.x-k8s.io/cluster-name': clusterName, 'cluster.x-k8s.io/pool-name': 'p' }

/** Creates an infrastructure machine of the pool. */
export const createInfraMachine = (twin: Twin, name: string, metadata: object = {}) =>
  twin.create(stub.machine, named(name, { metadata: { name, labels: machineLabels, ...metadata }, spec: {} }))

const allAvailable = (count: number) =>
  poolIs(
    ({ availableReplicas, nodeRefs = [], phase }) =>
      availableReplicas === count && nodeRefs.length === count && phase === 'Running',
  )

/** Returns a check for `settle`: whether exactly `count` Machines have a Node. */
const machinesRun = (count: number) => (objects: readonly KubeObject[]) =>
  objects.filter((object) => isMachine(object) && object.status?.nodeRef !== undefined).length === count

/** Creates a pool with two machines, `a` and `b`. Each has an infrastructure machine, so that core creates a Machine for it. */
async function createPoolWithMachines(twin: Twin, object = pool({ replicas: 2 })): Promise<void> {
  await createReadyCluster(twin)
  await reportMachines(twin, [], notProvisioned)
  await twin.create(stub.config, named('p', { spec: {} }))
  await twin.create(stub.machine, named('p', { spec: {} }))
  for (const name of ['a', 'b']) await createInfraMachine(twin, name)
  await twin.create(MachinePool, object)
  await twin.settle('the Machines run', machinesRun(2))
  await reportMachines(twin, ['a', 'b'])
  await twin.settle('the pool is provisioned', allAvailable(2))
}

const hold = ['twin.capstan.dev/hold']
const finalizers = (list: readonly string[] | null) => ({ metadata: { finalizers: list } })

const upToDateIs = (name: string, reason: string) => (objects: readonly KubeObject[]) =>
  objects.some(
    (object) => isMachine(object) && object.metadata.name === name && getCondition(object, 'UpToDate')?.reason === reason,
  )

const machineDeleted: Case = async (twin) => {
  await createPoolWithMachines(twin)
  await twin.patch(stub.machine, 'a', finalizers(hold))
  await twin.delete(Machine, 'a')
  await twin.settle('a Machine is being deleted', upToDateIs('a', 'NotUpToDate'))
  await reportMachines(twin, ['a', 'b'], { replicas: 1 })
  await twin.settle(
    'the pool has fewer replicas',
    poolIs(({ replicas }) => replicas === 1),
  )
  await reportMachines(twin, ['b'])
  await twin.touch(MachinePool, 'p')
  await twin.settle(
    'the pool no longer has the machine',
    poolIs(({ nodeRefs = [] }) => nodeRefs.length === 1),
  )
  await twin.patch(stub.machine, 'a', finalizers(null))
  await twin.patch(MachinePool, 'p', { spec: { replicas: 1 } })
  await twin.settle('the Machine is deleted', (objects) => allAvailable(1)(objects) && objects.filter(isMachine).length === 1)
}

const machineAdded: Case = async (twin) => {
  await createPoolWithMachines(twin)
  await twin.patch(MachinePool, 'p', { spec: { replicas: 3 } })
  await twin.settle(
    'the pool scales up',
    poolIs(({ phase }) => phase === 'ScalingUp'),
  )
  await createInfraMachine(twin, 'c')
  await twin.settle('the third Machine runs', machinesRun(3))
  await reportMachines(twin, ['a', 'b'], { replicas: 3 })
  await twin.settle(
    'the pool has more replicas',
    poolIs(({ replicas }) => replicas === 3),
  )
  await reportMachines(twin, ['a', 'b', 'c'])
  await twin.settle('three Machines run', allAvailable(3))
}

/** A user changes labels and annotations of the template, and of a Machine. */
const machineMetadata: Case = async (twin) => {
  const metadata = (labels: object, annotations: object) => ({ metadata: { labels, annotations } })
  const [before, after] = [
    metadata({ tier: 'one', size: 's' }, { note: 'n' }),
    metadata({ tier: 'two', size: null }, { note: null }),
  ]
  const { metadata: own, spec } = pool({ replicas: 2 })
  await createPoolWithMachines(twin, { metadata: own, spec: { ...spec, template: { ...spec.template, ...before } } } as never)
  await twin.patch(MachinePool, 'p', { spec: { template: after } })
  await twin.settle('the template changes', (objects) =>
    objects.filter(isMachine).every(({ metadata: { labels } }) => labels?.tier === 'two'),
  )
  await twin.patch(Machine, 'a', metadata({ tier: 'mine', own: 'x' }, { note: 'mine' }))
  await twin.touch(MachinePool, 'p')
  await twin.settle('labels of a Machine change', (objects) =>
    objects.filter(isMachine).some(({ metadata: { labels } }) => labels?.own === 'x' && labels.tier === 'two'),
  )
}

/** A Machine without a controller refers to an infrastructure machine of a pool, and exists before the pool, which adopts the Machine. */
const machineAdopted: Case = async (twin) => {
  await createReadyCluster(twin)
  await reportMachines(twin, [], notProvisioned)
  for (const name of ['a', 'b']) await createInfraMachine(twin, name)
  const { metadata, ...body } = machine('mine', { bootstrap: { dataSecretName: 'mine' } })
  const infrastructureRef = { ...ref('StubMachine'), name: 'a' }
  const spec = { ...body.spec, infrastructureRef }
  await twin.create(Machine, { metadata: { ...metadata, labels: { 'cluster.x-k8s.io/pool-name': 'p' } }, spec })
  await twin.settle('the Machine runs', (objects) =>
    objects.some((object) => isMachine(object) && object.status?.nodeRef !== undefined),
  )
  await twin.create(stub.config, named('p', { spec: {} }))
  await twin.create(stub.machine, named('p', { spec: {} }))
  await twin.create(MachinePool, pool({ replicas: 2 }))
  await twin.settle('both Machines run', machinesRun(2))
  await reportMachines(twin, ['a', 'b'])
  await twin.settle(
    'the pool has adopted the Machine',
    (objects) =>
      allAvailable(2)(objects) &&
      objects.some(
        (object) =>
          isMachine(object) &&
          object.metadata.name === 'mine' &&
          object.metadata.ownerReferences?.some(({ kind }) => kind === 'MachinePool'),
      ),
  )
}

/** The kubelet of a machine reports another version, then its Node is deleted. */
const machineVersions: Case = async (twin) => {
  await createPoolWithMachines(twin)
  await twin.inWorkload(clusterName, (client) => reportNodeStatus(client, 'a', { nodeInfo: nodeInfoOf('v1.36.0') }))
  await twin.settle('a kubelet is upgraded', (objects) =>
    objects.some((object) => isMachine(object) && object.spec.version === 'v1.36.0'),
  )
  await twin.inWorkload(clusterName, (client) => client.delete(Node, { name: 'a' }))
  await twin.touch(MachinePool, 'p')
  await twin.settle('the Node is deleted', (objects) =>
    objects.some((object) => isMachine(object) && getCondition(object, 'NodeReady')?.reason === 'NodeDeleted'),
  )
}

const deletedWithMachines: Case = async (twin) => {
  await createPoolWithMachines(twin)
  await twin.delete(MachinePool, 'p')
  await twin.settle('the pool is deleted', (objects) => !objects.some(isPool))
  await listNodes(twin)
}

/**
 * A provider ID is removed from a pool that is being deleted, so that core must delete the Node with this ID, unless the Node
 * deletion timeout has expired. The infrastructure blocks the deletion of the pool for at least `blockedSeconds`.
 */
const deletedWithNodes =
  (deletion: object, blockedSeconds = 0): Case =>
  async (twin) => {
    await createPool(twin, reported([]), pool({ replicas: 2 }, { deletion }))
    await registerNodes(twin, 'a', 'b')
    await twin.settle('two Nodes exist')
    await twin.setReports({ machine: () => withNodes('a', 'b') })
    await twin.settle(
      'both Nodes have joined',
      poolIs(({ nodeRefs = [] }) => nodeRefs.length === 2),
    )
    await twin.patch(stub.machine, 'p', finalizers(hold))
    await twin.delete(MachinePool, 'p')
    await twin.settle(
      'the infrastructure blocks the deletion',
      poolIs(({ phase }) => phase === 'Deleting'),
    )
    await twin.patch(MachinePool, 'p', { spec: { providerIDList: [idOf('a')] } })
    // Both cores read the list from a cache, which must have this change before the infrastructure is gone.
    await twin.settle('the pool lists one provider ID')
    await sleep(systemClock, seconds(blockedSeconds))
    await twin.patch(stub.machine, 'p', finalizers(null))
    await twin.settle('the pool is deleted', (objects) => !objects.some(isPool))
    await listNodes(twin)
  }

const dataSecretChanges: Case = async (twin) => {
  const config = (dataSecretCreated: boolean, dataSecretName: string) =>
    twin.setReports({ config: () => ({ status: { initialization: { dataSecretCreated }, dataSecretName } }) })
  await createPool(twin, reported([]), pool({ replicas: 0 }))
  const nameIs = (name: string) => (objects: readonly KubeObject[]) =>
    objects.some((object) => isPool(object) && object.spec.template.spec.bootstrap.dataSecretName === name)
  await config(true, 'another')
  await twin.settle('the name of the Secret changes', nameIs('another'))
  await config(false, 'another')
  await twin.settle(
    'the provider reports that the Secret is not created',
    poolIs(({ initialization }) => initialization?.bootstrapDataSecretCreated === false),
  )
  await config(true, 'third')
  await twin.settle('the Secret is created again', nameIs('third'))
}

const scalingDown: Case = async (twin) => {
  await createPool(twin, reported([]), pool({ replicas: 2 }))
  await registerNodes(twin, 'a', 'b')
  await twin.settle('two Nodes exist')
  await twin.setReports({ machine: () => withNodes('a', 'b') })
  await twin.settle(
    'both Nodes have joined',
    poolIs(({ phase }) => phase === 'Running'),
  )
  await twin.patch(MachinePool, 'p', { spec: { replicas: 1 } })
  await twin.settle(
    'the pool scales down',
    poolIs(({ phase }) => phase === 'ScalingDown'),
  )
  await twin.patch(MachinePool, 'p', { metadata: { annotations: { 'cluster.x-k8s.io/replicas-managed-by': 'provider' } } })
  await twin.settle(
    'the provider manages the replicas',
    poolIs(({ phase }) => phase === 'Scaling'),
  )
}

const minReadySeconds: Case = async (twin) => {
  await createPool(twin, withNodes('a'), pool({ replicas: 1 }, { minReadySeconds: 3600 }))
  await registerNodes(twin, 'a')
  await twin.settle(
    'the Node is not available yet',
    poolIs(({ deprecated }) => deprecated?.v1beta1?.readyReplicas === 1),
  )
}

/** The provider implements contract v1beta1. */
const oldContract: Case = async (twin) => {
  const old = { spec: { providerIDList: [] }, status: { ready: true, replicas: 0 } }
  await createReadyCluster(twin)
  await twin.setReports({
    machine: () => ({ status: { ready: false } }),
    config: () => ({ status: { ready: false } }),
  })
  await twin.create(oldStub.config, named('p', { spec: {} }))
  await twin.create(oldStub.machine, named('p', { spec: {} }))
  const references = { bootstrap: { configRef: ref('StubConfig', oldStub) }, infrastructureRef: ref('StubMachine', oldStub) }
  await twin.create(MachinePool, pool({ replicas: 0 }, references))
  await twin.settle('the provider is not ready')
  await twin.setReports({ config: () => ({ status: { ready: true, dataSecretName: 'data' } }) })
  await twin.settle(
    'the bootstrap data exists',
    poolIs(({ initialization }) => initialization?.bootstrapDataSecretCreated === true),
  )
  await twin.setReports({ machine: () => old })
  await twin.settle(
    'the infrastructure is ready',
    poolIs(({ initialization }) => initialization?.infrastructureProvisioned === true),
  )
  await twin.setReports({ config: () => ({ status: { ...readyIs('False', { severity: 'Error', reason: 'Broken' }) } }) })
  await twin.setReports({
    machine: () => ({
      ...old,
      status: { ...old.status, ...readyIs('False', { severity: 'Warning', reason: 'Slow', message: 'm' }) },
    }),
  })
  await twin.settle(
    'the conditions are false',
    poolIs(({ deprecated }) => deprecated?.v1beta1?.conditions?.some(({ reason }) => reason === 'Slow') ?? false),
  )
  await twin.delete(MachinePool, 'p')
  await twin.settle('the MachinePool is deleted', (objects) => !objects.some(isPool))
}

/** A policy denies the creation of eleven Machines of a pool, but not of the twelfth, whose name is last in alphabetical order. */
const machinesDenied: Case = async (twin) => {
  await createReadyCluster(twin)
  await reportMachines(twin, [], notProvisioned)
  await twin.create(stub.config, named('p', { spec: {} }))
  await twin.create(stub.machine, named('p', { spec: {} }))
  await deny(twin, {
    group: Machine.group,
    resource: Machine.plural,
    operation: 'CREATE',
    accepted: 'object.metadata.name == "m"',
  })
  for (let index = 0; index < 11; index++) await createInfraMachine(twin, `a-${index}`)
  await createInfraMachine(twin, 'm')
  await twin.create(MachinePool, pool({ replicas: 12 }))
  await twin.settle('one Machine runs', machinesRun(1))
}

/** The kind of infrastructure machines is not installed, so that core cannot list them. */
const unknownMachineKind: Case = async (twin) => {
  const infrastructureMachineKind = 'Nothing'
  await createPool(twin, reported([], { ...notProvisioned, infrastructureMachineKind }), pool({ replicas: 2 }))
  await registerNodes(twin, 'a', 'b')
  await twin.settle('two Nodes exist')
  await twin.setReports({ machine: () => reported(['a', 'b'].map(idOf), { infrastructureMachineKind }) })
  await twin.settle(
    'the pool is provisioned',
    poolIs(({ initialization }) => initialization?.infrastructureProvisioned === true),
  )
  await twin.setReports({ machine: () => reported(['a', 'b'].map(idOf), { infrastructureMachineKind: null }) })
  await twin.settle(
    'the machines have no objects',
    poolIs(({ nodeRefs = [] }) => nodeRefs.length === 2),
  )
}

/** A Machine with the name of an infrastructure machine exists already. */
const machineOfSameName: Case = async (twin) => {
  await createReadyCluster(twin)
  await reportMachines(twin, [], notProvisioned)
  for (const name of ['a', 'b']) await createInfraMachine(twin, name)
  await twin.create(Machine, machine('a', { bootstrap: { dataSecretName: 'mine' } }))
  await twin.settle('the Machine runs', machinesRun(1))
  await twin.create(stub.config, named('p', { spec: {} }))
  await twin.create(stub.machine, named('p', { spec: {} }))
  await twin.create(MachinePool, pool({ replicas: 2 }))
  await twin.settle('both Machines run', machinesRun(2))
  await reportMachines(twin, ['a', 'b'])
  await twin.settle('the pool has both Machines', allAvailable(2))
}

const unknownKind =
  (template: object, until: NonNullable<Parameters<Twin['settle']>[1]>): Case =>
  async (twin) => {
    await createReadyCluster(twin)
    await twin.setReports({ machine: () => reported([]) })
    await twin.create(stub.config, named('p', { spec: {} }))
    await twin.create(stub.machine, named('p', { spec: {} }))
    await twin.create(MachinePool, pool({ replicas: 0 }, template))
    await twin.settle('the kind does not exist', until)
    await twin.delete(MachinePool, 'p')
    await twin.settle(
      'the missing kind prevents the deletion',
      poolIs(({ phase }) => phase === 'Deleting'),
    )
  }
const nowhere = { apiGroup: 'nowhere.capstan.dev', kind: 'Nothing', name: 'p' }

/** A health check marks a Machine of the pool. No controller remediates the Machine. */
const unhealthyMachine: Case = async (twin) => {
  await createPoolWithMachines(twin)
  await twin.inWorkload(clusterName, (client) => {
    const conditions = [
      ...['DiskPressure', 'PIDPressure'].map((type) => nodeCondition(type, 'False')),
      ...['MemoryPressure', 'Ready'].map((type) => nodeCondition(type, 'True')),
    ]
    return reportNodeStatus(client, 'a', { conditions })
  })
  await twin.settle(
    'a Node has too little memory',
    poolIs(({ readyReplicas }) => readyReplicas === 1),
  )
  const selector = { matchLabels: { 'cluster.x-k8s.io/pool-name': 'p' } }
  const checks = { unhealthyNodeConditions: [{ type: 'MemoryPressure', status: 'True', timeoutSeconds: 0 }] }
  await twin.create(MachineHealthCheck, { metadata: { name: 'mhc' }, spec: { clusterName, selector, checks } } as never)
  await twin.settle('the Machine is marked', (objects) =>
    objects.some((object) => isMachine(object) && getCondition(object, 'OwnerRemediated')?.reason === 'WaitingForRemediation'),
  )
}

const replicasManaged: Case = async (twin) => {
  const annotations = { 'cluster.x-k8s.io/replicas-managed-by': 'provider' }
  await createPool(twin, reported([]), pool({ replicas: 2 }, {}, { annotations }))
}

/** The infrastructure is being deleted while the pool has a Node, or has no Node although it has replicas. */
const infrastructureDeleting =
  (replicas: number, ...nodes: readonly string[]): Case =>
  async (twin) => {
    await createPool(twin, reported([]), pool({ replicas }))
    if (nodes.length > 0) {
      await registerNodes(twin, ...nodes)
      await twin.inWorkload(clusterName, (client) => reportNodeStatus(client, nodes[0]!, { nodeInfo: nodeInfoOf('v1.35.0') }))
      await twin.setReports({ machine: () => withNodes(...nodes) })
      await twin.settle('the Node has joined', hasVersions(true))
    }
    await twin.patch(stub.machine, 'p', finalizers(hold))
    await twin.delete(stub.machine, 'p')
    await twin.settle('the infrastructure is being deleted')
    await twin.patch(MachinePool, 'p', { spec: { replicas: replicas + 1 } })
    await twin.settle('the pool has another number of replicas')
  }

/** The provider reports its machines, but not their number. */
const idsWithoutReplicas: Case = async (twin) => {
  await createPool(twin, reported([], { replicas: null }), pool({ replicas: 1 }))
  await registerNodes(twin, 'a')
  await twin.settle('a Node exists')
  await twin.setReports({ machine: () => reported([idOf('a')], { replicas: null }) })
  await twin.settle('the provider reports the machine')
  await twin.setReports({ machine: () => withNodes('a') })
  await twin.settle('the provider reports the number of machines', allAvailable(1))
}

/** The provider no longer has objects for its machines, and has never reported their number. */
const withoutMachinesAgain: Case = async (twin) => {
  const kind = (infrastructureMachineKind: string | null) => reported([], { replicas: null, infrastructureMachineKind })
  await createPool(twin, kind('StubMachine'), pool({ replicas: 0 }))
  await twin.setReports({ machine: () => kind(null) })
  await twin.settle('the provider has no objects for machines')
}

export const machinePoolCases: Cases = {
  'machinepool-life': lifecycle,
  'machinepool-late': lateProviders,
  'machinepool-paused': paused,
  'machinepool-data-secret': dataSecret,
  'machinepool-no-cluster': noCluster,
  'machinepool-taken-back': takenBack,
  'machinepool-infrastructure-deleted': infrastructureDeleted,
  'machinepool-machines': withMachines,
  'machinepool-infrastructure-ready': reports(
    ['the condition is true', readyIs('True', { reason: 'Fine' })],
    ['the condition is false', readyIs('False', { reason: 'Broken', message: 'no quota' })],
    ['the condition is unknown', readyIs('Unknown', { reason: 'Asking', message: 'why' })],
  ),
  'machinepool-infrastructure-failure': reports(
    ['a failure is reported', { failureReason: 'Bad', failureMessage: 'no quota' }],
    ['the failure is no longer reported', { failureReason: null, failureMessage: null }],
  ),
  'machinepool-instances': reports(['instances are reported', { instances: [{ instanceID: 'i-1', version: 'v1.30.0' }] }]),
  'machinepool-ids-of-nodes': idsOfNodes,
  'machinepool-id-without-node': idWithoutNode,
  'machinepool-node-replaced': nodeReplaced,
  'machinepool-to-zero': scaledToZero,
  'machinepool-paused-references': pausedReferences,
  'machinepool-of-class': ofClass,
  'machinepool-machines-denied': machinesDenied,
  'machinepool-replicas-managed': replicasManaged,
  'machinepool-machine-deleted': machineDeleted,
  'machinepool-machine-added': machineAdded,
  'machinepool-machine-metadata': machineMetadata,
  'machinepool-machine-adopted': machineAdopted,
  'machinepool-machine-versions': machineVersions,
  'machinepool-deleted-with-machines': deletedWithMachines,
  'machinepool-deleted-with-nodes': deletedWithNodes({}),
  'machinepool-deleted-after-node-timeout': deletedWithNodes({ nodeDeletionTimeoutSeconds: 1 }, 2),
  'machinepool-deleted-before-node-timeout': deletedWithNodes({ nodeDeletionTimeoutSeconds: 3600 }),
  'machinepool-data-secret-changes': dataSecretChanges,
  'machinepool-scaling-down': scalingDown,
  'machinepool-min-ready-seconds': minReadySeconds,
  'machinepool-old-contract': oldContract,
  'machinepool-unknown-machine-kind': unknownMachineKind,
  'machinepool-machine-of-same-name': machineOfSameName,
  'machinepool-unknown-config-kind': unknownKind(
    { bootstrap: { configRef: nowhere } },
    poolIs(({ initialization }) => initialization?.infrastructureProvisioned === true),
  ),
  'machinepool-unknown-infrastructure-kind': unknownKind(
    { infrastructureRef: nowhere },
    poolIs(({ initialization }) => initialization?.bootstrapDataSecretCreated === true),
  ),
  'machinepool-unhealthy-machine': unhealthyMachine,
  'machinepool-infrastructure-deleting': infrastructureDeleting(1, 'a'),
  'machinepool-infrastructure-deleting-no-ids': infrastructureDeleting(1),
  'machinepool-ids-without-replicas': idsWithoutReplicas,
  'machinepool-without-machines-again': withoutMachinesAgain,
}
