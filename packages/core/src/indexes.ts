/** Cache indexes, and mappings from objects to the keys to reconcile, for the controllers of several kinds. */
import { Cluster, ClusterNameLabel, Machine, MachineDeployment, MachineHealthCheck, MachinePool, MachineSet } from '@capstan/api'
import type { Cache, Index, MapFunction } from '@capstan/controller'
import { type Kind, keyOf, keyText, type KubeObject, labelSelector, type LabelSelector, type ObjectKey } from '@capstan/kube'

/** Indexes the objects of a kind by the Cluster that `spec.clusterName` names, as `namespace/name`. */
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

/** Returns a function that maps a Cluster to the keys of its objects, by one of the indexes above. */
export const objectsOfCluster =
  <T extends KubeObject>(index: Index<T>): MapFunction<Cluster> =>
  (cluster, cache) =>
    cache.byIndex(index, keyText(keyOf(cluster))).map(keyOf)

/**
 * Reports whether a selector matches the labels of an object. An absent, empty or invalid selector matches no object. Admission rejects
 * invalid selectors; if one was stored without admission, the reconcile of the object with the selector reports the error. Upstream:
 * HasMatchingLabels.
 */
export function hasMatchingLabels(selector: LabelSelector | undefined, { metadata }: KubeObject): boolean {
  try {
    const { requirements, matches } = labelSelector(selector)
    return requirements.length > 0 && matches(metadata.labels)
  } catch {
    return false
  }
}

/** Maps an object to the Cluster that its label `cluster.x-k8s.io/cluster-name` names. */
export const clusterOfLabel: MapFunction = ({ metadata }) => {
  const name = metadata.labels?.[ClusterNameLabel]
  return name === undefined || metadata.namespace === undefined ? [] : [{ namespace: metadata.namespace, name }]
}

/** Returns the key of the ClusterClass of a Cluster with a topology. */
export const classKeyOf = ({ metadata, spec }: Cluster): ObjectKey => ({
  namespace: spec.topology?.classRef.namespace ?? metadata.namespace ?? '',
  name: spec.topology?.classRef.name ?? '',
})

/** Indexes Clusters by the ClusterClass of their topology. */
export const ClustersByClass: Index<Cluster> = {
  name: 'topology.classRef',
  kind: Cluster,
  values: (cluster) => (cluster.spec.topology ? [keyText(classKeyOf(cluster))] : []),
}

/** Returns the keys of the Clusters that use a ClusterClass. */
export const clustersOfClass = (cache: Cache, clusterClass: KubeObject): ObjectKey[] =>
  cache.byIndex(ClustersByClass, keyText(keyOf(clusterClass))).map(keyOf)
