/** Indexes and mappings that several controllers share. */
import { Cluster, ClusterNameLabel, Machine, MachineDeployment, MachineHealthCheck, MachinePool, MachineSet } from '@capstan/api'
import type { Cache, Index, MapFunction } from '@capstan/controller'
import { type Kind, keyOf, keyText, type KubeObject, labelSelector, type LabelSelector, type ObjectKey } from '@capstan/kube'

/** Objects of a kind by the Cluster that `spec.clusterName` names, as `namespace/name`. */
const byClusterName = <T extends KubeObject & { spec: { clusterName: string } }>(kind: Kind<T>): Index<T> => ({
  name: `${kind.plural} by spec.clusterName`,
  kind,
  values: ({ metadata, spec }) => [`${metadata.namespace}/${spec.clusterName}`],
})

export const MachinesByClusterName = byClusterName(Machine)
export const MachineSetsByClusterName = byClusterName(MachineSet)
export const MachineDeploymentsByClusterName = byClusterName(MachineDeployment)
export const MachineHealthChecksByClusterName = byClusterName(MachineHealthCheck)
export const MachinePoolsByClusterName = byClusterName(MachinePool)

/** Maps a Cluster to the objects of an index that belong to it. */
export const objectsOfCluster =
  <T extends KubeObject>(index: Index<T>): MapFunction<Cluster> =>
  (cluster, cache) =>
    cache.byIndex(index, keyText(keyOf(cluster))).map(keyOf)

/**
 * Whether the selector of a spec matches the labels of an object that is mapped to the spec's owner. An empty selector matches nothing, nor
 * does an invalid one, which was stored without admission: the reconcile of its owner reports the error. Upstream: HasMatchingLabels.
 */
export function hasMatchingLabels(selector: LabelSelector | undefined, { metadata }: KubeObject): boolean {
  try {
    const { requirements, matches } = labelSelector(selector)
    return requirements.length > 0 && matches(metadata.labels)
  } catch {
    return false
  }
}

/** Maps an object to the Cluster that its label names. */
export const clusterOfLabel: MapFunction = ({ metadata }) => {
  const name = metadata.labels?.[ClusterNameLabel]
  return name === undefined || metadata.namespace === undefined ? [] : [{ namespace: metadata.namespace, name }]
}

/** Key of the class of a Cluster with a topology. */
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

/** Keys of the Clusters of a class. */
export const clustersOfClass = (cache: Cache, clusterClass: KubeObject): ObjectKey[] =>
  cache.byIndex(ClustersByClass, keyText(keyOf(clusterClass))).map(keyOf)
