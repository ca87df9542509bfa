/**
 * Plans the next step of a rolling update. The plan does not rely on MachineSets to delete unavailable Machines first: a reduction of an old
 * set with available Machines counts as a reduction of available Machines. So reductions of old sets, except that of `breakDeadlock`, do not
 * reduce the available Machines below `replicas - maxUnavailable`. Upstream: machinedeployment_rollout_rollingupdate.go, v1.14.
 */
import { acknowledgeArrivals, preferMoves, withArrivals } from './in-place-moves.ts'
import type { Rollout, Scale, SetCounts } from './rollout-plan.ts'
import { machinesOf, ScalePlan, sum } from './rollout-plan.ts'

/**
 * Plans as if `spec.replicas` of the current set already included its arrivals: the Machines that in-place updates moved to it from old
 * sets. `acknowledgeArrivals` converts the plan back to the stored replicas. `preferMoves` avoids surge Machines while Machines can be moved
 * instead.
 */
export function planRollingUpdate(rolloutAsRead: Rollout): readonly Scale[] {
  const plan = new ScalePlan()
  const rollout = withArrivals(rolloutAsRead)
  scaleCurrent(rollout, plan)
  scaleOld(rollout, plan)
  preferMoves(rollout, plan)
  if (plan.isEmpty) breakDeadlock(rollout, plan)
  return acknowledgeArrivals(rolloutAsRead, rollout, plan)
}

/** Scales the current set to the wanted replicas: down at once, up within the surge limit. */
export function scaleCurrent({ replicas, maxSurge, current, old }: Rollout, plan: ScalePlan): void {
  if (current.desired > replicas) {
    plan.scale(current, replicas, 'scale down to align MachineSet spec.replicas to MachineDeployment spec.replicas')
    return
  }
  const machines = sum([current, ...old], machinesOf)
  const increase = Math.min(replicas + maxSurge - machines, replicas - current.desired)
  if (increase <= 0) return
  const surge = maxSurge > 0 ? ` + ${maxSurge} maxSurge` : ''
  plan.scale(
    current,
    current.desired + increase,
    `${machines} current Machines < ${replicas} MachineDeployment spec.replicas${surge}`,
  )
}

function scaleOld({ replicas, maxUnavailable, current, old }: Rollout, plan: ScalePlan): void {
  if (sum(old, desired) === 0) return
  const sets = [current, ...old]
  const minAvailable = Math.max(replicas - maxUnavailable, 0)
  // Machines being deleted, from earlier steps or by this plan, may have been available.
  const deleting = sum(sets, (set) => Math.max(set.existing - Math.min(set.desired, plan.target(set)), 0))
  // New Machines that do not become available slow the rollout down, and stop it before too many are unavailable.
  const unavailableNew = Math.max(current.desired - current.available, 0)
  const budget: Budget = {
    replicas: Math.max(sum(sets, desired) - deleting - minAvailable - unavailableNew, 0),
    available: sum(sets, (set) => set.available),
    minAvailable,
  }
  for (const set of old) reduce(set, Math.max(plan.target(set) - set.available, 0), budget, plan)
  for (const set of old) reduce(set, plan.target(set), budget, plan)
}

/** Limits of the reductions that this step may still plan. */
interface Budget {
  /** Replicas that may still be removed. */
  replicas: number
  /** Machines that remain available after the planned reductions. */
  available: number
  /** Machines that must remain available. */
  readonly minAvailable: number
}

/** Removes up to `maxReduction` replicas from an old set, without breaching the minimum of available Machines. */
function reduce(set: SetCounts, maxReduction: number, budget: Budget, plan: ScalePlan): void {
  const target = plan.target(set)
  let reduction = Math.min(maxReduction, budget.replicas)
  if (reduction <= 0) return

  let removed = 0
  if (set.available > 0) {
    const spare = Math.max(budget.available - budget.minAvailable, 0)
    removed = Math.max(set.existing - (target - reduction), 0)
    if (removed > spare) {
      const lowest = Math.min(set.existing - spare, target)
      reduction = target - lowest
      removed = Math.max(set.existing - lowest, 0)
    }
  }
  const availableRemoved = Math.min(set.available, removed)
  if (reduction > 0) {
    const reason =
      availableRemoved > 0
        ? `${budget.available} available replicas > ${budget.minAvailable} minimum available replicas`
        : 'scale down to align to existing Machines or scale down by removing unavailable replicas (and no available replicas exist on the MachineSet)'
    plan.scale(set, target - reduction, reason)
  }
  budget.available -= availableRemoved
  budget.replicas = Math.max(budget.replicas - reduction, 0)
}

/**
 * When the rollout is stuck because of unavailable Machines in old sets, removes one replica, in the expectation that an unavailable
 * Machine is deleted. If an available Machine is deleted instead, too few may remain available.
 */
function breakDeadlock({ current, old }: Rollout, plan: ScalePlan): void {
  const isScaling = [current, ...old].some((set) => set.desired !== set.existing)
  if (isScaling || current.available !== current.existing) return
  const unavailableSet = old.find((set) => set.existing > 0 && set.available < set.existing)
  if (unavailableSet)
    plan.scale(
      unavailableSet,
      unavailableSet.desired - 1,
      'unblocking rollout stuck due to unavailable Machine on an old MachineSet',
    )
}

const desired = (set: SetCounts): number => set.desired
