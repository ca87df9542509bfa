/** How the topology controllers find what concerns what. */
import { Cluster, ClusterNameLabel, type Machine } from '@capstan/api'
import type { Cache, Index, MapFunction } from '@capstan/controller'
import { keyOf, keyText, type KubeObject, type ObjectKey, ownerOfKind } from '@capstan/kube'
import { classesOfTemplate } from '../clusterclass/indexes.ts'

/** The class that a managed Cluster is of. */
export const classKeyOf = ({ metadata, spec }: Cluster): ObjectKey => ({
  namespace: spec.topology?.classRef.namespace ?? metadata.namespace ?? '',
  name: spec.topology?.classRef.name ?? '',
})

/** Clusters by the class they are of. */
export const ClustersByClass: Index<Cluster> = {
  name: 'topology.classRef',
  kind: Cluster,
  values: (cluster) => (cluster.spec.topology ? [keyText(classKeyOf(cluster))] : []),
}

/** Clusters of a class. */
export const clustersOfClass = (cache: Cache, clusterClass: KubeObject): ObjectKey[] =>
  cache.byIndex(ClustersByClass, keyText(keyOf(clusterClass))).map(keyOf)

/**
 * The Clusters that a provider's object concerns: the one that owns it, and those whose class refers to it. One function for all
 * kinds, because a kind is watched once, and the same template kind may hold both.
 */
export const concernedClusters: MapFunction = (object, cache) => {
  const owner = ownerOfKind(object, Cluster)
  const owning =
    owner && object.metadata.namespace !== undefined ? [{ namespace: object.metadata.namespace, name: owner.name }] : []
  return [...owning, ...classesOfTemplate(cache, object).flatMap((one) => clustersOfClass(cache, one))]
}

/** The Cluster that an object is labelled for. */
export const clusterOf: MapFunction = ({ metadata }) => {
  const name = metadata.labels?.[ClusterNameLabel]
  return name === undefined || metadata.namespace === undefined ? [] : [{ namespace: metadata.namespace, name }]
}

/** Whether a Machine runs another version than it should. */
export const isOfOtherVersion = ({ spec, status }: Machine, version: string): boolean =>
  (spec.version !== undefined && spec.version !== version) ||
  (status?.nodeInfo?.kubeletVersion !== undefined && status.nodeInfo.kubeletVersion !== version)
