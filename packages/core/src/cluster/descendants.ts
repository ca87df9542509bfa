import { Cluster, ClusterNameLabel, Machine, MachineControlPlaneLabel, MachineDeployment, MachineSet } from '@capstan/api'
import { type Index, proceed } from '@capstan/controller'
import { isOwnedBy, type Kind, keyOf, keyText, type KubeObject } from '@capstan/kube'
import type { ClusterPhase } from './scope.ts'

/** Finds everything that carries the Cluster's name. */
export const descendants: ClusterPhase = async (scope, { cache }) => {
  const { cluster } = scope
  const name = keyText(keyOf(cluster))
  const machines = cache.byIndex(machinesByCluster, name)
  scope.descendants = {
    machineDeployments: cache.byIndex(deploymentsByCluster, name),
    machineSets: cache.byIndex(setsByCluster, name),
    controlPlaneMachines: machines.filter(isControlPlane),
    workerMachines: machines.filter((machine) => !isControlPlane(machine)),
  }
  return proceed()
}

const byCluster = <T extends KubeObject>(kind: Kind<T>): Index<T> => ({
  name: 'cluster by label',
  kind,
  values({ metadata }) {
    const name = metadata.labels?.[ClusterNameLabel]
    return name === undefined ? [] : [keyText({ namespace: metadata.namespace!, name })]
  },
})
const machinesByCluster = byCluster(Machine)
const setsByCluster = byCluster(MachineSet)
const deploymentsByCluster = byCluster(MachineDeployment)

const isControlPlane = ({ metadata }: Machine): boolean => metadata.labels?.[MachineControlPlaneLabel] !== undefined

/** Owned by the Cluster itself, not by something in between. */
export const isStandAlone =
  (cluster: Cluster) =>
  (object: KubeObject): boolean =>
    isOwnedBy(object, cluster, Cluster)
