/** Indexes that several controllers share. */
import { type Cluster, Machine, MachineDeployment, MachineHealthCheck, MachineSet } from '@capstan/api'
import type { Index, MapFunction } from '@capstan/controller'
import { type Kind, keyOf, keyText, type KubeObject } from '@capstan/kube'

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

/** Maps a Cluster to the objects of an index that belong to it. */
export const objectsOfCluster =
  <T extends KubeObject>(index: Index<T>): MapFunction<Cluster> =>
  (cluster, cache) =>
    cache.byIndex(index, keyText(keyOf(cluster))).map(keyOf)
