/**
 * Cases in which a user changes or deletes objects of a topology, so that core cannot determine the current state of the topology.
 * Every case does the same with upstream's core and with Capstan's, and compares all objects after each step (`settle`).
 */
import { Cluster, MachineDeployment, MachinePool } from '@capstan/api'
import type { Kind } from '@capstan/kube'
import { clusterName } from '../objects.ts'
import { noReport } from '../providers.ts'
import { stub, type StubObject } from '../stub-kinds.ts'
import type { Case, Cases, Target, Twin } from '../twin.ts'
import { createPoolTopology, poolReport, poolTopology, reports } from './topology-pools.ts'
import { createTopology, topology } from './topology.ts'

const withoutLabel = (label: string) => ({ metadata: { labels: { [`topology.cluster.x-k8s.io/${label}`]: null } } })
const onlyDataSecret = { spec: { template: { spec: { bootstrap: { configRef: null, dataSecretName: 'data' } } } } }

/** Selects the object that the topology has created. */
const created: Target<StubObject> = (templates) =>
  templates.find(({ metadata }) => metadata.labels?.['topology.cluster.x-k8s.io/owned'] !== undefined)
const ofControlPlane: Target<StubObject> = (templates) =>
  templates.find(
    ({ metadata: { labels = {} } }) =>
      labels['topology.cluster.x-k8s.io/owned'] !== undefined &&
      labels['topology.cluster.x-k8s.io/deployment-name'] === undefined,
  )
const ofWorkers: Target<StubObject> = (templates) =>
  templates.find(({ metadata }) => metadata.labels?.['topology.cluster.x-k8s.io/deployment-name'] !== undefined)
const first = <T>([object]: readonly T[]): T | undefined => object

const expectFailure = async (twin: Twin, text: string) => {
  await twin.touch(Cluster, clusterName)
  await twin.settle('the topology fails', reports('ReconcileFailed', text))
}

const changed =
  <T extends StubObject | MachineDeployment>(kind: Kind<T>, target: Target<T>, patch: object, text: string): Case =>
  async (twin) => {
    await createTopology(twin)
    await twin.patch(kind, target, patch)
    await expectFailure(twin, text)
  }

const deleted =
  (kind: Kind<StubObject>, target: Target<StubObject>, text: string): Case =>
  async (twin) => {
    await createTopology(twin)
    await twin.delete(kind, target)
    await expectFailure(twin, text)
  }

const changedPool =
  <T extends StubObject | MachinePool>(kind: Kind<T>, target: Target<T>, patch: object, text: string): Case =>
  async (twin) => {
    await twin.setReports({ machine: () => poolReport() })
    await createPoolTopology(twin, poolTopology('p'))
    await twin.patch(kind, target, patch)
    await expectFailure(twin, text)
  }

/**
 * A user removes the version of the control plane during an upgrade. The upgrade plan in the status of the Cluster stays, because core
 * cannot compute another plan.
 */
const upgradingWithoutVersion: Case = async (twin) => {
  await createTopology(twin)
  await twin.setReports({ controlPlane: noReport })
  await twin.patch(Cluster, clusterName, topology({ version: 'v1.35.0' }))
  await twin.settle('the upgrade waits for the control plane', reports('ClusterUpgrading'))
  await twin.patch(stub.controlPlane, first, { spec: { version: null } })
  await expectFailure(twin, 'failed to get the version')
}

const notOwned = 'is not topology owned'
const disown = withoutLabel('owned')

export const topologyCurrentStateCases: Cases = {
  'topology-infrastructure-disowned': changed(stub.cluster, first, disown, notOwned),
  'topology-control-plane-template-disowned': changed(stub.machineTemplate, ofControlPlane, disown, notOwned),
  'topology-machine-template-disowned': changed(stub.machineTemplate, ofWorkers, disown, notOwned),
  'topology-config-template-disowned': changed(stub.configTemplate, ofWorkers, disown, notOwned),
  'topology-deployment-without-name': changed(MachineDeployment, first, withoutLabel('deployment-name'), 'failed to find label'),
  'topology-deployment-without-config': changed(MachineDeployment, first, onlyDataSecret, 'does not have a reference'),
  'topology-control-plane-without-template': changed(
    stub.controlPlane,
    first,
    { spec: { machineTemplate: { spec: { infrastructureRef: null } } } },
    'failed to get InfrastructureMachineTemplate reference',
  ),
  'topology-control-plane-without-version': changed(
    stub.controlPlane,
    first,
    { spec: { version: null } },
    'failed to get the version',
  ),
  'topology-control-plane-without-version-in-upgrade': upgradingWithoutVersion,
  'topology-infrastructure-removed': deleted(stub.cluster, first, 'failed to read'),
  'topology-control-plane-removed': deleted(stub.controlPlane, first, 'failed to read'),
  'topology-control-plane-template-removed': deleted(stub.machineTemplate, ofControlPlane, 'failed to get'),
  'topology-machine-template-removed': deleted(stub.machineTemplate, ofWorkers, 'could not be retrieved'),
  'topology-pools-infrastructure-disowned': changedPool(stub.machine, created, disown, notOwned),
  'topology-pools-config-disowned': changedPool(stub.config, created, disown, notOwned),
  'topology-pools-without-name': changedPool(MachinePool, first, withoutLabel('pool-name'), 'failed to find label'),
  'topology-pools-without-config': changedPool(MachinePool, first, onlyDataSecret, 'does not have a reference'),
}
