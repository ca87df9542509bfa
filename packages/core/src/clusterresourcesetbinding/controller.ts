import { Cluster, ClusterResourceSetBinding, hasPausedAnnotation, OkToDeleteAnnotation } from '@capstan/api'
import { type Controller, controller, watches, whenChanged } from '@capstan/controller'
import { isDeleting, keyOf } from '@capstan/kube'
import type { FeatureGates } from '../feature-gates.ts'
import { reconcileClusterResourceSetBinding } from './reconcile.ts'

/**
 * Creates the controller that deletes the ClusterResourceSetBindings of Clusters that are being deleted or do not exist. It reconciles at
 * most `concurrency` bindings concurrently, by default 10.
 */
export const createClusterResourceSetBindingController = ({
  concurrency = 10,
  gates = {},
}: {
  readonly concurrency?: number
  readonly gates?: FeatureGates
} = {}): Controller =>
  controller({
    name: 'clusterresourcesetbinding',
    for: ClusterResourceSetBinding,
    watches: [watches(Cluster, (cluster) => [keyOf(cluster)], clusterMatters)],
    concurrency,
    reconcile: (key, context) => reconcileClusterResourceSetBinding(key, context, gates),
  })

/** Accepts new and deleted Clusters, the start of a deletion, and changes of the annotations that permit the deletion or pause the Cluster. */
const clusterMatters = whenChanged((cluster: Cluster) => ({
  isDeleting: isDeleting(cluster),
  mayBeDeleted: cluster.metadata.annotations?.[OkToDeleteAnnotation] !== undefined,
  paused: hasPausedAnnotation(cluster),
}))
