/**
 * The next step when Machines are replaced only as somebody deletes them: the current set fills up what is missing, and old sets
 * never make Machines again. Upstream: machinedeployment_rollout_ondelete.go, v1.14.
 */
import { scaleCurrent } from './rolling-update.ts'
import type { Rollout, Scale } from './rollout.ts'
import { ScalePlan, sum } from './rollout.ts'

export function planOnDelete(rollout: Rollout): readonly Scale[] {
  const plan = new ScalePlan()
  scaleCurrent({ ...rollout, maxSurge: 0 }, plan)

  const { replicas, current, old } = rollout
  let surplus = Math.max(sum(old, (set) => set.desired) + plan.target(current) - replicas, 0)
  // Replicas without a Machine were deleted by the user, or never made before the set became an old one.
  for (const set of old) {
    const missing = set.desired - set.existing
    if (missing <= 0) continue
    plan.scale(set, set.existing, 'scale down to align to existing Machines')
    surplus -= missing
  }
  for (const set of old) {
    const less = Math.min(plan.target(set), surplus)
    if (less <= 0) continue
    // Upstream subtracts from spec.replicas here, and so takes back what the first loop did to the same set; the next pass mends it.
    plan.scale(set, plan.target(set) - less, 'scale down to align MachineSet spec.replicas to MachineDeployment spec.replicas')
    surplus -= less
  }
  return plan.scales
}
