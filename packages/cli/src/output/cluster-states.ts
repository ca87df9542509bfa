/** Computes the states of clusters for the live lines that `story.ts` draws on a terminal. */
import type { Cluster, Machine } from '@capstan/api'
import { keyOf, keyText } from '@capstan/kube'
import type { ClusterState } from './story.ts'

export function statesOf(clusters: readonly Cluster[], machines: readonly Machine[]): ClusterState[] {
  const machinesByCluster = Map.groupBy(machines, ({ metadata, spec }) => `${metadata.namespace}/${spec.clusterName}`)
  return clusters.map((cluster) => clusterState(cluster, machinesByCluster.get(keyText(keyOf(cluster))) ?? []))
}

function clusterState(cluster: Cluster, machines: readonly Machine[]): ClusterState {
  const running = machines.filter(({ status }) => status?.phase === 'Running').length
  const available = cluster.status?.conditions?.find(({ type }) => type === 'Available')
  const topology = cluster.status?.conditions?.find(({ type }) => type === 'TopologyReconciled')
  const isAvailable = available?.status === 'True' && cluster.metadata.deletionTimestamp === undefined
  return {
    name: keyText(keyOf(cluster)),
    phase: isAvailable ? 'Available' : (cluster.status?.phase ?? 'Pending'),
    version: cluster.spec.topology?.version ?? '',
    machines: `${running}/${machines.length} machines running`,
    note: topology?.status === 'False' ? (topology.message ?? '') : '',
  }
}
