import { Cluster, Machine, MachinePool } from '@capstan/api'
import { type Input, Node } from '@capstan/kube'
import { clusterName, named } from '../objects.ts'
import { noReport } from '../providers.ts'
import type { Report } from '../side.ts'
import { stub } from '../stub-kinds.ts'
import type { Case, Cases, Twin } from '../twin.ts'
import { createReadyCluster } from './machine.ts'
import * as managed from './topology.ts'

const ref = (kind: string) => ({ apiGroup: stub.group, kind, name: 'p' })

const pool = (spec: object = {}, template: object = {}, metadata: object = {}): Input<MachinePool> =>
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

/** Returns a report of the pool's provider. */
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

const late: Case = async (twin) => {
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

const deletedBehind: Case = async (twin) => {
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

/** The infrastructure reports a status, one per step. */
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

const idOf = (name: string) => `twin://${name}`
const withNodes = (...names: readonly string[]) => reported(names.map(idOf))

/** Registers Nodes, as the kubelets of the pool's machines do. */
const registerNodes = (twin: Twin, ...names: readonly string[]) =>
  twin.inWorkload(clusterName, async (client) => {
    const timestamp = new Date().toISOString().replace(/\.\d+/, '')
    const ready = {
      type: 'Ready',
      status: 'True',
      reason: 'Twin',
      message: '',
      lastHeartbeatTime: timestamp,
      lastTransitionTime: timestamp,
    }
    for (const name of names) {
      await client.create(Node, { metadata: { name }, spec: { providerID: idOf(name) } }, { fieldManager: 'kubelet' })
      const body = { status: { conditions: [ready] } }
      await client.patch(Node, { name }, { type: 'merge', body }, { subresource: 'status', fieldManager: 'kubelet' })
    }
  })

/** Compares the Nodes of the workload cluster. */
const compareNodes = (twin: Twin) =>
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
  await compareNodes(twin)
  await twin.setReports({ machine: () => withNodes('b') })
  await twin.patch(MachinePool, 'p', { spec: { replicas: 1 } })
  await twin.settle('the first machine no longer exists')
  await compareNodes(twin)
}

const idWithoutNode: Case = async (twin) => {
  await createPool(twin, withNodes('a', 'ghost'), pool({ replicas: 2 }))
  await registerNodes(twin, 'a')
  await twin.settle('one machine has no Node')
  await registerNodes(twin, 'ghost')
  await twin.settle('the Node of the machine has joined')
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
    ['a second pool', pools(poolTopology(), poolTopology({ name: 'q' }))],
    ['the first pool is removed', pools(poolTopology({ name: 'q' }))],
  ]
  for (const [name, topology] of steps) {
    await twin.patch(Cluster, clusterName, managed.topology(topology))
    await twin.settle(name)
  }
}

const replicasManaged: Case = async (twin) => {
  const annotations = { 'cluster.x-k8s.io/replicas-managed-by': 'provider' }
  await createPool(twin, reported([]), pool({ replicas: 2 }, {}, { annotations }))
}

export const machinePoolCases: Cases = {
  'machinepool-life': lifecycle,
  'machinepool-late': late,
  'machinepool-paused': paused,
  'machinepool-data-secret': dataSecret,
  'machinepool-no-cluster': noCluster,
  'machinepool-taken-back': takenBack,
  'machinepool-deleted-behind': deletedBehind,
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
  'machinepool-of-class': ofClass,
  'machinepool-replicas-managed': replicasManaged,
}
