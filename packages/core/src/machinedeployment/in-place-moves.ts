/**
 * How updates in place change a rolling update: Machines go from old sets to the current one, where they would have been deleted
 * there and made anew here. An update in place may fail like any other, so that it counts as unavailability; what the surge is for
 * is then one Machine at most, to begin with. Pure.
 * Upstream: reconcileReplicasPendingAcknowledgeMove and reconcileInPlaceUpdateIntent in machinedeployment_rollout_rollingupdate.go, v1.14.
 */
import {
  AcknowledgedMoveAnnotation,
  type Machine,
  MachineSet,
  MachineSetMoveMachinesToMachineSetAnnotation,
  MachineSetReceiveMachinesFromMachineSetsAnnotation,
} from '@capstan/api'
import { isControlledBy } from '@capstan/kube'
import { isPendingAcknowledge, namesIn } from '../machineset/motion.ts'
import type { Rollout, Scale, ScalePlan, SetCounts } from './rollout.ts'

/** Machines that came to the current set from others. */
export interface Arrivals {
  /** All that still bear the mark, in alphabetical order: what the set is told. */
  readonly all: readonly string[]
  /** Those that its `spec.replicas` does not count yet. */
  readonly unseen: readonly string[]
}

/** The list on the set and the mark on the Machine together make each Machine count once, whatever is written in between. */
export function arrivals(current: MachineSet | undefined, machines: readonly Machine[]): Arrivals {
  if (!current) return { all: [], unseen: [] }
  const all = machines
    .filter((machine) => isPendingAcknowledge(machine) && isControlledBy(machine, current, MachineSet))
    .map(({ metadata }) => metadata.name)
    .sort()
  const known = namesIn(current, AcknowledgedMoveAnnotation)
  return { all, unseen: all.filter((name) => !known.has(name)) }
}

/** The rollout with the current set as large as it is with what has arrived. */
export function withArrived(rollout: Rollout): Rollout {
  const { current, inPlace } = rollout
  if (!inPlace || inPlace.arrived.length === 0) return rollout
  return { ...rollout, current: { ...current, desired: current.desired + inPlace.arrived.length } }
}

/** Old sets that are worth asking about: those with Machines, while the current set lacks any. */
export function moveCandidates(rollout: Rollout): readonly SetCounts[] {
  const { replicas, current, old } = withArrived(rollout)
  return current.desired >= replicas ? [] : old.filter(({ existing }) => existing > 0)
}

/**
 * Makes no Machine for the sake of the surge while others can be had by moving; but one, when nothing else brings the rollout on.
 * Machines that are wanted anyway are made as ever.
 */
export function preferMoves(rollout: Rollout, plan: ScalePlan): void {
  const { maxSurge, current, inPlace } = rollout
  if (!inPlace || inPlace.movable.size === 0) return
  const more = plan.target(current) - current.desired
  if (more <= 0) return
  const withoutSurge = Math.max(more - maxSurge, 0)
  const surge = more - withoutSurge
  if (surge <= 0) return
  if (withoutSurge === 0 && !isInMotion(rollout, plan)) {
    plan.scale(current, current.desired + 1, 'surge 1 allowed to create availability for in-place updates')
  } else {
    plan.scale(current, current.desired + withoutSurge, `surge ${surge} dropped to prioritize in-place updates`)
  }
}

/** Something is being scaled, or is not yet as it will be: the rollout goes on without another Machine. */
function isInMotion({ current, old, inPlace }: Rollout, plan: ScalePlan): boolean {
  const { desired, existing, upToDate, available } = current
  if (desired !== existing || desired !== upToDate || desired !== available) return true
  if (inPlace?.isUpdating) return true
  return old.some((set) => set.desired < set.existing || plan.target(set) < set.desired)
}

/** The plan for the sets as they are found: the current one grows by what has arrived, and by what was decided on top of it. */
export function acknowledged(found: Rollout, raised: Rollout, plan: ScalePlan): readonly Scale[] {
  const arrived = found.inPlace?.arrived ?? []
  if (arrived.length === 0) return plan.scales
  const { name, desired } = found.current
  const to = plan.target(raised.current)
  const others = plan.scales.filter(({ set }) => set !== name)
  if (to === desired) return others
  const reason = `acknowledge Machines ${arrived.join(',')} moved from an old MachineSet`
  return [{ set: name, from: desired, to, reasons: [reason, ...plan.reasons(raised.current)] }, ...others]
}

/** What a set is told of moves, beside how many Machines it should have. */
export type MoveAnnotations = { readonly [annotation: string]: string }

export const movesTo = (current: string): MoveAnnotations => ({ [MachineSetMoveMachinesToMachineSetAnnotation]: current })

export function receives(movable: ReadonlySet<string>, { all }: Arrivals): MoveAnnotations {
  return {
    ...(movable.size === 0 ? {} : { [MachineSetReceiveMachinesFromMachineSetsAnnotation]: [...movable].sort().join(',') }),
    ...(all.length === 0 ? {} : { [AcknowledgedMoveAnnotation]: all.join(',') }),
  }
}
