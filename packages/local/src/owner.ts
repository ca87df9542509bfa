/** How objects of this provider find the Cluster and the Machine they belong to. Contract: ownerReferences and the cluster-name label. */
import { Cluster, ClusterNameLabel, ClusterTopologyUpgradeStepAnnotation, isUpdateInProgress, Machine } from '@capstan/api'
import { type Cache, type Index, type MapFunction, whenChanged } from '@capstan/controller'
import { type Kind, type KubeObject, keyOf, ownerOfKind } from '@capstan/kube'

/** The Cluster that owns the object; absent until core has set the ownerReference. */
export function owningCluster(cache: Cache, object: KubeObject): Cluster | undefined {
  const owner = ownerOfKind(object, Cluster)
  return owner && cache.peek(Cluster, sibling(object, owner.name))
}

/** The Machine that owns the object; absent until core has set the ownerReference. */
export function owningMachine(cache: Cache, object: KubeObject): Machine | undefined {
  const owner = ownerOfKind(object, Machine)
  return owner && cache.peek(Machine, sibling(object, owner.name))
}

export const clusterOfMachine = (cache: Cache, machine: Machine): Cluster | undefined =>
  cache.peek(Cluster, sibling(machine, machine.spec.clusterName))

const sibling = ({ metadata }: KubeObject, name: string) => ({
  ...(metadata.namespace ? { namespace: metadata.namespace } : {}),
  name,
})

/** Objects of a kind by the Cluster that their label names, as `namespace/name`. */
export const byCluster = <T extends KubeObject>(kind: Kind<T>): Index<T> => ({
  name: `${kind.plural} by cluster`,
  kind,
  values: ({ metadata }) => {
    const name = metadata.labels?.[ClusterNameLabel]
    return name === undefined ? [] : [`${metadata.namespace}/${name}`]
  },
})

/** A change of a Cluster concerns all objects that this index knows of it. */
export const ofCluster =
  <T extends KubeObject>(index: Index<T>): MapFunction<Cluster> =>
  (cluster, cache) =>
    cache.byIndex(index, `${cluster.metadata.namespace}/${cluster.metadata.name}`).map(keyOf)

/** What of a Cluster this provider looks at: other changes concern nobody here. */
export const clusterMattered = whenChanged(({ metadata, spec, status }: Cluster) => [
  spec.paused,
  spec.controlPlaneEndpoint,
  spec.topology?.version,
  metadata.annotations?.[ClusterTopologyUpgradeStepAnnotation],
  status?.initialization,
  status?.failureDomains,
])

/** What of a Machine its infrastructure and bootstrap config look at: not its status, which changes with theirs. */
export const machineMattered = whenChanged((machine: Machine) => [
  machine.spec,
  machine.metadata.labels,
  isUpdateInProgress(machine),
])
