/**
 * Plans the next step of a rollout with the strategy OnDelete: users delete Machines, the current MachineSet creates the missing Machines,
 * and old MachineSets never create Machines again. Upstream: machinedeployment_rollout_ondelete.go, v1.14.
 */
import { scaleCurrent } from './plan-rolling-update.ts'
import type { Rollout, Scale } from './rollout-plan.ts'
import { ScalePlan, sum } from './rollout-plan.ts'

export function planOnDelete(rollout: Rollout): readonly Scale[] {
  const plan = new ScalePlan()
  scaleCurrent({ ...rollout, maxSurge: 0 }, plan)

  const { replicas, current, old } = rollout
  let surplus = Math.max(sum(old, (set) => set.desired) + plan.target(current) - replicas, 0)
  // A replica has no Machine, for example, after a user has deleted the Machine, or if the set became old before the Machine was created.
  for (const set of old) {
    const missing = set.desired - set.existing
    if (missing <= 0) continue
    plan.scale(set, set.existing, 'scale down to align to existing Machines')
    surplus -= missing
  }
  for (const set of old) {
    const reduction = Math.min(plan.target(set), surplus)
    if (reduction <= 0) continue
    // Upstream subtracts from spec.replicas here, which undoes the first loop's change to the same set; the next reconcile corrects that.
    plan.scale(
      set,
      plan.target(set) - reduction,
      'scale down to align MachineSet spec.replicas to MachineDeployment spec.replicas',
    )
    surplus -= reduction
  }
  return plan.scales
}
