/**
 * Computes the status of a MachinePool. Pure, except for the draft that it changes. Upstream: machinepool_controller_status.go and
 * reconcilePhase, v1.14.
 */
import {
  areReplicasManagedExternally,
  ConditionOrder,
  infrastructureMachineKindOf,
  type MachinePool,
  type MachinePoolStatus,
  type ReplicasOfVersion,
  pausedCondition,
} from '@capstan/api'
import { isDeleting, isTrue, setConditions } from '@capstan/kube'
import { externalOf, invalidOf } from '../external/observed.ts'
import { mergeVersions, versionsOfMachines } from '../versions-in-use.ts'
import { reportLegacyStatus } from './legacy-status.ts'
import type { MachinePoolScope } from './scope.ts'

/** Conditions that this controller owns. */
export const OwnedConditions = ['Paused']

/** Writes counts, conditions and phase on the scope's draft. */
export function reportStatus(scope: MachinePoolScope, now: number): void {
  const { machinePool, cluster } = scope
  const status = (machinePool.status ??= {})
  reportCounts(scope, status)
  const conditions = [pausedCondition(cluster, machinePool)]
  const { generation } = machinePool.metadata
  status.conditions = setConditions(status.conditions, conditions, { now, generation, order: ConditionOrder })
  status.phase = phaseOf(machinePool)
  reportLegacyStatus(scope, now)
}

/**
 * Writes counts and versions. The earlier ones stay when the infrastructure machine pool was not read, does not exist or breaks the contract,
 * and when it supports Machines but these were not listed.
 */
function reportCounts(scope: MachinePoolScope, status: MachinePoolStatus): void {
  if (invalidOf(scope.infrastructure) !== undefined) return
  const external = externalOf(scope.infrastructure)
  if (!external) return
  const { machinePool, machines, workload } = scope
  if (infrastructureMachineKindOf(external.object, external.contract) !== undefined) {
    if (!machines) return
    const count = (condition: string) => machines.filter((machine) => isTrue(machine, condition)).length
    status.readyReplicas = count('Ready')
    status.availableReplicas = count('Available')
    status.upToDateReplicas = count('UpToDate')
    reportVersions(status, versionsOfMachines(machines))
    return
  }
  // As upstream, all existing replicas count as ready and available.
  if (status.replicas !== undefined) {
    status.readyReplicas = status.replicas
    status.availableReplicas = status.replicas
  } else {
    delete status.readyReplicas
    delete status.availableReplicas
  }
  if (machinePool.spec.replicas !== undefined) status.upToDateReplicas = machinePool.spec.replicas
  if (!workload) {
    // As upstream, the versions are removed while the infrastructure machine pool is being deleted. While the workload cluster is
    // disconnected, the earlier versions stay.
    if (isDeleting(external.object)) delete status.versions
    return
  }
  // References may name deleted Nodes, which have no version. As upstream, Nodes without a provider ID do not count either.
  const versions = (status.nodeRefs ?? []).flatMap(({ name }) => {
    const node = name === undefined ? undefined : workload.node(name)
    return (node?.spec?.providerID && node.status?.nodeInfo?.kubeletVersion) || []
  })
  reportVersions(status, mergeVersions(versions.map((version) => ({ version, replicas: 1 }))))
}

function reportVersions(status: MachinePoolStatus, versions: ReplicasOfVersion[] | undefined): void {
  if (versions) status.versions = versions
  else delete status.versions
}

/**
 * Returns the phase of a MachinePool. If its state implies no phase, the earlier phase stays; without an earlier phase, the phase is
 * Pending.
 */
export function phaseOf(machinePool: MachinePool): NonNullable<MachinePoolStatus['phase']> {
  const { spec, status = {} } = machinePool
  const { bootstrapDataSecretCreated, infrastructureProvisioned } = status.initialization ?? {}
  if (isDeleting(machinePool)) return 'Deleting'
  const ready = status.deprecated?.v1beta1?.readyReplicas ?? 0
  if (infrastructureProvisioned && spec.replicas !== undefined) {
    if (spec.replicas === ready) return 'Running'
    if (areReplicasManagedExternally(machinePool)) return 'Scaling'
    return spec.replicas > ready ? 'ScalingUp' : 'ScalingDown'
  }
  if ((status.nodeRefs ?? []).length > 0) return 'Provisioned'
  if (bootstrapDataSecretCreated && !infrastructureProvisioned) return 'Provisioning'
  return status.phase ?? 'Pending'
}
