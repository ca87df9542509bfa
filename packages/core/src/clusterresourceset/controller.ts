import { Cluster, ClusterResourceSet, ClusterResourceSetBinding } from '@capstan/api'
import { type Cache, type Controller, controller, type Predicate, watches, whenChanged } from '@capstan/controller'
import { isDeleting, type ObjectKey } from '@capstan/kube'
import { changedByOthers } from '../changed-by-others.ts'
import type { ClusterCache, ClusterCacheEvent } from '../cluster-cache/cluster-cache.ts'
import { OwnedConditions, reconcileClusterResourceSet } from './reconcile.ts'
import { resourceSetsOfCluster } from './sources.ts'

export interface ClusterResourceSetControllerOptions {
  readonly clusters: ClusterCache
  /** Maximum number of ClusterResourceSets reconciled concurrently. Default: 10. */
  readonly concurrency?: number
}

/**
 * Creates the controller that applies the objects in Secrets and ConfigMaps to Clusters. Secrets and ConfigMaps are watched from the first
 * reconcile of a ClusterResourceSet that has a valid selector and is neither paused nor being deleted.
 */
export const createClusterResourceSetController = ({
  clusters,
  concurrency = 10,
}: ClusterResourceSetControllerOptions): Controller =>
  controller({
    name: 'clusterresourceset',
    for: ClusterResourceSet,
    when: changedByOthers(OwnedConditions, OwnedConditions),
    watches: [
      watches(Cluster, resourceSetsOfCluster, clusterMatters),
      watches(ClusterResourceSetBinding, resourceSetsOfBinding, isDeletion),
    ],
    sources: [clusters.source({ map: resourceSetsOfConnection })],
    concurrency,
    reconcile: (key, context) => reconcileClusterResourceSet(key, { ...context, clusters }),
  })

const resourceSetsOfBinding = ({ metadata, spec }: ClusterResourceSetBinding): ObjectKey[] =>
  (spec.bindings ?? []).map(({ clusterResourceSetName }) => ({ namespace: metadata.namespace!, name: clusterResourceSetName }))

/** Accepts deletions, after which ClusterResourceSets apply their resources again. */
const isDeletion: Predicate<ClusterResourceSetBinding> = ({ object }) => object === undefined

/** Accepts a new or deleted Cluster, changes of its labels, and the start of its deletion. */
const clusterMatters = whenChanged((cluster: Cluster) => ({ labels: cluster.metadata.labels, isDeleting: isDeleting(cluster) }))

function resourceSetsOfConnection({ kind, cluster: key }: ClusterCacheEvent, cache: Cache): ObjectKey[] {
  if (kind === 'node') return []
  const cluster = cache.peek(Cluster, key)
  return cluster ? resourceSetsOfCluster(cluster, cache) : []
}
