import { Cluster, Machine, MachineDeployment, MachineSet, RetryHooksAnnotation } from '@capstan/api'
import { type Cache, type Controller, type Index, watches, whenChanged } from '@capstan/controller'
import type { RuntimeClient } from '@capstan/extension'
import { controllerOf, isDeleting, keyOf, keyText, labelSelector, type ObjectKey } from '@capstan/kube'
import { InPlaceDecisions } from './can-update-machine-set.ts'
import { reconcileMachineDeployment } from './reconcile.ts'

export interface MachineDeploymentControllerOptions {
  /** Asked whether Machines can be updated in place; without it they are replaced. */
  readonly runtime?: RuntimeClient
  /** MachineDeployments reconciled at once. */
  readonly concurrency?: number
}

/** Reconciles MachineDeployments: rolls their template out over Machines, one MachineSet per template. */
export function createMachineDeploymentController({
  runtime,
  concurrency = 10,
}: MachineDeploymentControllerOptions = {}): Controller<MachineDeployment> {
  const inPlace = runtime && new InPlaceDecisions(runtime)
  return {
    name: 'machinedeployment',
    for: MachineDeployment,
    owns: [MachineSet],
    watches: [
      watches(MachineSet, machineDeploymentsOfOrphan),
      // Read for conditions; what changes in a Machine comes by way of its MachineSet.
      watches(Machine, () => []),
      watches(Cluster, (cluster, cache) => cache.byIndex(byCluster, keyText(keyOf(cluster))).map(keyOf), clusterMatters),
    ],
    sources: inPlace ? [{ start: (enqueue) => inPlace.whenExtensionsChange(enqueue) }] : [],
    concurrency,
    reconcile: (key, context) => reconcileMachineDeployment(key, { ...context, ...(inPlace ? { inPlace } : {}) }),
  }
}

/** Deployments that may take in a set which nobody controls. */
function machineDeploymentsOfOrphan(set: MachineSet, cache: Cache): ObjectKey[] {
  if (controllerOf(set)) return []
  const { namespace, labels } = set.metadata
  const deployments = cache.byIndex(byCluster, `${namespace}/${set.spec.clusterName}`)
  return deployments.filter(({ spec }) => labelSelector(spec.selector).matches(labels)).map(keyOf)
}

const byCluster: Index<MachineDeployment> = {
  name: 'MachineDeployment by Cluster',
  kind: MachineDeployment,
  values: ({ metadata, spec }) => [`${metadata.namespace}/${spec.clusterName}`],
}

/** Whether it is paused or going, and that somebody wants extensions to be asked again. */
const clusterMatters = whenChanged((cluster: Cluster) => ({
  paused: cluster.spec.paused ?? false,
  isDeleting: isDeleting(cluster),
  retryHooks: cluster.metadata.annotations?.[RetryHooksAnnotation],
}))
