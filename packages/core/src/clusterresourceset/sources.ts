/** Maps Clusters, Secrets and ConfigMaps to ClusterResourceSets. */
import { type Cluster, ClusterResourceSet, type ResourceRef } from '@capstan/api'
import type { Cache, MapFunction } from '@capstan/controller'
import { keyOf, type ObjectKey } from '@capstan/kube'
import { hasMatchingLabels } from '../indexes.ts'

/** Maps a Secret or ConfigMap to the ClusterResourceSets that own it; when none does, to those that refer to it. */
export const resourceSetsOfSource =
  (kind: ResourceRef['kind']): MapFunction =>
  ({ metadata }, cache) => {
    const namespace = metadata.namespace!
    const owners = (metadata.ownerReferences ?? []).filter((owner) => owner.kind === ClusterResourceSet.kind)
    if (owners.length > 0) return owners.map(({ name }) => ({ namespace, name }))
    return resourceSetsIn(cache, namespace)
      .filter(({ spec }) => spec.resources.some((resource) => resource.kind === kind && resource.name === metadata.name))
      .map(keyOf)
  }

/** Maps a Cluster to the ClusterResourceSets that select it. An empty or invalid selector selects no Cluster. */
export const resourceSetsOfCluster = (cluster: Cluster, cache: Cache): ObjectKey[] =>
  resourceSetsIn(cache, cluster.metadata.namespace!)
    .filter(({ spec }) => hasMatchingLabels(spec.clusterSelector, cluster))
    .map(keyOf)

const resourceSetsIn = (cache: Cache, namespace: string): readonly ClusterResourceSet[] => cache.byIndex(ByNamespace, namespace)

export const ByNamespace = {
  name: 'ClusterResourceSet by namespace',
  kind: ClusterResourceSet,
  values: ({ metadata }: ClusterResourceSet) => [metadata.namespace!],
}
