/**
 * Adapts a rolling update to in-place updates: Machines move from old sets to the current one instead of being deleted and recreated. A
 * Machine counts as unavailable during its update, which may fail. While Machines can be moved, a surge Machine is created only when the
 * rollout is stuck otherwise, and only one at a time. Without I/O. Upstream: reconcileReplicasPendingAcknowledgeMove and
 * reconcileInPlaceUpdateIntent in machinedeployment_rollout_rollingupdate.go, v1.14.
 */
import {
  AcknowledgedMoveAnnotation,
  type Machine,
  MachineSet,
  MachineSetMoveMachinesToMachineSetAnnotation,
  MachineSetReceiveMachinesFromMachineSetsAnnotation,
} from '@capstan/api'
import { isControlledBy } from '@capstan/kube'
import { isPendingAcknowledge, namesIn } from '../machineset/plan-moves.ts'
import type { Rollout, Scale, ScalePlan, SetCounts } from './rollout-plan.ts'

/** Names of Machines that moved to the current set from other sets. */
export interface Arrivals {
  /** Machines that still have the annotation `pending-acknowledge-move`, sorted. Written to the annotation `acknowledged-move` of the set. */
  readonly all: readonly string[]
  /** Machines that `spec.replicas` of the set does not include yet. */
  readonly uncounted: readonly string[]
}

/**
 * Returns the Machines that have arrived. The annotation `acknowledged-move` of the set (names of Machines) and the annotation
 * `pending-acknowledge-move` of each Machine together ensure that a Machine is counted once, even when the process stops between two writes.
 */
export function arrivals(current: MachineSet | undefined, machines: readonly Machine[]): Arrivals {
  if (!current) return { all: [], uncounted: [] }
  const all = machines
    .filter((machine) => isPendingAcknowledge(machine) && isControlledBy(machine, current, MachineSet))
    .map(({ metadata }) => metadata.name)
    .sort()
  const acknowledged = namesIn(current, AcknowledgedMoveAnnotation)
  return { all, uncounted: all.filter((name) => !acknowledged.has(name)) }
}

/** Returns the rollout as if `spec.replicas` of the current set included the Machines that have arrived. */
export function withArrivals(rollout: Rollout): Rollout {
  const { current, inPlace } = rollout
  if (!inPlace || inPlace.arrived.length === 0) return rollout
  return { ...rollout, current: { ...current, desired: current.desired + inPlace.arrived.length } }
}

/**
 * Returns the old sets whose Machines may move to the current one: all old sets with Machines, or none when the current set has all replicas.
 * `nextStep` calls CanUpdateMachineSet for the eligible sets among them.
 */
export function moveCandidates(rollout: Rollout): readonly SetCounts[] {
  const { replicas, current, old } = withArrivals(rollout)
  return current.desired >= replicas ? [] : old.filter(({ existing }) => existing > 0)
}

/**
 * Changes the plan so that no surge Machine is created while Machines can be moved instead. If the rollout is stuck without a surge Machine,
 * one is created. Machines that are missing even without surge are created as usual.
 */
export function preferMoves(rollout: Rollout, plan: ScalePlan): void {
  const { maxSurge, current, inPlace } = rollout
  if (!inPlace || inPlace.movable.size === 0) return
  const increase = plan.target(current) - current.desired
  if (increase <= 0) return
  const withoutSurge = Math.max(increase - maxSurge, 0)
  const surge = increase - withoutSurge
  if (surge <= 0) return
  if (withoutSurge === 0 && !isProgressing(rollout, plan)) {
    plan.scale(current, current.desired + 1, 'surge 1 allowed to create availability for in-place updates')
  } else {
    plan.scale(current, current.desired + withoutSurge, `surge ${surge} dropped to prioritize in-place updates`)
  }
}

/**
 * Whether the rollout proceeds without another Machine: the current set is being scaled, an old set is being or is going to be scaled down,
 * Machines of the current set are not available or up to date yet, or a Machine is being updated in place.
 */
function isProgressing({ current, old, inPlace }: Rollout, plan: ScalePlan): boolean {
  const { desired, existing, upToDate, available } = current
  if (desired !== existing || desired !== upToDate || desired !== available) return true
  if (inPlace?.isUpdating) return true
  return old.some((set) => set.desired < set.existing || plan.target(set) < set.desired)
}

/**
 * Returns the planned scalings relative to the sets as read. The plan is relative to the rollout with arrivals, so the scaling of the current
 * set additionally counts the Machines that have arrived.
 */
export function acknowledgeArrivals(rolloutAsRead: Rollout, rolloutWithArrivals: Rollout, plan: ScalePlan): readonly Scale[] {
  const arrived = rolloutAsRead.inPlace?.arrived ?? []
  if (arrived.length === 0) return plan.scales
  const { name, desired } = rolloutAsRead.current
  const target = plan.target(rolloutWithArrivals.current)
  const otherScales = plan.scales.filter(({ set }) => set !== name)
  if (target === desired) return otherScales
  const reason = `acknowledge Machines ${arrived.join(',')} moved from an old MachineSet`
  return [
    { set: name, from: desired, to: target, reasons: [reason, ...plan.reasons(rolloutWithArrivals.current)] },
    ...otherScales,
  ]
}

/** Annotations about moves, written to a set together with its replicas. */
export type MoveAnnotations = { readonly [annotation: string]: string }

/** Returns the annotations of an old set whose Machines move to the set with the name `current`. */
export const moveAnnotations = (current: string): MoveAnnotations => ({ [MachineSetMoveMachinesToMachineSetAnnotation]: current })

/** Returns the annotations of the current set: the names of the sets that send Machines, and of all Machines that have arrived. */
export function receiveAnnotations(movable: ReadonlySet<string>, { all }: Arrivals): MoveAnnotations {
  return {
    ...(movable.size === 0 ? {} : { [MachineSetReceiveMachinesFromMachineSetsAnnotation]: [...movable].sort().join(',') }),
    ...(all.length === 0 ? {} : { [AcknowledgedMoveAnnotation]: all.join(',') }),
  }
}
