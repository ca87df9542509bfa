import { Cluster, ClusterClass, ClusterConditions, Machine, MachineDeployment, WaitingHooksAnnotation } from '@capstan/api'
import { type Controller, controller, type Predicate, watches } from '@capstan/controller'
import type { RuntimeClient } from '@capstan/extension'
import { type Clock, equal, isTrue } from '@capstan/kube'
import { ClassesByTemplate } from '../clusterclass/indexes.ts'
import { classProblem } from './blueprint.ts'
import { ClustersByClass, clusterOf, clustersOfClass } from './indexes.ts'
import { TopologyMemory } from './pass.ts'
import { reconcileTopology } from './reconcile.ts'

export interface TopologyOptions {
  readonly runtime: RuntimeClient
  readonly clock: Clock
  /** Clusters reconciled at once. Default 10. */
  readonly concurrency?: number
}

/**
 * A class that was just edited is not ready until its own controller has looked at it, which is the next change of it: until then
 * there is nothing to do for its Clusters, and nothing to tell their users.
 */
const isNotOnlyEdited: Predicate<ClusterClass> = ({ previous, object }) =>
  !previous || !object || classProblem(previous) !== undefined || previous.metadata.generation === object.metadata.generation

/**
 * Not its own reports: after a call that failed, what it says of that would bring the next call at once, and so on, where each
 * failure reads differently.
 */
const clusterMatters: Predicate<Cluster> = ({ previous, object }) =>
  (object ?? previous)?.spec.topology !== undefined && !equal(factsOf(previous), factsOf(object))

const factsOf = (cluster: Cluster | undefined) => {
  if (!cluster) return undefined
  const { uid, generation, labels, annotations, ownerReferences, finalizers, deletionTimestamp } = cluster.metadata
  const { [WaitingHooksAnnotation]: _, ...marks } = annotations ?? {}
  const isInitialized = isTrue(cluster, ClusterConditions.ControlPlaneInitialized.type)
  return { uid, generation, labels, marks, ownerReferences, finalizers, deletionTimestamp, isInitialized }
}

const changesVersion: Predicate<Machine> = ({ previous, object }) =>
  previous?.spec.version !== object?.spec.version ||
  previous?.status?.nodeInfo?.kubeletVersion !== object?.status?.nodeInfo?.kubeletVersion

/** The controller of managed topologies: makes a Cluster's objects from its class, keeps and upgrades them. */
export function createTopologyController({ runtime, clock, concurrency = 10 }: TopologyOptions): Controller {
  const memory = new TopologyMemory(runtime, clock)
  return controller({
    name: 'topology/cluster',
    for: Cluster,
    when: clusterMatters,
    watches: [
      watches(ClusterClass, (one, cache) => clustersOfClass(cache, one), isNotOnlyEdited),
      watches(MachineDeployment, clusterOf),
      // An upgrade goes on when a Machine has the version it should have, or is gone.
      watches(Machine, clusterOf, changesVersion),
    ],
    sources: [{ start: (enqueue) => memory.hooks.whenExtensionsChange(enqueue) }],
    indexes: [ClustersByClass, ClassesByTemplate] as never,
    concurrency,
    reconcile: (key, context) => reconcileTopology(key, context, memory),
  })
}
