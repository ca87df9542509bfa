/**
 * Conditions of a Cluster that aggregate conditions of its objects, summarize its own conditions (Available), or describe the connection to
 * its workload cluster. Pure, except that `availableCondition` logs invalid availability gates.
 * Upstream: core/reconcilers/cluster/cluster_controller_status.go, v1.14.
 */
import { type Cluster, ClusterConditions, type ConditionGate, type Machine } from '@capstan/api'
import {
  type AggregatedObject,
  aggregate,
  type ConditionType,
  getCondition,
  isDeleting,
  type Logger,
  type NewCondition,
  seconds,
  timeLeft,
  timestamp,
  type ReportedCondition,
} from '@capstan/kube'
import { remediatingCondition as remediatingOf } from '../machineset/machines-report.ts'
import { failsForLonger, type Health, Timing } from '../cluster-cache/accessor.ts'
import { externalOf } from '../external/observed.ts'
import { gatedSummary } from '../gated-summary.ts'
import { SeeLogs } from '../see-logs.ts'
import { isStandAlone, withoutPoolMachines } from './descendants.ts'
import type { ClusterScope } from './scope.ts'

export function workersAvailableCondition({ descendants }: ClusterScope): NewCondition {
  const condition = ClusterConditions.WorkersAvailable
  if (!descendants) return condition.unknown('InternalError', SeeLogs)
  if (descendants.machineDeployments.length === 0) return condition.true('NoWorkers')
  return aggregate(descendants.machineDeployments, 'Available', {
    as: condition,
    reasons: { issue: 'NotAvailable', unknown: 'AvailableUnknown', info: 'Available' },
  })
}

/** Returns the condition ControlPlaneMachinesReady or WorkerMachinesReady, depending on the role. */
export function machinesReadyCondition({ descendants }: ClusterScope, role: 'ControlPlane' | 'Worker'): NewCondition {
  const condition = role === 'ControlPlane' ? ClusterConditions.ControlPlaneMachinesReady : ClusterConditions.WorkerMachinesReady
  if (!descendants) return condition.unknown('InternalError', SeeLogs)
  const machines = role === 'ControlPlane' ? descendants.controlPlaneMachines : withoutPoolMachines(descendants.workerMachines)
  if (machines.length === 0) return condition.true('NoReplicas')
  return aggregate(machines, 'Ready', {
    as: condition,
    reasons: { issue: 'NotReady', unknown: 'ReadyUnknown', info: 'Ready' },
  })
}

/**
 * Time after the creation of a Machine during which a missing UpToDate condition does not make the Cluster's condition Unknown: the
 * Machine controller, or the control plane provider, sets UpToDate a moment later.
 */
const UpToDateDelay = seconds(10)

/** Returns the condition ControlPlaneMachinesUpToDate or WorkerMachinesUpToDate, depending on the role. */
export function machinesUpToDateCondition(
  { descendants }: ClusterScope,
  role: 'ControlPlane' | 'Worker',
  now: number,
): NewCondition {
  const condition =
    role === 'ControlPlane' ? ClusterConditions.ControlPlaneMachinesUpToDate : ClusterConditions.WorkerMachinesUpToDate
  if (!descendants) return condition.unknown('InternalError', SeeLogs)
  const machinesOfRole =
    role === 'ControlPlane' ? descendants.controlPlaneMachines : withoutPoolMachines(descendants.workerMachines)
  const machines = machinesOfRole.filter((machine) => !awaitsUpToDate(machine, now))
  if (machines.length === 0) return condition.true('NoReplicas')
  return aggregate(machines, 'UpToDate', {
    as: condition,
    reasons: { issue: 'NotUpToDate', unknown: 'UpToDateUnknown', info: 'UpToDate' },
  })
}

/** Reports whether a Machine has no UpToDate condition yet, and is so new (up to 10 s) that the Cluster's condition ignores it. */
export const awaitsUpToDate = (machine: Machine, now: number): boolean =>
  getCondition(machine, 'UpToDate') === undefined && untilUpToDate(machine, now) > 0

/** Milliseconds until a Machine without the condition UpToDate makes the Cluster's condition Unknown; 0 or less from then on. */
export const untilUpToDate = ({ metadata }: Machine, now: number): number =>
  timeLeft({ since: Date.parse(metadata.creationTimestamp), length: UpToDateDelay, now })

/**
 * Returns the condition RollingOut, ScalingUp or ScalingDown: True while this condition is True on the control plane object or a
 * MachineDeployment; for scaling, also on a stand-alone MachineSet. MachinePools are not included.
 */
export function aggregateProgress(
  scope: ClusterScope,
  condition: ConditionType<'RollingOut' | 'ScalingUp' | 'ScalingDown', string>,
): NewCondition {
  const { type } = condition
  const { cluster, controlPlane, descendants } = scope
  if (!descendants || (cluster.spec.controlPlaneRef && controlPlane.state === 'unread')) {
    return condition.unknown('InternalError', SeeLogs)
  }
  const controlPlaneObject = externalOf(controlPlane)?.object
  const objects: AggregatedObject[] = [
    ...(controlPlaneObject && getCondition(controlPlaneObject, type) ? [controlPlaneObject] : []),
    ...descendants.machineDeployments,
    ...(type === 'RollingOut' ? [] : descendants.machineSets.filter(isStandAlone(cluster))),
  ]
  if (objects.length === 0) return condition.false(`Not${type}`)
  return aggregate(objects, type, {
    as: condition,
    negative: true,
    reasons: { issue: type, unknown: `${type}Unknown`, info: `Not${type}` },
  })
}

export function remediatingCondition({ descendants }: ClusterScope): NewCondition {
  const machines = descendants && [...descendants.controlPlaneMachines, ...withoutPoolMachines(descendants.workerMachines)]
  return remediatingOf(machines)
}

/**
 * Returns the RemoteConnectionProbe condition. If the Cluster already has the condition, returns none while no probe of this process has
 * succeeded and fewer than `Timing.failuresToDisconnect` failures were counted: after a restart of core, the existing condition may still be
 * correct.
 */
export function remoteConnectionProbe(
  cluster: Cluster,
  health: Health,
  { now, gracePeriod }: { readonly now: number; readonly gracePeriod: number },
): NewCondition[] {
  const condition = ClusterConditions.RemoteConnectionProbe
  const { lastProbeSuccess, consecutiveFailures } = health
  if (lastProbeSuccess === undefined) {
    if (consecutiveFailures >= Timing.failuresToDisconnect)
      return [condition.false('ProbeFailed', 'Remote connection probe failed')]
    if (getCondition(cluster, condition.type)) return []
    return [condition.false('ProbeFailed', 'Remote connection not established yet')]
  }
  if (failsForLonger(health, gracePeriod, { now })) {
    const since = timestamp(lastProbeSuccess)
    return [condition.false('ProbeFailed', `Remote connection probe failed, probe last succeeded at ${since}`)]
  }
  return [condition.true('ProbeSucceeded')]
}

/** Returns the Available condition, which summarizes other conditions. `classGates` apply if the Cluster has no availability gates. */
export function availableCondition(
  cluster: Cluster,
  { classGates, log }: { readonly classGates: readonly ConditionGate[] | undefined; readonly log: Logger },
): NewCondition {
  return gatedSummary(cluster, ClusterConditions.Available, {
    of: [
      'Deleting',
      'RemoteConnectionProbe',
      'InfrastructureReady',
      'ControlPlaneAvailable',
      'WorkersAvailable',
      'TopologyReconciled',
    ],
    gates: cluster.spec.availabilityGates ?? classGates ?? [],
    negative: ['Deleting'],
    ignoreIfMissing: cluster.spec.topology ? [] : ['TopologyReconciled'],
    reasons: { issue: 'NotAvailable', unknown: 'AvailableUnknown', info: 'Available' },
    isExpected: (condition) => isExpected(cluster, condition),
    log,
  })
}

/** Returns whether a condition differs from its normal status without making the Cluster unavailable. */
function isExpected(cluster: Cluster, { type, status, reason = '' }: ReportedCondition): boolean {
  if (type === 'TopologyReconciled') {
    return status === 'False' && reason !== 'ReconcileFailed' && reason !== 'ClusterClassNotReconciled'
  }
  const isReferenced = type === 'InfrastructureReady' || type === 'ControlPlaneAvailable'
  return isDeleting(cluster) && isReferenced && (reason === 'ObjectDeleted' || reason === 'ObjectDoesNotExist')
}
