import {
  Cluster,
  ClusterNameLabel,
  Machine,
  MachineControlPlaneLabel,
  MachineDeployment,
  MachinePool,
  MachinePoolNameLabel,
  MachineSet,
} from '@capstan/api'
import { indexByLabel, proceed } from '@capstan/controller'
import { isOwnedBy, keyOf, keyText, type KubeObject } from '@capstan/kube'
import type { ClusterPhase } from './scope.ts'

/**
 * Lists the MachineDeployments, MachinePools, MachineSets and Machines labelled with the Cluster's name. As upstream, MachinePools are not
 * listed, and so neither counted nor deleted, when their feature gate is disabled.
 */
export const descendants: ClusterPhase = async (scope, { cache, settings }) => {
  const { cluster } = scope
  const name = keyText(keyOf(cluster))
  const machines = cache.byIndex(machinesByCluster, name)
  scope.descendants = {
    machineDeployments: cache.byIndex(deploymentsByCluster, name),
    machinePools: settings.gates.MachinePool === false ? [] : cache.byIndex(poolsByCluster, name),
    machineSets: cache.byIndex(setsByCluster, name),
    controlPlaneMachines: machines.filter(isControlPlane),
    workerMachines: machines.filter((machine) => !isControlPlane(machine)),
  }
  return proceed()
}

const machinesByCluster = indexByLabel(Machine, ClusterNameLabel)
const setsByCluster = indexByLabel(MachineSet, ClusterNameLabel)
const deploymentsByCluster = indexByLabel(MachineDeployment, ClusterNameLabel)
const poolsByCluster = indexByLabel(MachinePool, ClusterNameLabel)

const isControlPlane = ({ metadata }: Machine): boolean => metadata.labels?.[MachineControlPlaneLabel] !== undefined

/** Returns a predicate for objects with an owner reference to the Cluster. A MachineSet of a MachineDeployment, for example, has none. */
export const isStandAlone =
  (cluster: Cluster) =>
  (object: KubeObject): boolean =>
    isOwnedBy(object, cluster, Cluster)

/** Excludes the Machines of MachinePools. Upstream also excludes them, because it does not implement their UpToDate condition. */
export const withoutPoolMachines = (machines: readonly Machine[]): readonly Machine[] =>
  machines.filter(({ metadata }) => metadata.labels?.[MachinePoolNameLabel] === undefined)
