/**
 * Scales MachineSets while the rollout is paused: no set is created or deleted. With the strategy RollingUpdate, a change of replicas is
 * spread over the active sets (those with replicas), if there are several, in proportion to their size, and the largest set gets the
 * remainder. The annotation `max-replicas` is the previous total in this calculation. As upstream, the caller has already set the annotation
 * to the new total: unless `replicas` is 0, each share is therefore zero, and the largest set gets the whole change, but shrinks at most to
 * zero. Upstream: machinedeployment_sync.go, which follows the Deployment controller of Kubernetes.
 */
import type { Rollout, Scale, SetCounts } from './rollout-plan.ts'
import { ScalePlan, sum } from './rollout-plan.ts'

/**
 * A set with the values of its annotations about the replicas of its MachineDeployment. The caller has updated these
 * annotations. A value is `undefined` when the set lacks the annotation, or its text does not begin with a number.
 */
export interface ScaledSet extends SetCounts {
  /** Annotation `desired-replicas`. */
  readonly recordedDesired: number | undefined
  /** Annotation `max-replicas`. */
  readonly recordedMax: number | undefined
}

export interface PausedRollout extends Pick<Rollout, 'replicas' | 'maxSurge'> {
  readonly isRollingUpdate: boolean
  /** `status.replicas` of the MachineDeployment. */
  readonly existing: number
  /** Absent when no set has the MachineDeployment's template. */
  readonly current: ScaledSet | undefined
  /** The oldest first. */
  readonly old: readonly ScaledSet[]
}

export function planProportionalScale(rollout: PausedRollout): readonly Scale[] {
  const { replicas, current, old } = rollout
  const plan = new ScalePlan()
  const sets = current ? [...old, current] : old
  const active = sets.filter((set) => set.desired > 0)
  const onlySet = active.length === 0 ? (current ?? old.at(-1)) : active.length === 1 ? active[0] : undefined
  if (onlySet) {
    if (onlySet.desired !== replicas) plan.scale(onlySet, replicas, 'no other MachineSet is active')
  } else if (current && isSaturated(current, replicas)) {
    for (const set of old) if (set.desired > 0) plan.scale(set, 0, 'the current MachineSet has all replicas')
  } else if (rollout.isRollingUpdate) spreadChange(rollout, active, plan)
  return plan.scales
}

/** Whether the set was scaled to all wanted replicas, and all of them are available. */
const isSaturated = ({ desired, recordedDesired, available }: ScaledSet, replicas: number): boolean =>
  desired === replicas && recordedDesired === replicas && available === replicas

function spreadChange({ replicas, maxSurge, existing }: PausedRollout, active: readonly ScaledSet[], plan: ScalePlan): void {
  const allowed = replicas > 0 ? replicas + maxSurge : 0
  const change = allowed - sum(active, (set) => set.desired)
  if (change === 0) return
  // The largest set first; among equal ones the newest grows first, the oldest shrinks first.
  const byAge = change > 0 ? active.toReversed() : active
  const ordered = byAge.toSorted((a, b) => b.desired - a.desired)

  const targets = new Map<ScaledSet, number>()
  let spent = 0
  for (const set of ordered) {
    const share = replicas === 0 ? -set.desired : proportion(set, replicas + maxSurge, set.recordedMax ?? existing)
    const step = change > 0 ? Math.min(share, change - spent) : Math.max(share, change - spent)
    const scaledBy = spent === change ? 0 : step
    targets.set(set, set.desired + scaledBy)
    spent += scaledBy
  }
  const [largest] = ordered
  if (largest) targets.set(largest, Math.max(targets.get(largest)! + change - spent, 0))
  for (const [set, target] of targets) {
    if (target !== set.desired) plan.scale(set, target, `its share of ${allowed} replicas while the rollout is paused`)
  }
}

/** Returns the change of a set's replicas when all sets together change from `previousTotal` to `newTotal` Machines. */
const proportion = ({ desired }: ScaledSet, newTotal: number, previousTotal: number): number =>
  previousTotal > 0 ? Math.round((desired * newTotal) / previousTotal) - desired : 0
