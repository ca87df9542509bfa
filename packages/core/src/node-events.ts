/** Maps events of workload clusters to the objects that refer to Nodes: Machines and MachinePools. */
import type { Cache, Index } from '@capstan/controller'
import { equal, keyOf, keyText, type KubeObject, type Node, type ObjectKey } from '@capstan/kube'
import type { ClusterCacheEvent } from './cluster-cache/cluster-cache.ts'

/**
 * Returns the values by which Machines and MachinePools are indexed: one for the name and one for the provider ID of a Node, if given. A Node
 * and the objects that refer to it have a value in common.
 */
export const nodeIndexValues = (
  cluster: ObjectKey,
  { name, providerID }: { name?: string | undefined; providerID?: string | undefined },
): string[] => {
  const prefix = `${cluster.namespace}/${cluster.name}`
  return [...(name ? [`${prefix}/name/${name}`] : []), ...(providerID ? [`${prefix}/providerID/${providerID}`] : [])]
}

/**
 * Makes a function that maps an event of a Node to the keys of the objects that refer to it, found by `byNode` with `nodeIndexValues`, and
 * another event to the keys of all objects of the Cluster. A change of a Node for which `facts` returns an equal value is mapped to no key.
 */
export const objectsOfNodeEvent =
  <T extends KubeObject>(byClusterName: Index<T>, byNode: Index<T>, facts: (node: Node) => unknown) =>
  (event: ClusterCacheEvent, cache: Cache): ObjectKey[] => {
    if (event.kind !== 'node') return cache.byIndex(byClusterName, keyText(event.cluster)).map(keyOf)
    const { node, previous, cluster } = event
    if (previous && previous !== node && equal(facts(previous), facts(node))) return []
    const indexValues = nodeIndexValues(cluster, { name: node.metadata.name, providerID: node.spec?.providerID })
    return indexValues.flatMap((indexValue) => cache.byIndex(byNode, indexValue).map(keyOf))
  }
