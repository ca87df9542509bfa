import {
  Cluster,
  ClusterTopologyUpgradeStepAnnotation,
  Machine,
  MachineDeployment,
  MachineDeploymentNameLabel,
  MachineSet,
  RevisionAnnotation,
} from '@capstan/api'
import { type Cache, type Controller, type Index, type Predicate, watches, whenChanged } from '@capstan/controller'
import { controllerOf, equal, keyOf, keyText, type ObjectKey } from '@capstan/kube'
import { hasMatchingLabels, MachineSetsByClusterName, objectsOfCluster } from '../indexes.ts'
import { reconcileMachineSet } from './reconcile.ts'
import { type MachineSetSettings, PreflightChecks } from './scope.ts'

export interface MachineSetControllerOptions extends Partial<MachineSetSettings> {
  /** Number of MachineSets reconciled concurrently; 10 by default. */
  readonly concurrency?: number
}

/** Creates the controller of MachineSets, which keeps the wanted number of Machines. It creates missing Machines from the set's templates. */
export function createMachineSetController({
  concurrency = 10,
  preflightChecks = PreflightChecks,
  gates = {},
}: MachineSetControllerOptions = {}): Controller<MachineSet> {
  return {
    name: 'machineset',
    for: MachineSet,
    owns: [Machine],
    aggregates: [Machine],
    watches: [
      watches(Machine, machineSetsOfOrphan),
      watches(MachineDeployment, machineSetsOfDeployment, deploymentMatters),
      watches(Cluster, objectsOfCluster(MachineSetsByClusterName), clusterMatters),
    ],
    concurrency,
    reconcile: (key, context) => reconcileMachineSet(key, { ...context, settings: { preflightChecks, gates } }),
  }
}

/** Maps a Machine without controller to the sets that may adopt it. */
function machineSetsOfOrphan(machine: Machine, cache: Cache): ObjectKey[] {
  if (controllerOf(machine)) return []
  const sets = cache.byIndex(MachineSetsByClusterName, `${machine.metadata.namespace}/${machine.spec.clusterName}`)
  return sets.filter(({ spec }) => hasMatchingLabels(spec.selector, machine)).map(keyOf)
}

const machineSetsOfDeployment = (deployment: MachineDeployment, cache: Cache): ObjectKey[] =>
  cache.byIndex(byDeployment, keyText(keyOf(deployment))).map(keyOf)

const byDeployment: Index<MachineSet> = {
  name: 'MachineSet by MachineDeployment',
  kind: MachineSet,
  values({ metadata }) {
    const name = metadata.labels?.[MachineDeploymentNameLabel]
    return name === undefined ? [] : [`${metadata.namespace}/${name}`]
  },
}

/**
 * Accepts changes of the fields that the MachineSet controller reads from a MachineDeployment. Ignores changes of `spec.replicas`, which is
 * needed when `maxInFlight` is a percentage: the MachineDeployment controller then changes annotations of its sets, which triggers a reconcile.
 */
const deploymentMatters: Predicate<MachineDeployment> = ({ previous, object }) => !equal(factsOf(previous), factsOf(object))

const factsOf = (deployment: MachineDeployment | undefined) => [
  deployment?.metadata.annotations?.[RevisionAnnotation],
  deployment?.spec.remediation?.maxInFlight,
]

/** Accepts changes of the Cluster fields on which MachineSets depend: pausing, and the inputs of preflight checks. */
const clusterMatters = whenChanged((cluster: Cluster) => ({
  paused: cluster.spec.paused ?? false,
  controlPlaneRef: cluster.spec.controlPlaneRef,
  version: cluster.spec.topology?.version,
  step: cluster.metadata.annotations?.[ClusterTopologyUpgradeStepAnnotation],
}))
