/** Indexes and mappings of the topology controllers. */
import { Cluster, ClusterNameLabel, type Machine } from '@capstan/api'
import type { Cache, Index, MapFunction } from '@capstan/controller'
import { keyOf, keyText, type KubeObject, type ObjectKey, ownerOfKind } from '@capstan/kube'
import { classesOfTemplate } from '../clusterclass/indexes.ts'

/** Key of a managed Cluster's class. */
export const classKeyOf = ({ metadata, spec }: Cluster): ObjectKey => ({
  namespace: spec.topology?.classRef.namespace ?? metadata.namespace ?? '',
  name: spec.topology?.classRef.name ?? '',
})

/** Clusters by their class. */
export const ClustersByClass: Index<Cluster> = {
  name: 'topology.classRef',
  kind: Cluster,
  values: (cluster) => (cluster.spec.topology ? [keyText(classKeyOf(cluster))] : []),
}

/** Clusters of a class. */
export const clustersOfClass = (cache: Cache, clusterClass: KubeObject): ObjectKey[] =>
  cache.byIndex(ClustersByClass, keyText(keyOf(clusterClass))).map(keyOf)

/**
 * Maps a provider's object to Clusters: its owner, and Clusters whose class refers to it. One function for all kinds, because only the
 * first watch of a kind takes effect, and a kind may have objects of both sorts.
 */
export const concernedClusters: MapFunction = (object, cache) => {
  const owner = ownerOfKind(object, Cluster)
  const owning =
    owner && object.metadata.namespace !== undefined ? [{ namespace: object.metadata.namespace, name: owner.name }] : []
  return [...owning, ...classesOfTemplate(cache, object).flatMap((clusterClass) => clustersOfClass(cache, clusterClass))]
}

/** Maps an object to the Cluster that its label names. */
export const clusterOf: MapFunction = ({ metadata }) => {
  const name = metadata.labels?.[ClusterNameLabel]
  return name === undefined || metadata.namespace === undefined ? [] : [{ namespace: metadata.namespace, name }]
}

/** Whether `spec.version` or the kubelet version of a Machine, where it is known, differs from `version`. */
export const isOfOtherVersion = ({ spec, status }: Machine, version: string): boolean =>
  (spec.version !== undefined && spec.version !== version) ||
  (status?.nodeInfo?.kubeletVersion !== undefined && status.nodeInfo.kubeletVersion !== version)
