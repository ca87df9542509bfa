/** Computes the status of a MachineDeployment. Pure, except for the draft that it changes. Upstream: machinedeployment_status.go, v1.14. */
import {
  ConditionOrder,
  type MachineDeployment,
  MachineDeploymentConditions,
  type MachineDeploymentStatus,
  type MachineSet,
  pausedCondition,
} from '@capstan/api'
import { type Outcome, proceed, requeue } from '@capstan/controller'
import { getCondition, isDeleting, isTrue, labelSelector, type NewCondition, setConditions } from '@capstan/kube'
import {
  counted,
  longDeletion,
  machinesReadyCondition,
  machinesUpToDateCondition,
  missingKinds,
  missingTemplates,
  nextReport,
  remediatingCondition,
  scalingDownCondition,
  withBullet,
} from '../machineset/machines-report.ts'
import { SeeLogs } from '../see-logs.ts'
import { mergeVersions } from '../versions-in-use.ts'
import { countFields, machineDeploymentCounts, reportedCounts } from './counts.ts'
import { leastAvailable } from './fenceposts.ts'
import { reportLegacyStatus } from './legacy-status.ts'
import type { MachineDeploymentScope } from './scope.ts'

/** Types of the conditions that the MachineDeployment controller owns: its values win over changes by other writers. */
export const OwnedConditions = [
  'Available',
  'RollingOut',
  'ScalingUp',
  'ScalingDown',
  'MachinesReady',
  'MachinesUpToDate',
  'Remediating',
  'Deleting',
  'Paused',
] as const satisfies readonly (keyof typeof MachineDeploymentConditions)[]

/**
 * Sets counts, versions, selector, phase and conditions (also in the v1beta1 form) in `scope.machineDeployment.status`. Returns a requeue
 * if the status will change later without a watch event.
 */
export function reportStatus(scope: MachineDeploymentScope, now: number): Outcome {
  const { machineDeployment, machineSets, machines } = scope
  const status = (machineDeployment.status ??= {})
  if (machineSets) {
    for (const field of countFields) delete status[field]
    Object.assign(status, reportedCounts(machineSets))
    const versions = mergeVersions(machineSets.flatMap((set) => set.status?.versions ?? []))
    if (versions) status.versions = versions
    else delete status.versions
  }
  const selector = labelSelector(machineDeployment.spec.selector).text
  if (selector !== '') status.selector = selector
  status.phase = phaseOf(scope)
  const conditions = [
    availableCondition(machineDeployment, machineSets),
    rollingOutCondition(scope),
    scalingUpCondition(scope),
    scalingDownCondition(scalingOf(scope), machineSets && machines, now),
    machinesReadyCondition(machines),
    machinesUpToDateCondition(machines, now),
    remediatingCondition(machines, 'MachineDeployment/MachineSet'),
    deletingCondition(scope, now),
    pausedCondition(scope.cluster, machineDeployment),
  ]
  const { generation } = machineDeployment.metadata
  status.conditions = setConditions(status.conditions, conditions, { now, generation, order: ConditionOrder })
  reportLegacyStatus(scope, now)
  const next = machines && nextReport(machines, now)
  return next === undefined
    ? proceed()
    : requeue(next - now, 'to report Machines whose deletion takes long or whose UpToDate grace period has ended')
}

/** Sets only the condition Paused. */
export function reportOnlyPaused({ machineDeployment, cluster }: MachineDeploymentScope, now: number): Outcome {
  const status = (machineDeployment.status ??= {})
  const { generation } = machineDeployment.metadata
  const conditions = [pausedCondition(cluster, machineDeployment)]
  status.conditions = setConditions(status.conditions, conditions, { now, generation, order: ConditionOrder })
  return proceed()
}

/**
 * Returns the parts of the status whose changes are written at once: three fields, and whether each of three conditions is True. Changes of
 * other parts may be postponed.
 */
export function significantFields(deployment: MachineDeployment): unknown {
  const { replicas, observedGeneration, selector } = deployment.status ?? {}
  return {
    replicas,
    observedGeneration,
    selector,
    conditions: ['Available', 'RollingOut', 'Paused'].map((type) => isTrue(deployment, type)),
  }
}

const scalingOf = ({ machineDeployment, machineSets }: MachineDeploymentScope) => ({
  current: machineDeploymentCounts(machineSets ?? []).replicas,
  desired: isDeleting(machineDeployment) ? 0 : machineDeployment.spec.replicas,
})

function phaseOf(scope: MachineDeploymentScope): NonNullable<MachineDeploymentStatus['phase']> {
  if (!scope.machineSets) return 'Unknown'
  if (isDeleting(scope.machineDeployment)) return 'ScalingDown'
  const { current, desired } = scalingOf(scope)
  if (desired === undefined) return 'Unknown'
  return desired < current ? 'ScalingDown' : desired > current ? 'ScalingUp' : 'Running'
}

export function availableCondition(deployment: MachineDeployment, sets: readonly MachineSet[] | undefined): NewCondition {
  const { Available } = MachineDeploymentConditions
  const { spec } = deployment
  if (!sets) return Available.unknown('InternalError', SeeLogs)
  if (spec.replicas === undefined) return Available.unknown('WaitingForReplicasSet', 'Waiting for spec.replicas set')
  const { availableReplicas } = reportedCounts(sets)
  if (availableReplicas === undefined)
    return Available.unknown('WaitingForAvailableReplicasSet', 'Waiting for status.availableReplicas set')
  const least = leastAvailable(deployment)
  if (least === undefined) return Available.unknown('InternalError', SeeLogs)
  if (availableReplicas >= least) return Available.true('Available')
  if (isDeleting(deployment)) return Available.false('NotAvailable', 'Deletion in progress')
  const strategy = spec.rollout?.strategy
  const suffix =
    strategy?.type === 'RollingUpdate'
      ? ` (spec.strategy.rollout.maxUnavailable is ${strategy.rollingUpdate?.maxUnavailable ?? 0}, spec.replicas is ${spec.replicas})`
      : ''
  return Available.false('NotAvailable', `${availableReplicas} available replicas, at least ${least} required${suffix}`)
}

export function rollingOutCondition({ machines }: MachineDeploymentScope): NewCondition {
  const { RollingOut } = MachineDeploymentConditions
  if (!machines) return RollingOut.unknown('InternalError', SeeLogs)
  const outdated = machines.flatMap((machine) => {
    const condition = getCondition(machine, 'UpToDate')
    return condition?.status === 'False' ? [condition] : []
  })
  if (outdated.length === 0) return RollingOut.false('NotRollingOut')
  const reasons = [...new Set(outdated.flatMap(({ message = '' }) => (message === '' ? [] : message.split('\n'))))]
  const rank = (reason: string) => (reason.startsWith('* Version') ? 0 : 1)
  reasons.sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
  return RollingOut.true('RollingOut', [`Rolling out ${outdated.length} not up-to-date replicas`, ...reasons].join('\n'))
}

export function scalingUpCondition(scope: MachineDeploymentScope): NewCondition {
  const { ScalingUp } = MachineDeploymentConditions
  if (!scope.machineSets) return ScalingUp.unknown('InternalError', SeeLogs)
  const { current, desired } = scalingOf(scope)
  if (desired === undefined) return ScalingUp.unknown('WaitingForReplicasSet', 'Waiting for spec.replicas set')
  const missing = missingTemplates(missingKinds(scope.machineDeployment, scope))
  if (current >= desired) return ScalingUp.false('NotScalingUp', missing && `Scaling up would be blocked because ${missing}`)
  const suffix = missing && ` is blocked because ${missing}`
  return ScalingUp.true('ScalingUp', `Scaling up from ${current} to ${desired} replicas${suffix}`)
}

export function deletingCondition(
  { machineDeployment, machineSets, machines }: MachineDeploymentScope,
  now: number,
): NewCondition {
  const { Deleting } = MachineDeploymentConditions
  if (!machineSets || !machines) return Deleting.unknown('InternalError', SeeLogs)
  if (!isDeleting(machineDeployment)) return Deleting.false('NotDeleting')
  if (machines.length > 0) {
    return Deleting.true('Deleting', withBullet(`Deleting ${counted(machines.length, 'Machine')}`, longDeletion(machines, now)))
  }
  if (machineSets.length > 0) return Deleting.true('Deleting', `Deleting ${machineSets.length} MachineSets`)
  return Deleting.true('Deleting', 'Deletion completed')
}
