/**
 * Cases in which both managers are killed, objects change or stay unchanged while no manager runs, and both managers start again.
 * Every case does the same with upstream's core and with Capstan's, and compares all objects after each step (`settle`).
 */
import { Cluster, ClusterResourceSet, Machine, MachineDeployment, MachineHealthCheck, MachineSet } from '@capstan/api'
import { ConfigMap, type KubeObject, Node, Pod } from '@capstan/kube'
import { clusterName, machine, machineDeployment, machineSet, named, nodeCondition } from '../objects.ts'
import { everythingReady, noReport } from '../providers.ts'
import { stub } from '../stub-kinds.ts'
import type { Case, Cases, Twin } from '../twin.ts'
import { createDrainableMachine, createReadyCluster, createReadyMachine, isDeletedAfter, isInStage, isGone } from './machine.ts'
import { ProvisioningLimit, version } from './machine-deployment.ts'
import { denyEvents } from './policy.ts'
import { createWorkerTemplates } from './machine-set.ts'
import { createTopology, isUpgraded, topology } from './topology.ts'

const changeNothing = async (): Promise<void> => {}

const workersUnchanged: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineDeployment, machineDeployment('md', { replicas: 2 }))
  await twin.settle('the MachineDeployment is ready')
  await twin.whileStopped(changeNothing)
  await twin.settle('nothing changed after the restart')
}

const topologyUnchanged: Case = async (twin) => {
  await createTopology(twin)
  await twin.whileStopped(changeNothing)
  await twin.settle('nothing changed after the restart')
}

const provisioned: Case = async (twin) => {
  await createReadyCluster(twin)
  await twin.setReports({ machine: noReport, config: noReport })
  await twin.create(stub.config, named('m', { spec: {} }))
  await twin.create(stub.machine, named('m', { spec: {} }))
  await twin.create(Machine, machine('m'))
  await twin.settle('neither provider reports')
  await twin.whileStopped(() => twin.setReports(everythingReady))
  await twin.settle('the Machine was provisioned while no manager ran')
}

const rollout: Case = async (twin) => {
  const limit = new ProvisioningLimit()
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await limit.set(twin, 2)
  await twin.create(MachineDeployment, machineDeployment('md', { replicas: 2 }))
  await twin.settle('the MachineDeployment is created')
  await twin.patch(MachineDeployment, 'md', { spec: version('v1.35.1') })
  await twin.settle('no new Machine is available')
  await twin.whileStopped(() => limit.set(twin, 3))
  await twin.settle('one new Machine is available')
  await limit.set(twin, 4)
  await twin.settle('the rollout is complete')
}

/**
 * Returns whether each Machine's status reflects its spec. After a restart, upstream's manager reconciles a Machine again only some time
 * after the manager has connected to the workload cluster.
 */
const machinesObserved = (objects: readonly KubeObject[]) =>
  objects
    .filter((machine): machine is Machine => machine.kind === Machine.kind)
    .every(({ metadata, status }) => status?.observedGeneration === metadata.generation)

const scaled: Case = async (twin) => {
  await createReadyCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineSet, machineSet('ms', { replicas: 1 }))
  await twin.settle('one Machine runs')
  await twin.patch(MachineSet, 'ms', { spec: { replicas: 4 } })
  await twin.whileStopped(changeNothing)
  await twin.settle('scaled up', machinesObserved)
}

/** The finalizer of the infrastructure is removed while no manager runs. */
const deletion: Case = async (twin) => {
  await createReadyMachine(twin)
  await twin.patch(stub.machine, 'm', { metadata: { finalizers: ['twin.capstan.dev/hold'] } })
  await twin.delete(Machine, 'm')
  await twin.settle('the infrastructure blocks the deletion')
  await twin.whileStopped(() => twin.patch(stub.machine, 'm', { metadata: { finalizers: null } }))
  await twin.settle('the Machine is deleted', isGone('Machine'))
}

const clusterDeletion: Case = async (twin) => {
  await createReadyMachine(twin)
  await twin.patch(stub.controlPlane, clusterName, { metadata: { finalizers: ['twin.capstan.dev/hold'] } })
  await twin.delete(Cluster, clusterName)
  await twin.settle('the control plane blocks the deletion')
  await twin.whileStopped(() => twin.patch(stub.controlPlane, clusterName, { metadata: { finalizers: null } }))
  await twin.settle('the Cluster is deleted', isGone('Cluster'))
}

/**
 * Events of a failed drain are not recorded, because their number depends on timing: after its start, upstream reconciles the
 * Machine and connects to the workload cluster concurrently, and each reconcile before the connection reports a failed drain.
 */
const drain: Case = async (twin) => {
  await createDrainableMachine(twin)
  await denyEvents(twin, 'FailedDrainNode')
  const pod = { metadata: { name: 'a', namespace: 'default' }, spec: { nodeName: 'm', containers: [{ name: 'c', image: 'i' }] } }
  await twin.inWorkload(clusterName, (client) => client.create(Pod, pod as never))
  await twin.delete(Machine, 'm')
  await twin.settle('a Pod is evicted', isInStage('DrainingNode', 'deletionTimestamp set'))
  await twin.whileStopped(() =>
    twin.inWorkload(clusterName, (client) => client.delete(Pod, { namespace: 'default', name: 'a' }, { gracePeriodSeconds: 0 })),
  )
  await twin.settle('the Machine is drained and deleted', isDeletedAfter('SuccessfulDrainNode'))
}

const nodeDeleted: Case = async (twin) => {
  await createReadyMachine(twin)
  await twin.whileStopped(() => twin.inWorkload(clusterName, (client) => client.delete(Node, { name: 'm' })))
  await twin.settle('the Node is deleted')
}

const upgrade: Case = async (twin) => {
  await createTopology(twin)
  await twin.setReports({ controlPlane: noReport })
  await twin.patch(Cluster, clusterName, topology({ version: 'v1.35.0' }))
  await twin.settle('the control plane is stuck')
  await twin.whileStopped(() => twin.setReports(everythingReady))
  await twin.settle('the Cluster is upgraded', isUpgraded('v1.35.0'))
}

const notReady = ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'].map((type) => nodeCondition(type, 'False'))

const healthCheck: Case = async (twin) => {
  await createReadyMachine(twin, { labels: { set: 'x' } })
  const checks = {
    nodeStartupTimeoutSeconds: 30,
    unhealthyNodeConditions: [{ type: 'Ready', status: 'False', timeoutSeconds: 0 }],
  }
  const spec = { clusterName, selector: { matchLabels: { set: 'x' } }, checks }
  await twin.create(MachineHealthCheck, { metadata: { name: 'mhc' }, spec } as never)
  await twin.settle('the Machine is healthy')
  const report = (twin: Twin) =>
    twin.inWorkload(clusterName, (client) =>
      client.patch(
        Node,
        { name: 'm' },
        { type: 'merge', body: { status: { conditions: notReady } } },
        { subresource: 'status', fieldManager: 'kubelet' },
      ),
    )
  await twin.whileStopped(() => report(twin))
  await twin.settle('the Machine is unhealthy')
}

const resourceSet: Case = async (twin) => {
  await createReadyCluster(twin)
  const data = (value: string) => ({
    data: {
      a: JSON.stringify({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'made', namespace: 'default' },
        data: { value },
      }),
    },
  })
  await twin.create(ConfigMap, { metadata: { name: 'source' }, ...data('one') })
  await twin.patch(Cluster, clusterName, { metadata: { labels: { selected: 'yes' } } })
  const spec = {
    strategy: 'Reconcile',
    clusterSelector: { matchLabels: { selected: 'yes' } },
    resources: [{ kind: 'ConfigMap', name: 'source' }],
  }
  await twin.create(ClusterResourceSet, { metadata: { name: 'set' }, spec } as never)
  await twin.settle('the ConfigMap is applied')
  await twin.whileStopped(() => twin.patch(ConfigMap, 'source', data('two')))
  await twin.settle('the changed ConfigMap is applied')
}

export const restartCases: Cases = {
  'restart-workers-unchanged': workersUnchanged,
  'restart-topology-unchanged': topologyUnchanged,
  'restart-provisioned': provisioned,
  'restart-rollout': rollout,
  'restart-scaled': scaled,
  'restart-machine-deletion': deletion,
  'restart-cluster-deletion': clusterDeletion,
  'restart-drain': drain,
  'restart-node-deleted': nodeDeleted,
  'restart-topology-upgrade': upgrade,
  'restart-healthcheck': healthCheck,
  'restart-resourceset': resourceSet,
}
