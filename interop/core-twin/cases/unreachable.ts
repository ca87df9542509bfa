/** Cases of workload clusters that are unreachable from the beginning, or become unreachable. */
import { Cluster, Machine, MachineHealthCheck, MachineSet } from '@capstan/api'
import { getCondition, isTrue, type KubeObject, minutes, seconds, Secret, sleep, systemClock } from '@capstan/kube'
import { cluster, clusterName, machine, machineSet, named } from '../objects.ts'
import { stub } from '../stub-kinds.ts'
import type { Case, Cases, Twin } from '../twin.ts'
import { connected, createDrainableMachine, isDeletedAfter, isInStage } from './machine.ts'
import { createWorkerTemplates } from './machine-set.ts'

/**
 * Creates a Cluster whose providers are ready, and waits until its control plane is initialized, but not for a connection to its workload
 * cluster. A Machine must not be created earlier: core would set the Machine's conditions NodeReady and NodeHealthy, and would not
 * change them for five minutes, unless it connects.
 */
async function createProvisionedCluster(twin: Twin): Promise<void> {
  await twin.create(stub.cluster, named(clusterName, { spec: {} }))
  await twin.create(stub.controlPlane, named(clusterName, { spec: {} }))
  await twin.create(Cluster, cluster())
  await twin.settle('the Cluster is provisioned', (objects) =>
    objects.some((object) => object.kind === 'Cluster' && isTrue(object as Cluster, 'ControlPlaneInitialized')),
  )
}

async function createProvisionedMachine(twin: Twin, spec: object = {}): Promise<void> {
  await twin.create(stub.config, named('m', { spec: {} }))
  await twin.create(stub.machine, named('m', { spec: {} }))
  await twin.create(Machine, machine('m', spec))
}

const kubeconfigSecret = (data: { [key: string]: string }) => ({
  metadata: { name: `${clusterName}-kubeconfig`, labels: { 'cluster.x-k8s.io/cluster-name': clusterName } },
  type: 'cluster.x-k8s.io/secret',
  data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')])),
})

/** The kubeconfig Secret is wrong. At the end, the Cluster is deleted with its Machine. */
const wrongKubeconfig =
  (data: { [key: string]: string }): Case =>
  async (twin) => {
    await twin.create(Secret, kubeconfigSecret(data))
    await createProvisionedCluster(twin)
    await createProvisionedMachine(twin)
    await twin.settle('the kubeconfig Secret is wrong')
    await twin.delete(Cluster, clusterName)
    await twin.settle('the Cluster is deleted')
  }

/** Returns whether the Cluster reports that core could not connect. Upstream reports this after five attempts, 30 seconds apart. */
const hasFailed = (objects: readonly KubeObject[]) =>
  objects.some(
    (object) =>
      object.kind === 'Cluster' &&
      getCondition(object as Cluster, 'RemoteConnectionProbe')?.message === 'Remote connection probe failed',
  )

const missingKubeconfig: Case = async (twin) => {
  await createProvisionedCluster(twin)
  await createProvisionedMachine(twin)
  await twin.settle('there is no kubeconfig Secret')
  await sleep(systemClock, minutes(2) + seconds(10))
  // Upstream does not reconcile the Cluster when the fifth attempt fails.
  await twin.touch(Cluster, clusterName)
  await twin.settle('five attempts to connect have failed', hasFailed)
  await twin.startWorkload(clusterName)
  await twin.settle('the kubeconfig Secret exists', connected)
}

/** Creates a Cluster whose workload API server stops before core connects for the first time. */
async function createUnreachableCluster(twin: Twin): Promise<void> {
  await twin.startWorkload(clusterName)
  await twin.stopWorkload(clusterName)
  await createProvisionedCluster(twin)
}

const machineDeleted: Case = async (twin) => {
  await createUnreachableCluster(twin)
  await createProvisionedMachine(twin)
  await twin.settle('the Machine is provisioned')
  await twin.delete(Machine, 'm')
  await twin.settle('the Machine is deleted')
}

const machineWithTimeouts: Case = async (twin) => {
  await createUnreachableCluster(twin)
  await createProvisionedMachine(twin, { deletion: shortTimeouts })
  await twin.settle('the Machine is provisioned')
  await twin.delete(Machine, 'm')
  await twin.settle('the Machine is deleted')
}

const setScaled: Case = async (twin) => {
  await createUnreachableCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineSet, machineSet('ms', { replicas: 2 }))
  await twin.settle('two Machines exist')
  await twin.patch(MachineSet, 'ms', { spec: { replicas: 1 } })
  await twin.settle('scaled down')
}

const healthCheck: Case = async (twin) => {
  await createUnreachableCluster(twin)
  await createWorkerTemplates(twin)
  await twin.create(MachineSet, machineSet('ms'))
  const checks = {
    nodeStartupTimeoutSeconds: 30,
    unhealthyNodeConditions: [{ type: 'Ready', status: 'False', timeoutSeconds: 0 }],
  }
  const spec = { clusterName, selector: { matchLabels: { set: 'ms' } }, checks }
  await twin.create(MachineHealthCheck, { metadata: { name: 'mhc' }, spec } as never)
  await twin.settle('Machines are not checked')
}

/** Returns whether the Cluster reports that the connection is lost. Upstream reports this 50 seconds after the last successful probe. */
const isLost = (objects: readonly KubeObject[]) =>
  objects.some(
    (object) => object.kind === 'Cluster' && getCondition(object as Cluster, 'RemoteConnectionProbe')?.status === 'False',
  )

const lost =
  (afterwards: (twin: Twin) => Promise<void>, deletion: object = {}): Case =>
  async (twin) => {
    await createDrainableMachine(twin, {}, { deletion })
    await twin.stopWorkload(clusterName)
    await twin.settle('the connection is lost', isLost)
    await afterwards(twin)
  }

/** The connection is lost. Then a user deletes the Machine, and the deletion reaches the state `until`. */
const lostMachineDeleted = (step: string, until: (objects: readonly KubeObject[]) => boolean, deletion: object): Case =>
  lost(async (twin) => {
    await twin.delete(Machine, 'm')
    await twin.settle(step, until)
  }, deletion)

const shortTimeouts = { nodeDrainTimeoutSeconds: 1, nodeVolumeDetachTimeoutSeconds: 1, nodeDeletionTimeoutSeconds: 1 }

export const unreachableCases: Cases = {
  'unreachable-kubeconfig-missing': missingKubeconfig,
  'unreachable-kubeconfig-nonsense': wrongKubeconfig({ value: 'nonsense' }),
  'unreachable-kubeconfig-empty': wrongKubeconfig({ value: '' }),
  'unreachable-kubeconfig-of-another-key': wrongKubeconfig({ other: 'x' }),
  'unreachable-machine-deleted': machineDeleted,
  'unreachable-machine-timeouts': machineWithTimeouts,
  'unreachable-machineset-scaled': setScaled,
  'unreachable-healthcheck': healthCheck,
  'unreachable-lost': lost(async () => {}),
  'unreachable-lost-machine-deleted': lostMachineDeleted(
    'the Machine is deleted after the timeouts',
    isDeletedAfter('FailedDeleteNode'),
    shortTimeouts,
  ),
  'unreachable-lost-drain': lostMachineDeleted('the drain fails', isInStage('DrainingNode'), {}),
  'unreachable-lost-volumes': lostMachineDeleted('the wait for volumes fails', isInStage('WaitingForVolumeDetach'), {
    nodeDrainTimeoutSeconds: 1,
  }),
  'unreachable-lost-node': lostMachineDeleted('the Node cannot be deleted', isInStage('DeletingNode'), {
    ...shortTimeouts,
    nodeDeletionTimeoutSeconds: 0,
  }),
  'unreachable-lost-cluster-deleted': lost(async (twin) => {
    await twin.delete(Cluster, clusterName)
    await twin.settle('the Cluster is deleted')
  }),
}
