/** Finds the MachineSet with the deployment's current template. Pure. Upstream: mdutil.FindNewAndOldMachineSets, v1.14. */
import type { MachineDeployment, MachineSet } from '@capstan/api'
import { templateDifferences } from '../machine/template-differences.ts'

export interface SetsByRole {
  /**
   * Of the sets with the deployment's template, the one with the most replicas, then the oldest. Sets that are older than an expired
   * `rollout.after` do not count. Absent when no set remains.
   */
  readonly current: MachineSet | undefined
  /** All other sets, the oldest first. */
  readonly old: readonly MachineSet[]
  /** Old sets with another template whose Machines may be updated in place. */
  readonly eligible: readonly MachineSet[]
  /** Reason for creating a new set; empty when `current` exists. */
  readonly createReason: string
}

export function setsByRole(deployment: MachineDeployment, sets: readonly MachineSet[], now: number): SetsByRole {
  const hasTemplate = (set: MachineSet) => templateDifferences(set.spec.template, deployment.spec.template).length === 0
  const candidates = sets.toSorted((a, b) => (b.spec.replicas ?? 0) - (a.spec.replicas ?? 0) || byAge(a, b)).filter(hasTemplate)
  const rolloutAfter = Date.parse(deployment.spec.rollout?.after ?? '')
  const isExpired = rolloutAfter <= now
  const current = isExpired ? candidates.find((set) => createdAt(set) >= rolloutAfter) : candidates[0]
  const old = sets.filter((set) => set !== current).toSorted(byAge)
  // Machines of sets that are older than an expired `rollout.after` must be replaced, not updated in place.
  const eligible = old.filter((set) => !hasTemplate(set) && !(isExpired && createdAt(set) < rolloutAfter))
  const areCandidatesTooOld = isExpired && candidates.length > 0
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
