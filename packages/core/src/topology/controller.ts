import {
  Cluster,
  ClusterClass,
  ClusterConditions,
  Machine,
  MachineDeployment,
  MachineHealthCheck,
  MachinePool,
  WaitingHooksAnnotation,
} from '@capstan/api'
import { type Controller, controller, type Predicate, watches, whenChanged } from '@capstan/controller'
import type { RuntimeClient } from '@capstan/extension'
import { type Clock, equal, isTrue, Namespace } from '@capstan/kube'
import { clusterOfLabel, clustersOfClass } from '../indexes.ts'
import { classProblem } from './blueprint.ts'
import { TopologyMemory } from './scope.ts'
import { reconcileTopology } from './reconcile.ts'

export interface TopologyOptions {
  /**
   * Calls hooks. Absent when the feature gate RuntimeSDK is disabled: no hook is called, and a topology with external patches cannot be
   * reconciled.
   */
  readonly runtime: RuntimeClient | undefined
  readonly clock: Clock
  /** Number of Clusters reconciled concurrently; 10 by default. */
  readonly concurrency?: number
}

/**
 * Ignores the edit of a usable class, because the class controller writes the status afterwards, which causes another event. Accepts all
 * other events. After an interruption of the watch, one event may contain both the edit and the status, or a new class of the same name;
 * these events are accepted, too.
 */
export const classMatters: Predicate<ClusterClass> = ({ previous, object }) =>
  !previous ||
  !object ||
  classProblem(previous) !== undefined ||
  classProblem(object) === undefined ||
  previous.metadata.uid !== object.metadata.uid ||
  previous.metadata.generation === object.metadata.generation

/**
 * Ignores Clusters without a topology, changes of the records of waiting hooks, and changes of the status except the initialization of the
 * control plane: after a failed hook call, this controller's own write would trigger the next call at once, endlessly when each error message
 * differs.
 */
const clusterMatters: Predicate<Cluster> = ({ previous, object }) =>
  (object ?? previous)?.spec.topology !== undefined && !equal(factsOf(previous), factsOf(object))

const factsOf = (cluster: Cluster | undefined) => {
  if (!cluster) return undefined
  const { uid, generation, labels, annotations, ownerReferences, finalizers, deletionTimestamp } = cluster.metadata
  const { [WaitingHooksAnnotation]: _, ...otherAnnotations } = annotations ?? {}
  const isInitialized = isTrue(cluster, ClusterConditions.ControlPlaneInitialized.type)
  return { uid, generation, labels, otherAnnotations, ownerReferences, finalizers, deletionTimestamp, isInitialized }
}

/** Accepts changes of the labels of a namespace, by which extensions select Clusters. */
const changesLabels: Predicate<Namespace> = ({ previous, object }) =>
  previous !== undefined && object !== undefined && !equal(previous.metadata.labels ?? {}, object.metadata.labels ?? {})

/** Accepts the creation and deletion of a MachineHealthCheck, and changes of its spec and labels. */
const specChanged = whenChanged(({ metadata: { uid, generation, labels } }: MachineHealthCheck) => ({ uid, generation, labels }))

const changesVersion: Predicate<Machine> = ({ previous, object }) =>
  previous?.spec.version !== object?.spec.version ||
  previous?.status?.nodeInfo?.kubeletVersion !== object?.status?.nodeInfo?.kubeletVersion

/** Creates the controller of managed topologies, which creates a Cluster's objects from its class, updates and upgrades them. */
export function createTopologyController({ runtime, clock, concurrency = 10 }: TopologyOptions): Controller {
  const memory = new TopologyMemory(runtime, clock)
  return controller({
    name: 'topology/cluster',
    for: Cluster,
    when: clusterMatters,
    watches: [
      watches(ClusterClass, (clusterClass, cache) => clustersOfClass(cache, clusterClass), classMatters),
      watches(Namespace, ({ metadata }) => memory.hooks.waitingIn(metadata.name), changesLabels),
      watches(MachineDeployment, clusterOfLabel),
      watches(MachineHealthCheck, clusterOfLabel, specChanged),
      // No predicate, because changes of the status matter, too: an upgrade continues when all Nodes have the desired version.
      watches(MachinePool, clusterOfLabel),
      // An upgrade proceeds when a Machine has reached its version, or was deleted.
      watches(Machine, clusterOfLabel, changesVersion),
    ],
    aggregates: [MachineDeployment, MachinePool],
    sources: [{ start: (enqueue) => memory.hooks.whenExtensionsChange(enqueue) }],
    concurrency,
    reconcile: (key, context) => reconcileTopology(key, context, memory),
  })
}
