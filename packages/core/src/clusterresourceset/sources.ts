/** Maps Clusters, Secrets and ConfigMaps to ClusterResourceSets. */
import { type Cluster, ClusterResourceSet, type ResourceRef } from '@capstan/api'
import type { Cache, MapFunction } from '@capstan/controller'
import { keyOf, labelSelector, type ObjectKey } from '@capstan/kube'

/** ClusterResourceSets that own the Secret or ConfigMap; when none does, those that refer to it. */
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

/** ClusterResourceSets that select the Cluster. Invalid selectors select none. */
export const resourceSetsOfCluster = ({ metadata }: Cluster, cache: Cache): ObjectKey[] =>
  resourceSetsIn(cache, metadata.namespace!)
    .filter(({ spec }) => {
      try {
        const selector = labelSelector(spec.clusterSelector)
        return selector.requirements.length > 0 && selector.matches(metadata.labels)
      } catch {
        return false
      }
    })
    .map(keyOf)

const resourceSetsIn = (cache: Cache, namespace: string): readonly ClusterResourceSet[] => cache.byIndex(ByNamespace, namespace)

export const ByNamespace = {
  name: 'ClusterResourceSet by namespace',
  kind: ClusterResourceSet,
  values: ({ metadata }: ClusterResourceSet) => [metadata.namespace!],
}
