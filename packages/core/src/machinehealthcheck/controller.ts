import { Cluster, ClusterConditions, Machine, MachineHealthCheck } from '@capstan/api'
import { type Cache, type Controller, type Index, watches, whenChanged } from '@capstan/controller'
import { conditionsOf, equal, getCondition, isDeleting, keyOf, keyText, type Node, type ObjectKey, seconds } from '@capstan/kube'
import type { ClusterCache, ClusterCacheEvent } from '../cluster-cache/cluster-cache.ts'
import { hasMatchingLabels, MachineHealthChecksByClusterName, objectsOfCluster } from '../indexes.ts'
import { reconcileMachineHealthCheck } from './reconcile.ts'

export interface MachineHealthCheckControllerOptions {
  readonly clusters: ClusterCache
  /** Number of MachineHealthChecks reconciled concurrently; 10 by default. */
  readonly concurrency?: number
}

/** Creates the controller of MachineHealthChecks, which reports unhealthy Machines and requests their remediation. */
export function createMachineHealthCheckController({
  clusters,
  concurrency = 10,
}: MachineHealthCheckControllerOptions): Controller<MachineHealthCheck> {
  return {
    name: 'machinehealthcheck',
    for: MachineHealthCheck,
    when: whenChanged(({ metadata }: MachineHealthCheck) => {
      const { uid, generation, labels, annotations, ownerReferences } = metadata
      return { uid, generation, labels, annotations, ownerReferences }
    }),
    watches: [
      watches(Machine, healthChecksOfMachine, machineMatters),
      watches(Cluster, objectsOfCluster(MachineHealthChecksByClusterName), clusterMatters),
    ],
    sources: [clusters.source({ map: healthChecksOfEvent })],
    concurrency,
    // Slows down two MachineHealthChecks that disagree about a Machine and overwrite its condition in turn. Upstream allows one reconcile of
    // each MachineHealthCheck in 15 s.
    limit: { burst: 20, interval: seconds(15) },
    reconcile: (key, context) => reconcileMachineHealthCheck(key, { ...context, clusters }),
  }
}

/** Accepts changes of the fields that determine the health of a Machine, or whether the Machine is checked. */
const machineMatters = whenChanged((machine: Machine) => ({
  labels: machine.metadata.labels,
  annotations: machine.metadata.annotations,
  isDeleting: isDeleting(machine),
  nodeRef: machine.status?.nodeRef?.name,
  conditions: conditionsOf(machine),
}))

const clusterMatters = whenChanged((cluster: Cluster) => ({
  paused: cluster.spec.paused ?? false,
  infrastructureReady: getCondition(cluster, ClusterConditions.InfrastructureReady.type),
  controlPlaneInitialized: getCondition(cluster, ClusterConditions.ControlPlaneInitialized.type),
}))

function healthChecksOfMachine(machine: Machine, cache: Cache): ObjectKey[] {
  return cache
    .byIndex(MachineHealthChecksByClusterName, `${machine.metadata.namespace}/${machine.spec.clusterName}`)
    .filter(({ spec }) => hasMatchingLabels(spec.selector, machine))
    .map(keyOf)
}

function healthChecksOfEvent(event: ClusterCacheEvent, cache: Cache): readonly ObjectKey[] {
  if (event.kind !== 'node') return cache.byIndex(MachineHealthChecksByClusterName, keyText(event.cluster)).map(keyOf)
  const { node, previous, cluster } = event
  if (previous && previous !== node && equal(healthFacts(previous), healthFacts(node))) return []
  return cache
    .byIndex(MachinesByNode, `${keyText(cluster)}/${node.metadata.name}`)
    .flatMap((machine) => healthChecksOfMachine(machine, cache))
}

/** Fields of a Node whose changes trigger a check of its Machines; the times of heartbeats are excluded. */
const healthFacts = ({ metadata, status }: Node) => [
  metadata.uid,
  status?.conditions?.map(({ type, status, reason, lastTransitionTime }) => [type, status, reason, lastTransitionTime]),
]

const MachinesByNode: Index<Machine> = {
  name: 'machines by status.nodeRef',
  kind: Machine,
  values: ({ metadata, spec, status }) =>
    status?.nodeRef ? [`${metadata.namespace}/${spec.clusterName}/${status.nodeRef.name}`] : [],
}
