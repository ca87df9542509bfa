import {
  Cluster,
  ClusterTopologyUpgradeStepAnnotation,
  Machine,
  MachineDeployment,
  MachineSet,
  RevisionAnnotation,
} from '@capstan/api'
import { type Cache, type Controller, type Index, type Predicate, watches, whenChanged } from '@capstan/controller'
import { controllerOf, isDeleting, keyOf, keyText, labelSelector, type ObjectKey } from '@capstan/kube'
import { byCluster } from './preflight.ts'
import { reconcileMachineSet } from './reconcile.ts'
import { type MachineSetSettings, PreflightChecks } from './scope.ts'

export interface MachineSetControllerOptions extends Partial<MachineSetSettings> {
  /** MachineSets reconciled at once. */
  readonly concurrency?: number
}

/** Reconciles MachineSets: as many Machines as wanted, each from the set's templates. */
export function createMachineSetController({
  concurrency = 10,
  preflightChecks = PreflightChecks,
}: MachineSetControllerOptions = {}): Controller<MachineSet> {
  return {
    name: 'machineset',
    for: MachineSet,
    owns: [Machine],
    watches: [
      watches(Machine, machineSetsOfOrphan),
      watches(MachineDeployment, machineSetsOfDeployment, revisionMatters),
      watches(Cluster, (cluster, cache) => cache.byIndex(byCluster, keyText(keyOf(cluster))).map(keyOf), clusterMatters),
    ],
    concurrency,
    reconcile: (key, context) => reconcileMachineSet(key, { ...context, settings: { preflightChecks } }),
  }
}

/** Sets that may take in a Machine which nobody controls. */
function machineSetsOfOrphan(machine: Machine, cache: Cache): ObjectKey[] {
  if (controllerOf(machine)) return []
  const { namespace, labels } = machine.metadata
  const sets = cache.byIndex(byCluster, `${namespace}/${machine.spec.clusterName}`)
  return sets.filter(({ spec }) => labelSelector(spec.selector).matches(labels)).map(keyOf)
}

const machineSetsOfDeployment = (deployment: MachineDeployment, cache: Cache): ObjectKey[] =>
  cache.byIndex(byDeployment, keyText(keyOf(deployment))).map(keyOf)

const byDeployment: Index<MachineSet> = {
  name: 'MachineSet by MachineDeployment',
  kind: MachineSet,
  values(machineSet) {
    const owner = controllerOf(machineSet)
    return owner?.kind === MachineDeployment.kind ? [`${machineSet.metadata.namespace}/${owner.name}`] : []
  },
}

/** What a set takes from its MachineDeployment: whether it is the current one. The rest is written on the set. */
const revisionMatters: Predicate<MachineDeployment> = ({ previous, object }) => {
  const revision = (deployment: MachineDeployment | undefined) => deployment?.metadata.annotations?.[RevisionAnnotation]
  return revision(previous) !== revision(object)
}

/** What MachineSets take from their Cluster: pausing, and what preflight checks look at. */
const clusterMatters = whenChanged((cluster: Cluster) => ({
  paused: cluster.spec.paused ?? false,
  isDeleting: isDeleting(cluster),
  controlPlaneRef: cluster.spec.controlPlaneRef,
  version: cluster.spec.topology?.version,
  step: cluster.metadata.annotations?.[ClusterTopologyUpgradeStepAnnotation],
}))
