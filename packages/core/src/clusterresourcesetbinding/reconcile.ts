/** Upstream: core/reconcilers/clusterresourcesetbinding, v1.14. */
import { Cluster, ClusterResourceSetBinding, hasPausedAnnotation, OkToDeleteAnnotation } from '@capstan/api'
import { type Outcome, proceed, type ReconcileContext, wait } from '@capstan/controller'
import { draft, isDeleting, keyOf, type ObjectKey, orAbsent, removeOwnerReference, typeMeta } from '@capstan/kube'
import { awaitsDeleteHook, type FeatureGates } from '../feature-gates.ts'

/**
 * Deletes a binding whose Cluster does not exist or is being deleted. If the Cluster has a topology, and the feature gates RuntimeSDK and
 * ClusterTopology are enabled, waits until BeforeClusterDelete allows the deletion. Also removes the Cluster from the owners of the binding.
 */
export async function reconcileClusterResourceSetBinding(
  key: ObjectKey,
  io: ReconcileContext,
  gates: FeatureGates,
): Promise<Outcome> {
  const binding = io.cache.peek(ClusterResourceSetBinding, key)
  if (!binding || isDeleting(binding) || hasPausedAnnotation(binding)) return proceed()
  await dropClusterOwner(binding, io)
  const clusterKey = { namespace: key.namespace!, name: binding.spec.clusterName }
  // A newly created Cluster may not be in the cache yet.
  const cluster =
    io.cache.peek(Cluster, clusterKey) ?? (await orAbsent(io.client.get(Cluster, clusterKey, { signal: io.signal })))
  if (cluster && !isDeleting(cluster)) return proceed()
  const mayAwaitHook = cluster?.spec.topology && awaitsDeleteHook(gates)
  if (mayAwaitHook && cluster.metadata.annotations?.[OkToDeleteAnnotation] === undefined)
    return wait('the Cluster to be ready for deletion')
  io.log.info('Deleting ClusterResourceSetBinding because its Cluster does not exist or is being deleted')
  const preconditions = { uid: binding.metadata.uid }
  await orAbsent(io.client.delete(ClusterResourceSetBinding, key, { preconditions, signal: io.signal }))
  return proceed()
}

/** Removes the Cluster from the owners of its binding: upstream versions before v1.4 added the Cluster as an owner. */
async function dropClusterOwner(binding: ClusterResourceSetBinding, { client, signal }: ReconcileContext): Promise<void> {
  const remaining = draft(binding)
  if (!removeOwnerReference(remaining, { ...typeMeta(Cluster), name: binding.spec.clusterName, uid: '' })) return
  const { ownerReferences = null, resourceVersion } = remaining.metadata
  const body = { metadata: { ownerReferences, resourceVersion } }
  await client.patch(ClusterResourceSetBinding, keyOf(binding), { type: 'merge', body }, { signal })
}
