import { Cluster, Machine, MachineDeployment, MachineSet } from '@capstan/api'
import { type Cache, type Controller, watches, whenChanged } from '@capstan/controller'
import type { RuntimeClient } from '@capstan/extension'
import { controllerOf, keyOf, type ObjectKey } from '@capstan/kube'
import { hasMatchingLabels, MachineDeploymentsByClusterName, objectsOfCluster } from '../indexes.ts'
import { InPlaceDecisions } from './can-update-machine-set.ts'
import { reconcileMachineDeployment } from './reconcile.ts'

export interface MachineDeploymentControllerOptions {
  /** Client for the hook CanUpdateMachineSet; without it, Machines are not updated in place. */
  readonly runtime?: RuntimeClient
  /** Maximum number of MachineDeployments reconciled concurrently. Default: 10. */
  readonly concurrency?: number
}

/** Creates the controller of MachineDeployments, which rolls out changes of their template: it creates, scales and deletes MachineSets. */
export function createMachineDeploymentController({
  runtime,
  concurrency = 10,
}: MachineDeploymentControllerOptions = {}): Controller<MachineDeployment> {
  const inPlace = runtime && new InPlaceDecisions(runtime)
  return {
    name: 'machinedeployment',
    for: MachineDeployment,
    owns: [MachineSet],
    aggregates: [MachineSet],
    watches: [
      watches(MachineSet, machineDeploymentsOfOrphan),
      // This watch only updates the cache: the controller is notified of changes of Machines by changes of their MachineSets.
      watches(Machine, () => []),
      watches(
        Cluster,
        objectsOfCluster(MachineDeploymentsByClusterName),
        inPlace ? inPlace.retries.orRetryRequest(clusterMatters) : clusterMatters,
      ),
    ],
    sources: inPlace ? [{ start: (enqueue) => inPlace.whenExtensionsChange(enqueue) }] : [],
    concurrency,
    reconcile: (key, context) => reconcileMachineDeployment(key, { ...context, ...(inPlace ? { inPlace } : {}) }),
  }
}

/** Maps a set without controller to the deployments that may adopt it. */
function machineDeploymentsOfOrphan(set: MachineSet, cache: Cache): ObjectKey[] {
  if (controllerOf(set)) return []
  const deployments = cache.byIndex(MachineDeploymentsByClusterName, `${set.metadata.namespace}/${set.spec.clusterName}`)
  return deployments.filter(({ spec }) => hasMatchingLabels(spec.selector, set)).map(keyOf)
}

/** Accepts additions, deletions, and updates that change `spec.paused`. */
const clusterMatters = whenChanged((cluster: Cluster) => cluster.spec.paused ?? false)
