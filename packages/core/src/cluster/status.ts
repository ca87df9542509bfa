/**
 * Computes the status of a Cluster: conditions, counters, phase. Pure, except that it changes the draft and logs invalid availability gates.
 */
import {
  type Cluster,
  ClusterConditions,
  type ConditionGate,
  ConditionOrder,
  isValidEndpoint,
  pausedCondition,
} from '@capstan/api'
import { type Outcome, proceed, requeue } from '@capstan/controller'
import { isDeleting, isTrue, type Logger, type NewCondition, setConditions, smallest } from '@capstan/kube'
import type { Health } from '../cluster-cache/accessor.ts'
import {
  availableCondition,
  awaitsUpToDate,
  aggregateProgress,
  machinesReadyCondition,
  machinesUpToDateCondition,
  remediatingCondition,
  remoteConnectionProbe,
  untilUpToDate,
  workersAvailableCondition,
} from './conditions.ts'
import { controlPlaneAvailableCondition, controlPlaneInitializedConditions } from './control-plane.ts'
import { infrastructureReadyCondition } from './infrastructure.ts'
import { reportLegacyStatus } from './legacy-status.ts'
import { reportReplicas } from './replicas.ts'
import type { ClusterScope } from './scope.ts'

/** Inputs of `reportStatus` beside the scope. */
export interface StatusFacts {
  readonly now: number
  /** Results of probes of the workload cluster. */
  readonly health: Health
  /**
   * RemoteConnectionProbe becomes False when probes fail and the last success was longer ago than this number of milliseconds. Not used before
   * the first success.
   */
  readonly gracePeriod: number
  /** Availability gates of the ClusterClass. */
  readonly classGates: readonly ConditionGate[] | undefined
  readonly log: Logger
}

/** Conditions that this controller owns; TopologyReconciled belongs to the topology controller. */
export const OwnedConditions = [
  'Available',
  'InfrastructureReady',
  'ControlPlaneInitialized',
  'ControlPlaneAvailable',
  'WorkersAvailable',
  'ControlPlaneMachinesReady',
  'WorkerMachinesReady',
  'ControlPlaneMachinesUpToDate',
  'WorkerMachinesUpToDate',
  'RemoteConnectionProbe',
  'RollingOut',
  'ScalingUp',
  'ScalingDown',
  'Remediating',
  'Deleting',
  'Paused',
] as const satisfies readonly (keyof typeof ClusterConditions)[]

/**
 * Writes conditions (also in the v1beta1 form), counters and phase on the scope's draft. Returns a requeue while new Machines have no UpToDate
 * condition.
 */
export function reportStatus(scope: ClusterScope, facts: StatusFacts): Outcome {
  const { cluster } = scope
  const { now } = facts
  const status = (cluster.status ??= {})
  const set = (conditions: readonly NewCondition[]) => {
    const { generation } = cluster.metadata
    status.conditions = setConditions(status.conditions, conditions, { now, generation, order: ConditionOrder })
  }
  reportReplicas(scope)
  set([
    infrastructureReadyCondition(scope),
    ...controlPlaneInitializedConditions(scope),
    controlPlaneAvailableCondition(scope),
    workersAvailableCondition(scope),
    machinesReadyCondition(scope, 'ControlPlane'),
    machinesReadyCondition(scope, 'Worker'),
    machinesUpToDateCondition(scope, 'ControlPlane', now),
    machinesUpToDateCondition(scope, 'Worker', now),
    ...remoteConnectionProbe(cluster, facts.health, facts),
    aggregateProgress(scope, ClusterConditions.RollingOut),
    aggregateProgress(scope, ClusterConditions.ScalingUp),
    aggregateProgress(scope, ClusterConditions.ScalingDown),
    remediatingCondition(scope),
    deletingCondition(scope),
    pausedCondition(cluster, cluster),
  ])
  set([availableCondition(cluster, facts)])
  status.phase = phaseOf(cluster)
  reportLegacyStatus(scope, now)
  return nextRequeue(scope, now)
}

/**
 * Fields of the status on which controllers and users act, or whose value is recorded only in the status. Changes of other fields may be
 * written later.
 */
export function significantFields(cluster: Cluster): unknown {
  const { conditions: _c, deprecated: _d, controlPlane: _p, workers: _w, ...facts } = cluster.status ?? {}
  return {
    ...facts,
    true: ['Available', 'InfrastructureReady', 'ControlPlaneInitialized', 'Paused'].map((type) => isTrue(cluster, type)),
  }
}

/** Returns the phase by the first rule that applies. If no rule applies, the earlier phase stays; a Cluster without phase is Pending. */
export function phaseOf({ metadata, spec, status }: Cluster): NonNullable<NonNullable<Cluster['status']>['phase']> {
  if (isDeleting({ metadata })) return 'Deleting'
  if (status?.initialization?.infrastructureProvisioned && isValidEndpoint(spec.controlPlaneEndpoint)) return 'Provisioned'
  if (spec.infrastructureRef || spec.controlPlaneRef) return 'Provisioning'
  return status?.phase ?? 'Pending'
}

function deletingCondition({ cluster, deletion }: ClusterScope): NewCondition {
  const { Deleting } = ClusterConditions
  return isDeleting(cluster) ? Deleting.true(deletion.reason, deletion.message) : Deleting.false('NotDeleting')
}

/** Returns a requeue for the time when a new Machine without UpToDate condition starts to count as Unknown: no event is sent then. */
function nextRequeue({ descendants }: ClusterScope, now: number): Outcome {
  const delays = [...(descendants?.controlPlaneMachines ?? []), ...(descendants?.workerMachines ?? [])]
    .filter((machine) => awaitsUpToDate(machine, now))
    .map((machine) => untilUpToDate(machine, now))
  return delays.length === 0 ? proceed() : requeue(smallest(delays), 'new Machines to report UpToDate')
}
