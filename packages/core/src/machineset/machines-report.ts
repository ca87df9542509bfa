/**
 * Aggregates Machines for the status of MachineSets and MachineDeployments, and for the Remediating condition of Clusters. The argument
 * `machines` is `undefined` if the Machines could not be listed. Pure. Upstream: machineset_controller_status.go, v1.14.
 */
import { isUpdateInProgress, type Machine, type MachineDeployment, type MachineSet, MachineSetConditions } from '@capstan/api'
import {
  aggregate,
  getCondition,
  isDeleting,
  isFalse,
  isTrue,
  minutes,
  type NewCondition,
  seconds,
  timeLeft,
  shortList,
  smallest,
} from '@capstan/kube'
import type { Observed } from '../external/observed.ts'
import { drainDelayText } from '../machine/drain-delays.ts'
import { isTemplate } from './templates.ts'
import { SeeLogs } from '../see-logs.ts'

/** Deletions longer than this are reported, with likely causes if they are known. */
const LongDeletion = minutes(15)
/**
 * Time in which the condition MachinesUpToDate ignores a new Machine without the condition UpToDate: another controller sets UpToDate, and
 * does so only after the creation.
 */
const UpToDateGrace = seconds(10)

export interface MachineCounts {
  readonly replicas: number
  readonly readyReplicas: number
  readonly availableReplicas: number
  readonly upToDateReplicas: number
}

/** Counts Machines by their conditions. Machines in an in-place update are counted in `replicas` only. */
export function machineCounts(machines: readonly Machine[]): MachineCounts {
  const notUpdating = machines.filter((machine) => !isUpdateInProgress(machine))
  const count = (type: string) => notUpdating.filter((machine) => isTrue(machine, type)).length
  return {
    replicas: machines.length,
    readyReplicas: count('Ready'),
    availableReplicas: count('Available'),
    upToDateReplicas: count('UpToDate'),
  }
}

export function machinesReadyCondition(machines: readonly Machine[] | undefined): NewCondition {
  const { MachinesReady } = MachineSetConditions
  if (!machines) return MachinesReady.unknown('InternalError', SeeLogs)
  if (machines.length === 0) return MachinesReady.true('NoReplicas')
  return aggregate(machines, 'Ready', {
    as: MachinesReady,
    reasons: { issue: 'NotReady', unknown: 'ReadyUnknown', info: 'Ready' },
  })
}

export function machinesUpToDateCondition(machines: readonly Machine[] | undefined, now: number): NewCondition {
  const { MachinesUpToDate } = MachineSetConditions
  if (!machines) return MachinesUpToDate.unknown('InternalError', SeeLogs)
  const reporting = machines.filter((machine) => getCondition(machine, 'UpToDate') || untilUpToDate(machine, now) <= 0)
  if (reporting.length === 0) return MachinesUpToDate.true('NoReplicas')
  return aggregate(reporting, 'UpToDate', {
    as: MachinesUpToDate,
    reasons: { issue: 'NotUpToDate', unknown: 'UpToDateUnknown', info: 'UpToDate' },
  })
}

/**
 * Returns the Remediating condition of a MachineSet, MachineDeployment or Cluster. `by` names the kinds that remediate, for the message
 * about Machines that are not remediated; absent for Clusters.
 */
export function remediatingCondition(
  machines: readonly Machine[] | undefined,
  by?: 'MachineSet' | 'MachineDeployment/MachineSet',
): NewCondition {
  const { Remediating } = MachineSetConditions
  if (!machines) return Remediating.unknown('InternalError', SeeLogs)
  const unhealthy = machines.filter((machine) => isFalse(machine, 'HealthCheckSucceeded'))
  const inRemediation = unhealthy.filter((machine) => isFalse(machine, 'OwnerRemediated'))
  if (inRemediation.length > 0) {
    const { message } = aggregate(inRemediation, 'OwnerRemediated')
    return Remediating.true('Remediating', message)
  }
  if (unhealthy.length === 0) return Remediating.false('NotRemediating')
  const names = nameList(unhealthy)
  return Remediating.false('NotRemediating', `${names} not healthy (not to be remediated${by === undefined ? '' : ` by ${by}`})`)
}

export interface Scaling {
  /** Existing replicas, including those being deleted. */
  readonly current: number
  /** Desired replicas; 0 while the owner is being deleted, `undefined` when spec.replicas is not set. */
  readonly desired: number | undefined
}

/** Returns the ScalingDown condition: True while `current` is greater than `desired`, Unknown if `machines` or `desired` is `undefined`. */
export function scalingDownCondition(
  { current, desired }: Scaling,
  machines: readonly Machine[] | undefined,
  now: number,
): NewCondition {
  const { ScalingDown } = MachineSetConditions
  if (!machines) return ScalingDown.unknown('InternalError', SeeLogs)
  if (desired === undefined) return ScalingDown.unknown('WaitingForReplicasSet', 'Waiting for spec.replicas set')
  if (current <= desired) return ScalingDown.false('NotScalingDown')
  return ScalingDown.true(
    'ScalingDown',
    withBullet(`Scaling down from ${current} to ${desired} replicas`, longDeletion(machines, now)),
  )
}

/** Returns the kinds of templates that do not exist; none while the owner is being deleted, because it then needs no template. */
export function missingKinds(
  owner: MachineSet | MachineDeployment,
  { bootstrapTemplate, infrastructureTemplate }: { bootstrapTemplate: Observed; infrastructureTemplate: Observed },
): string[] {
  if (isDeleting(owner)) return []
  const { bootstrap, infrastructureRef } = owner.spec.template.spec
  return [
    ...(bootstrapTemplate.state === 'missing' && bootstrap.configRef ? [bootstrap.configRef] : []),
    ...(infrastructureTemplate.state === 'missing' ? [infrastructureRef] : []),
  ].flatMap((ref) => (isTemplate(ref) ? [ref.kind] : []))
}

/** Returns `ATemplate does not exist` or `ATemplate and BTemplate do not exist`; empty without kinds. */
export function missingTemplates(kinds: readonly string[]): string {
  if (kinds.length === 0) return ''
  return `${kinds.join(' and ')} ${kinds.length === 1 ? 'does' : 'do'} not exist`
}

/** Returns a text with the Machines whose deletion takes long, and with known likely causes; empty when there are no such Machines. */
export function longDeletion(machines: readonly Machine[], now: number): string {
  const longDeleting = machines.filter(({ metadata }) => now - deletedAt(metadata) > LongDeletion)
  if (longDeleting.length === 0) return ''
  return `${nameList(longDeleting)} in deletion since more than 15m${drainDelayText(longDeleting, now)}`
}

/** Returns the next time after `now` at which a deletion becomes long, or the grace period for UpToDate ends; `undefined` if there is none. */
export function nextReport(machines: readonly Machine[], now: number): number | undefined {
  const moments = machines.flatMap((machine) => [
    // `Math.min` limits the delay when the clock was set back.
    ...(isDeleting(machine) ? [Math.min(deletedAt(machine.metadata), now) + LongDeletion + 1000] : []),
    ...(getCondition(machine, 'UpToDate') ? [] : [now + untilUpToDate(machine, now)]),
  ])
  const futureMoments = moments.filter((moment) => moment > now)
  return futureMoments.length === 0 ? undefined : smallest(futureMoments)
}

export const withBullet = (text: string, line: string): string => (line === '' ? text : `${text}\n* ${line}`)
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`

const untilUpToDate = ({ metadata }: Machine, now: number): number =>
  timeLeft({ since: Date.parse(metadata.creationTimestamp), length: UpToDateGrace, now })
const deletedAt = ({ deletionTimestamp }: Machine['metadata']): number => Date.parse(deletionTimestamp ?? '')

/** Formats `Machine a is`, `Machines a, b are`, with at most three names. */
function nameList(machines: readonly Machine[]): string {
  const names = machines.map(({ metadata }) => metadata.name).sort()
  return `Machine${names.length === 1 ? '' : 's'} ${shortList(names, 3)} ${names.length === 1 ? 'is' : 'are'}`
}
