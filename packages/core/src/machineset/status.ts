/** Computes the status of a MachineSet. Pure, except for the draft that it changes. Upstream: machineset_controller_status.go, v1.14. */
import { ConditionOrder, type MachineSet, MachineSetConditions, pausedCondition } from '@capstan/api'
import { type Outcome, proceed, requeue } from '@capstan/controller'
import { isDeleting, isTrue, labelSelector, type NewCondition, setConditions, smallest } from '@capstan/kube'
import { SeeLogs } from '../see-logs.ts'
import { nextLegacyReport, reportLegacyStatus } from './legacy-status.ts'
import {
  counted,
  longDeletion,
  machineCounts,
  machinesReadyCondition,
  machinesUpToDateCondition,
  missingKinds,
  missingTemplates,
  nextReport,
  remediatingCondition,
  scalingDownCondition,
  withBullet,
} from './machines-report.ts'
import { versionsOfMachines } from '../versions-in-use.ts'
import { isPendingAcknowledge } from './plan-moves.ts'
import type { MachineSetScope } from './scope.ts'

/** Conditions that this controller owns. */
export const OwnedConditions = [
  'ScalingUp',
  'ScalingDown',
  'MachinesReady',
  'MachinesUpToDate',
  'Remediating',
  'Deleting',
  'Paused',
] as const satisfies readonly (keyof typeof MachineSetConditions)[]

/**
 * Writes counts, versions, selector and conditions (also in the v1beta1 form) on the scope's draft. Returns a requeue if the status may
 * change later without a watch event.
 */
export function reportStatus(scope: MachineSetScope, now: number): Outcome {
  const { machineSet, machines } = scope
  const status = (machineSet.status ??= {})
  if (machines) {
    Object.assign(status, machineCounts(machines))
    const versions = versionsOfMachines(machines)
    if (versions) status.versions = versions
    else delete status.versions
  }
  const selector = labelSelector(machineSet.spec.selector).text
  if (selector !== '') status.selector = selector
  const conditions = [
    scalingUpCondition(scope),
    scalingDownCondition(scalingOfAcknowledged(scope), machines, now),
    machinesReadyCondition(machines),
    machinesUpToDateCondition(machines, now),
    remediatingCondition(machines, 'MachineSet'),
    deletingCondition(scope, now),
    pausedCondition(scope.cluster, machineSet),
  ]
  const { generation } = machineSet.metadata
  status.conditions = setConditions(status.conditions, conditions, { now, generation, order: ConditionOrder })

  reportLegacyStatus(scope, now)

  const moments = [machines && nextReport(machines, now), nextLegacyReport(scope, now)].filter((moment) => moment !== undefined)
  const next = moments.length === 0 ? undefined : smallest(moments)
  return next === undefined
    ? proceed()
    : requeue(next - now, 'to report long deletions, UpToDate grace periods that have ended, or Machines that become available')
}

/**
 * Returns the fields of the status whose changes are written at once, because controllers act on them. Of `upToDateReplicas`, controllers
 * act only on whether all Machines are up to date. Changes of other fields may be postponed.
 */
export function significantFields(machineSet: MachineSet): unknown {
  const { replicas, availableReplicas, upToDateReplicas, observedGeneration, selector } = machineSet.status ?? {}
  return {
    replicas,
    availableReplicas,
    observedGeneration,
    selector,
    isUpToDate: upToDateReplicas === replicas,
    isPaused: isTrue(machineSet, 'Paused'),
  }
}

const scalingOf = ({ machineSet, machines }: MachineSetScope) => ({
  current: machines?.length ?? 0,
  desired: isDeleting(machineSet) ? 0 : machineSet.spec.replicas,
})

/**
 * Like `scalingOf`, but without Machines that were moved here from another MachineSet and that the MachineDeployment has not counted yet:
 * they are no surplus.
 */
const scalingOfAcknowledged = (scope: MachineSetScope) => ({
  ...scalingOf(scope),
  current: (scope.machines ?? []).filter((machine) => !isPendingAcknowledge(machine)).length,
})

export function scalingUpCondition(scope: MachineSetScope): NewCondition {
  const { machines, preflightProblems } = scope
  const { ScalingUp } = MachineSetConditions
  if (!machines) return ScalingUp.unknown('InternalError', SeeLogs)
  const { current, desired } = scalingOf(scope)
  if (desired === undefined) return ScalingUp.unknown('WaitingForReplicasSet', 'Waiting for spec.replicas set')
  const missing = missingTemplates(missingKinds(scope.machineSet, scope))
  if (current >= desired) return ScalingUp.false('NotScalingUp', missing && `Scaling up would be blocked because ${missing}`)
  const obstacles = [...preflightProblems, ...(missing ? [missing] : [])]
  const suffix = obstacles.length === 0 ? '' : ` is blocked because:\n${obstacles.map((line) => `* ${line}`).join('\n')}`
  return ScalingUp.true('ScalingUp', `Scaling up from ${current} to ${desired} replicas${suffix}`)
}

export function deletingCondition({ machineSet, machines }: MachineSetScope, now: number): NewCondition {
  const { Deleting } = MachineSetConditions
  if (!machines) return Deleting.unknown('InternalError', SeeLogs)
  if (!isDeleting(machineSet)) return Deleting.false('NotDeleting')
  if (machines.length === 0) return Deleting.true('Deleting', 'Deletion completed')
  return Deleting.true('Deleting', withBullet(`Deleting ${counted(machines.length, 'Machine')}`, longDeletion(machines, now)))
}
