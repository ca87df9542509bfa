/**
 * Divides the MachineSets of a MachineDeployment into the current set, which has the deployment's template, and the old sets. Pure.
 * Upstream: mdutil.FindNewAndOldMachineSets, v1.14.
 */
import type { MachineDeployment, MachineSet } from '@capstan/api'
import { templateDifferences } from '../machine/template-differences.ts'

export interface SetsByRole {
  /**
   * Of the sets with the deployment's template (apart from fields that can change on existing Machines), the set with the most
   * `spec.replicas`; of several such sets, the oldest. Once `rollout.after` has passed, sets that were created before it do not count. Absent
   * when no set remains.
   */
  readonly current: MachineSet | undefined
  /** All other sets, the oldest first. */
  readonly old: readonly MachineSet[]
  /** Old sets with another template, whose Machines may be updated in place: sets created before a past `rollout.after` are excluded. */
  readonly eligible: readonly MachineSet[]
  /** Reason for creating a new set; empty when `current` exists. */
  readonly createReason: string
}

/** Returns the current set and the old sets at the time `now`, in milliseconds since the Unix epoch. */
export function setsByRole(deployment: MachineDeployment, sets: readonly MachineSet[], now: number): SetsByRole {
  const hasTemplate = (set: MachineSet) => templateDifferences(set.spec.template, deployment.spec.template).length === 0
  const candidates = sets.toSorted((a, b) => (b.spec.replicas ?? 0) - (a.spec.replicas ?? 0) || byAge(a, b)).filter(hasTemplate)
  const rolloutAfter = Date.parse(deployment.spec.rollout?.after ?? '')
  const hasRolloutAfterPassed = rolloutAfter <= now
  const current = hasRolloutAfterPassed ? candidates.find((set) => createdAt(set) >= rolloutAfter) : candidates[0]
  const old = sets.filter((set) => set !== current).toSorted(byAge)
  // Machines of sets that were created before a past `rollout.after` must be replaced, not updated in place.
  const eligible = old.filter((set) => !hasTemplate(set) && !(hasRolloutAfterPassed && createdAt(set) < rolloutAfter))
  const areCandidatesTooOld = hasRolloutAfterPassed && candidates.length > 0
  const reason = current ? '' : createReason(deployment, old, areCandidatesTooOld)
  return { current, old, eligible, createReason: reason }
}

function createReason(deployment: MachineDeployment, sets: readonly MachineSet[], areCandidatesTooOld: boolean): string {
  if (areCandidatesTooOld) return 'MachineDeployment spec.rollout.after expired'
  const latest = sets.at(-1)
  if (!latest) return 'no MachineSets exist for the MachineDeployment'
  const differences = templateDifferences(latest.spec.template, deployment.spec.template)
  return `MachineSet ${latest.metadata.name}: ${differences.join(', ')}`
}

const createdAt = ({ metadata }: MachineSet): number => Date.parse(metadata.creationTimestamp)

const byAge = (a: MachineSet, b: MachineSet): number =>
  createdAt(a) - createdAt(b) || (a.metadata.name < b.metadata.name ? -1 : a.metadata.name > b.metadata.name ? 1 : 0)
