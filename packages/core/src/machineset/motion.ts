/**
 * Machines on their way from one MachineSet to another, to be updated in place there. The marks: the old set is told where its
 * Machines move, the new one from where it receives them (both by the MachineDeployment); a Machine that has moved bears two marks
 * of its own, until its deployment has counted it, and until it is updated. Pure. Upstream: machineset_controller.go, v1.14.
 */
import {
  AcknowledgedMoveAnnotation,
  isUpdateInProgress,
  type Machine,
  type MachineSet,
  MachineSetReceiveMachinesFromMachineSetsAnnotation,
  PendingAcknowledgeMoveAnnotation,
} from '@capstan/api'
import { isDeleting, isFalse } from '@capstan/kube'
import { machinesToDelete } from './deletion-priority.ts'

/** A Machine that has moved, and that the `spec.replicas` of its set may not count yet. */
export const isPendingAcknowledge = ({ metadata }: Machine): boolean =>
  metadata.annotations?.[PendingAcknowledgeMoveAnnotation] !== undefined

/** The names that an annotation of a set lists. */
export const namesIn = ({ metadata }: MachineSet, annotation: string): ReadonlySet<string> =>
  new Set((metadata.annotations?.[annotation] ?? '').split(',').filter((name) => name !== ''))

/** Names of sets whose Machines the set expects. */
export const sourcesOf = (machineSet: MachineSet): ReadonlySet<string> =>
  namesIn(machineSet, MachineSetReceiveMachinesFromMachineSetsAnnotation)

/** How many Machines the set has beyond what it should have. Those that its deployment has not counted yet are no surplus. */
export function surplus(machineSet: MachineSet, machines: readonly Machine[], replicas: number): number {
  const pending = sourcesOf(machineSet).size === 0 ? 0 : machines.filter(isPendingAcknowledge).length
  return Math.max(machines.length - pending - replicas, 0)
}

/**
 * Whether the deployment knows of the Machine, so that its update may begin. A set that expects none any more, because the
 * deployment has changed its mind, treats it as any other.
 */
export const isAcknowledged = (machineSet: MachineSet, machine: Machine): boolean =>
  !isPendingAcknowledge(machine) ||
  sourcesOf(machineSet).size === 0 ||
  namesIn(machineSet, AcknowledgedMoveAnnotation).has(machine.metadata.name)

export interface Departures {
  readonly move: readonly Machine[]
  /** To be repaired anyway: they are replaced in the other set. */
  readonly remove: readonly Machine[]
}

/**
 * Which Machines leave the set, in the order in which they would be deleted. Those going already are among the `count`; those that
 * are still being updated, or have no Node yet, stay for now: the count may not be reached.
 */
export function departures(
  machines: readonly Machine[],
  count: number,
  order: NonNullable<MachineSet['spec']['deletion']>['order'],
  now: number,
): Departures {
  const move: Machine[] = []
  const remove: Machine[] = []
  let left = count
  for (const machine of machinesToDelete(machines, machines.length, order, now)) {
    if (left <= 0) break
    if (isDeleting(machine)) left--
    else if (isToBeRemediated(machine)) {
      remove.push(machine)
      left--
    } else if (!isUpdateInProgress(machine) && machine.status?.nodeRef) {
      move.push(machine)
      left--
    }
  }
  return { move, remove }
}

const isToBeRemediated = (machine: Machine): boolean =>
  isFalse(machine, 'HealthCheckSucceeded') && isFalse(machine, 'OwnerRemediated')
