import {
  Cluster,
  Machine,
  MachineDeployment,
  MachineDeploymentNameLabel,
  MachineDrainRule,
  MachineSet,
  RevisionAnnotation,
} from '@capstan/api'
import { type Cache, type Controller, type Index, indexByLabel, watches, whenChanged } from '@capstan/controller'
import { controllerOf, getCondition, isDeleting, keyOf, keyText, minutes, type Node, type ObjectKey } from '@capstan/kube'
import type { RuntimeClient } from '@capstan/extension'
import type { ClusterCache } from '../cluster-cache/cluster-cache.ts'
import { MachinesByClusterName, objectsOfCluster } from '../indexes.ts'
import { nodeIndexValues, objectsOfNodeEvent } from '../node-events.ts'
import { changedByOthers } from '../changed-by-others.ts'
import { OwnedLegacyConditions } from './legacy-status.ts'
import { reconcileMachine } from './reconcile.ts'
import type { MachineSettings } from './scope.ts'
import { OwnedConditions } from './status.ts'
import { UpdateCalls } from './update-calls.ts'

export interface MachineControllerOptions extends Partial<MachineSettings> {
  readonly clusters: ClusterCache
  /** Calls the handlers of in-place updates. Without it, Machines are not updated in place. */
  readonly runtime?: RuntimeClient
  /** Maximum number of Machines reconciled concurrently, not counting those that wait for an extension. Default: 10. */
  readonly concurrency?: number
}

/** Creates the controller of Machines. README.md lists the watched kinds. */
export function createMachineController({
  clusters,
  runtime,
  concurrency = 10,
  remoteConditionsGracePeriod = minutes(5),
  syncLabels = [],
  syncAnnotations = [],
}: MachineControllerOptions): Controller<Machine> {
  const settings: MachineSettings = { remoteConditionsGracePeriod, syncLabels, syncAnnotations }
  const updates = new UpdateCalls(runtime)
  const nodeDeletionFailures = new Map<string, number>()
  return {
    name: 'machine',
    for: Machine,
    when: changedByOthers(OwnedConditions, OwnedLegacyConditions),
    watches: [
      watches(Cluster, objectsOfCluster(MachinesByClusterName), updates.retries.orRetryRequest(clusterMatters)),
      watches(MachineSet, (set, cache) => cache.byIndex(byMachineSet, keyText(keyOf(set))).map(keyOf), rolloutMatters),
      watches(MachineDeployment, machinesOfDeployment, rolloutMatters),
      // Only fills the cache, from which a drain reads the rules. A changed rule triggers no reconcile.
      watches(MachineDrainRule, () => []),
    ],
    sources: [
      clusters.source({
        map: objectsOfNodeEvent(MachinesByClusterName, byNode, nodeFacts),
        unreachableAfter: remoteConditionsGracePeriod,
      }),
      { start: (enqueue) => updates.whenExtensionsChange(enqueue) },
    ],
    concurrency,
    reconcile: (key, context) => reconcileMachine(key, { ...context, clusters, updates, nodeDeletionFailures, settings }),
  }
}

/** Accepts the changes of a Cluster that trigger a reconcile of its Machines, beside requests to retry hooks. */
const clusterMatters = whenChanged((cluster: Cluster) => ({
  paused: cluster.spec.paused ?? false,
  isDeleting: isDeleting(cluster),
  infrastructureProvisioned: cluster.status?.initialization?.infrastructureProvisioned ?? false,
  controlPlaneInitialized: getCondition(cluster, 'ControlPlaneInitialized')?.status === 'True',
}))

/**
 * Accepts changes of the fields that determine whether a Machine is up to date, and whether its Node gets the taint for an outdated
 * revision.
 */
const rolloutMatters = whenChanged((set: MachineSet | MachineDeployment) => ({
  template: set.spec.template.spec,
  rolloutAfter: (set as MachineDeployment).spec.rollout?.after,
  revision: set.metadata.annotations?.[RevisionAnnotation],
  deployment: set.metadata.labels?.[MachineDeploymentNameLabel],
}))

const machinesOfDeployment = ({ metadata }: MachineDeployment, cache: Cache): ObjectKey[] =>
  cache.byIndex(byDeployment, keyText(keyOf({ metadata }))).map(keyOf)

/** Fields of a Node whose changes trigger a reconcile of its Machine. The times of heartbeats are not among them. */
const nodeFacts = ({ metadata, spec, status }: Node) => ({
  uid: metadata.uid,
  labels: metadata.labels,
  annotations: metadata.annotations,
  providerID: spec?.providerID,
  taints: spec?.taints,
  nodeInfo: status?.nodeInfo,
  conditions: status?.conditions?.map(({ type, status, message }) => [type, status, message]),
})

const byMachineSet: Index<Machine> = {
  name: 'machine by MachineSet',
  kind: Machine,
  values(machine) {
    const owner = controllerOf(machine)
    return owner?.kind === MachineSet.kind ? [`${machine.metadata.namespace}/${owner.name}`] : []
  },
}

const byDeployment = indexByLabel(Machine, MachineDeploymentNameLabel)

const byNode: Index<Machine> = {
  name: 'machine by Node',
  kind: Machine,
  values: ({ metadata, spec, status }) =>
    nodeIndexValues(
      { namespace: metadata.namespace!, name: spec.clusterName },
      { name: status?.nodeRef?.name, providerID: spec.providerID },
    ),
}
