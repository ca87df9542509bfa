/**
 * Finds the Cluster, Machine, MachinePool and LocalMachinePool of an object of this provider, by ownerReferences and the cluster-name label,
 * and the Cluster of a Machine. Also has filters for changes of Clusters, Machines and MachinePools.
 */
import {
  Cluster,
  ClusterNameLabel,
  ClusterTopologyUpgradeStepAnnotation,
  isUpdateInProgress,
  Machine,
  MachinePool,
} from '@capstan/api'
import { type Cache, type Index, type MapFunction, whenChanged } from '@capstan/controller'
import { type Kind, type KubeObject, keyOf, ownerOfKind } from '@capstan/kube'
import { LocalMachinePool } from './kinds/local-machine-pool.ts'

/** Returns the Cluster that owns the object; `undefined` until core has set the ownerReference, or if the Cluster does not exist. */
export function owningCluster(cache: Cache, object: KubeObject): Cluster | undefined {
  const owner = ownerOfKind(object, Cluster)
  return owner && cache.peek(Cluster, sibling(object, owner.name))
}

/** Returns the Machine that owns the object; `undefined` until core has set the ownerReference, or if the Machine does not exist. */
export function owningMachine(cache: Cache, object: KubeObject): Machine | undefined {
  const owner = ownerOfKind(object, Machine)
  return owner && cache.peek(Machine, sibling(object, owner.name))
}

/** Returns the MachinePool that owns the object; `undefined` until core has set the ownerReference, or if the MachinePool does not exist. */
export function owningMachinePool(cache: Cache, object: KubeObject): MachinePool | undefined {
  const owner = ownerOfKind(object, MachinePool)
  return owner && cache.peek(MachinePool, sibling(object, owner.name))
}

/** Returns the LocalMachinePool that owns a LocalMachine, if any. */
export function owningPool(cache: Cache, object: KubeObject): LocalMachinePool | undefined {
  const owner = ownerOfKind(object, LocalMachinePool)
  return owner && cache.peek(LocalMachinePool, sibling(object, owner.name))
}

/** Returns the Cluster that the cluster-name label of the object names, if it exists. */
export function labelledCluster(cache: Cache, object: KubeObject): Cluster | undefined {
  const name = object.metadata.labels?.[ClusterNameLabel]
  return name === undefined ? undefined : cache.peek(Cluster, sibling(object, name))
}

export const clusterOfMachine = (cache: Cache, machine: Machine): Cluster | undefined =>
  cache.peek(Cluster, sibling(machine, machine.spec.clusterName))

const sibling = ({ metadata }: KubeObject, name: string) => ({
  ...(metadata.namespace ? { namespace: metadata.namespace } : {}),
  name,
})

/** Index of the objects of a kind by the Cluster that their label names, as `namespace/name`. */
export const byCluster = <T extends KubeObject>(kind: Kind<T>): Index<T> => ({
  name: `${kind.plural} by cluster`,
  kind,
  values: clusterOf,
})

/** Returns the Cluster that the label of an object names, as `namespace/name`; an empty list without the label. */
function clusterOf({ metadata }: KubeObject): readonly string[] {
  const name = metadata.labels?.[ClusterNameLabel]
  return name === undefined ? [] : [`${metadata.namespace}/${name}`]
}

/** Maps a Cluster to all its objects in the index. */
export const ofCluster =
  <T extends KubeObject>(index: Index<T>): MapFunction<Cluster> =>
  (cluster, cache) =>
    cache.byIndex(index, `${cluster.metadata.namespace}/${cluster.metadata.name}`).map(keyOf)

/** Maps an object to the objects in the index that belong to the same Cluster. */
export const ofSameCluster =
  <T extends KubeObject>(index: Index<T>): MapFunction<KubeObject> =>
  (object, cache) =>
    clusterOf(object).flatMap((cluster) => cache.byIndex(index, cluster).map(keyOf))

/** Accepts changes of the Cluster fields that this provider uses. */
export const relevantClusterChange = whenChanged(({ metadata, spec, status }: Cluster) => [
  spec.paused,
  spec.controlPlaneEndpoint,
  spec.topology?.version,
  metadata.annotations?.[ClusterTopologyUpgradeStepAnnotation],
  status?.initialization,
  status?.failureDomains,
])

/**
 * Accepts changes of a Machine that its infrastructure and bootstrap config must react to. Ignores the status, which core computes mostly
 * from these objects and the Node.
 */
export const relevantMachineChange = whenChanged((machine: Machine) => [
  machine.spec,
  machine.metadata.labels,
  isUpdateInProgress(machine),
])

/**
 * Accepts changes of the MachinePool fields that its infrastructure and bootstrap config use. Ignores `spec.providerIDList`, which core
 * copies from the infrastructure.
 */
export const relevantMachinePoolChange = whenChanged(({ metadata, spec }: MachinePool) => [
  spec.replicas,
  spec.template,
  spec.failureDomains,
  metadata.annotations,
])
