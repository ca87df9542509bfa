import { Cluster, Machine, MachinePool } from '@capstan/api'
import { type Controller, type Index, watches, whenChanged } from '@capstan/controller'
import { getCondition, isDeleting, type Node } from '@capstan/kube'
import type { ClusterCache } from '../cluster-cache/cluster-cache.ts'
import { nodeIndexValues, objectsOfNodeEvent } from '../node-events.ts'
import { changedByOthers } from '../changed-by-others.ts'
import { OwnedLegacyConditions } from './legacy-status.ts'
import { MachinePoolsByClusterName, objectsOfCluster } from '../indexes.ts'
import { poolOfLabels } from './machines.ts'
import { reconcileMachinePool } from './reconcile.ts'
import { OwnedConditions } from './status.ts'

export interface MachinePoolControllerOptions {
  readonly clusters: ClusterCache
  /** Number of MachinePools reconciled concurrently; 10 by default. */
  readonly concurrency?: number
}

/** Creates the controller of MachinePools. README.md lists the watched kinds. */
export function createMachinePoolController({
  clusters,
  concurrency = 10,
}: MachinePoolControllerOptions): Controller<MachinePool> {
  return {
    name: 'machinepool',
    for: MachinePool,
    when: changedByOthers(OwnedConditions, OwnedLegacyConditions),
    watches: [
      watches(Cluster, objectsOfCluster(MachinePoolsByClusterName), clusterMatters),
      watches(Machine, poolOfLabels, machineMatters),
    ],
    sources: [clusters.source({ map: objectsOfNodeEvent(MachinePoolsByClusterName, byNode, nodeFacts) })],
    concurrency,
    reconcile: (key, context) => reconcileMachinePool(key, { ...context, clusters }),
  }
}

/** Accepts additions and deletions of Clusters, and changes of `spec.paused`. */
const clusterMatters = whenChanged((cluster: Cluster) => ({ paused: cluster.spec.paused ?? false }))

/** Accepts changes of the metadata of Machines that MachinePools correct, and of the fields that they aggregate. */
const machineMatters = whenChanged((machine: Machine) => ({
  labels: machine.metadata.labels,
  annotations: machine.metadata.annotations,
  owners: machine.metadata.ownerReferences,
  isDeleting: isDeleting(machine),
  version: machine.status?.nodeInfo?.kubeletVersion ?? machine.spec.version,
  conditions: ['Ready', 'Available', 'UpToDate'].map((type) => getCondition(machine, type)?.status),
}))

/** Fields of a Node on which its MachinePool depends; the times of heartbeats are excluded. */
const nodeFacts = ({ metadata, spec, status }: Node) => ({
  uid: metadata.uid,
  annotations: metadata.annotations,
  providerID: spec?.providerID,
  taints: spec?.taints,
  version: status?.nodeInfo?.kubeletVersion,
  ready: status?.conditions?.flatMap(({ type, status, lastTransitionTime }) =>
    type === 'Ready' ? [status, lastTransitionTime] : [],
  ),
})

const byNode: Index<MachinePool> = {
  name: 'MachinePool by Node',
  kind: MachinePool,
  values({ metadata, spec, status }) {
    const cluster = { namespace: metadata.namespace!, name: spec.clusterName }
    return [
      ...(status?.nodeRefs ?? []).flatMap(({ name }) => nodeIndexValues(cluster, { name })),
      ...(spec.providerIDList ?? []).flatMap((providerID) => nodeIndexValues(cluster, { providerID })),
    ]
  },
}
