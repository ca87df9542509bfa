/**
 * Plans moves of Machines from one MachineSet to another, to be updated in place there. The MachineDeployment annotates the old set with
 * the set to which its Machines move, and the new set with the sets from which it receives Machines. A moved Machine has two annotations:
 * one until the MachineDeployment has counted the Machine, one until the Machine is updated. Pure. Upstream: machineset_controller.go,
 * v1.14.
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

/** Whether a Machine has moved to its set, and `spec.replicas` of the set may not include it yet. */
export const isPendingAcknowledge = ({ metadata }: Machine): boolean =>
  metadata.annotations?.[PendingAcknowledgeMoveAnnotation] !== undefined

/** Returns the comma-separated names in an annotation of a set. */
export const namesIn = ({ metadata }: MachineSet, annotation: string): ReadonlySet<string> =>
  new Set((metadata.annotations?.[annotation] ?? '').split(',').filter((name) => name !== ''))

/** Returns the names of the sets from which this set receives Machines. */
export const sourcesOf = (machineSet: MachineSet): ReadonlySet<string> =>
  namesIn(machineSet, MachineSetReceiveMachinesFromMachineSetsAnnotation)

/**
 * Returns how many Machines the set has beyond `replicas`. In a set that receives Machines from other sets, Machines for which
 * `isPendingAcknowledge` is true are left out.
 */
export function surplus(machineSet: MachineSet, machines: readonly Machine[], replicas: number): number {
  const pending = sourcesOf(machineSet).size === 0 ? 0 : machines.filter(isPendingAcknowledge).length
  return Math.max(machines.length - pending - replicas, 0)
}

/**
 * Whether the deployment has counted the Machine, so that its update may begin. True for all Machines of a set that receives none from
 * other sets.
 */
export const isAcknowledged = (machineSet: MachineSet, machine: Machine): boolean =>
  !isPendingAcknowledge(machine) ||
  sourcesOf(machineSet).size === 0 ||
  namesIn(machineSet, AcknowledgedMoveAnnotation).has(machine.metadata.name)

export interface SelectedMoves {
  readonly move: readonly Machine[]
  /** Machines to remediate: they are deleted instead of moved, and the set to which Machines move creates new ones. */
  readonly remove: readonly Machine[]
}

/**
 * Selects Machines to move, in deletion order. Machines being deleted and Machines to remediate count towards `count`. Machines in an update
 * or without a Node are not moved now, so fewer may be returned.
 */
export function selectMoves(
  machines: readonly Machine[],
  count: number,
  order: NonNullable<MachineSet['spec']['deletion']>['order'],
  now: number,
): SelectedMoves {
  const move: Machine[] = []
  const remove: Machine[] = []
  let remaining = count
  for (const machine of machinesToDelete(machines, machines.length, order, now)) {
    if (remaining <= 0) break
    if (isDeleting(machine)) remaining--
    else if (isToBeRemediated(machine)) {
      remove.push(machine)
      remaining--
    } else if (!isUpdateInProgress(machine) && machine.status?.nodeRef) {
      move.push(machine)
      remaining--
    }
  }
  return { move, remove }
}

/** Whether a MachineHealthCheck has requested that the owner remediates this Machine. */
export const isToBeRemediated = (machine: Machine): boolean =>
  isFalse(machine, 'HealthCheckSucceeded') && isFalse(machine, 'OwnerRemediated')
