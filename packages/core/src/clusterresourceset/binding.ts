/** Entries of a ClusterResourceSetBinding for one ClusterResourceSet. Pure. Upstream: clusterresourcesetbinding_types.go, v1.14. */
import type { ClusterResourceSetBinding, ResourceBinding, ResourceRef, ResourceSetBinding } from '@capstan/api'

type Bindings = ClusterResourceSetBinding['spec']

/** Returns the entry of a ClusterResourceSet in a draft, adding it when missing. */
export function entryOf(spec: Bindings, clusterResourceSetName: string): ResourceSetBinding {
  const bindings = (spec.bindings ??= [])
  const existing = bindings.find((entry) => entry.clusterResourceSetName === clusterResourceSetName)
  if (existing) return existing
  const added: ResourceSetBinding = { clusterResourceSetName }
  bindings.push(added)
  return added
}

/** Removes the entry of a ClusterResourceSet from a draft. */
export function removeEntry(spec: Bindings, clusterResourceSetName: string): void {
  spec.bindings = (spec.bindings ?? []).filter((entry) => entry.clusterResourceSetName !== clusterResourceSetName)
}

/** Returns the recorded state of a resource. */
export const resourceIn = ({ resources = [] }: ResourceSetBinding, ref: ResourceRef): ResourceBinding | undefined =>
  resources.find(({ kind, name }) => kind === ref.kind && name === ref.name)

/**
 * Records the state of a resource in a draft. A repeated failure with the same hash changes nothing: the time of the first failure stays
 * recorded.
 */
export function recordResource(entry: ResourceSetBinding, resource: ResourceBinding): void {
  const recorded = resourceIn(entry, resource)
  if (recorded && !recorded.applied && !resource.applied && recorded.hash === resource.hash) return
  entry.resources = recorded
    ? entry.resources!.map((existing) => (existing === recorded ? resource : existing))
    : [...(entry.resources ?? []), resource]
}

/** Whether a resource needs to be applied: if it is not recorded as applied or, with the strategy Reconcile, its hash has changed. */
export function needsApply(entry: ResourceSetBinding, ref: ResourceRef, hash: string, strategy: string | undefined): boolean {
  const recorded = resourceIn(entry, ref)
  if (!recorded?.applied) return true
  return strategy === 'Reconcile' && recorded.hash !== hash
}
