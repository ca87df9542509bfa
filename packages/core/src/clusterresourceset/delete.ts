import { type Cluster, ClusterResourceSet, ClusterResourceSetBinding, ClusterResourceSetFinalizer } from '@capstan/api'
import { draft, keyOf, orAbsent, ownerReference, removeFinalizer, removeOwnerReference } from '@capstan/kube'
import { removeEntry } from './binding.ts'
import type { ResourceSetIO } from './scope.ts'

/**
 * Removes a ClusterResourceSet from the ClusterResourceSetBindings of `clusters`, and deletes each binding that has no other entry. Then
 * removes the finalizer of the ClusterResourceSet. Applied objects stay in the workload clusters.
 */
export async function remove(resourceSet: ClusterResourceSet, clusters: readonly Cluster[], io: ResourceSetIO): Promise<void> {
  for (const cluster of clusters) {
    const binding = await orAbsent(io.client.get(ClusterResourceSetBinding, keyOf(cluster), { signal: io.signal }))
    if (binding) await removeFromBinding(resourceSet, binding, io)
  }
  removeFinalizer(resourceSet, ClusterResourceSetFinalizer)
}

async function removeFromBinding(
  resourceSet: ClusterResourceSet,
  binding: ClusterResourceSetBinding,
  { client, signal }: ResourceSetIO,
): Promise<void> {
  const remaining = draft(binding)
  removeEntry(remaining.spec, resourceSet.metadata.name)
  removeOwnerReference(remaining, ownerReference(resourceSet, ClusterResourceSet))
  const { uid, resourceVersion } = binding.metadata
  if (remaining.spec.bindings!.length === 0) {
    const preconditions = { uid, resourceVersion }
    await orAbsent(client.delete(ClusterResourceSetBinding, keyOf(binding), { preconditions, signal }))
    return
  }
  const body = {
    metadata: { resourceVersion, ownerReferences: remaining.metadata.ownerReferences ?? null },
    spec: { bindings: remaining.spec.bindings },
  }
  await orAbsent(client.patch(ClusterResourceSetBinding, keyOf(binding), { type: 'merge', body }, { signal }))
}
