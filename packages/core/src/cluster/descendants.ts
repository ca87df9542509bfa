import { Cluster, ClusterNameLabel, Machine, MachineControlPlaneLabel, MachineDeployment, MachineSet } from '@capstan/api'
import { type Cache, proceed } from '@capstan/controller'
import { isOwnedBy, type Kind, type KubeObject } from '@capstan/kube'
import type { ClusterPhase } from './scope.ts'

/** Finds everything that carries the Cluster's name. */
export const descendants: ClusterPhase = async (scope, { cache }) => {
  const { cluster } = scope
  const machines = await labelled(cache, Machine, cluster)
  scope.descendants = {
    machineDeployments: await labelled(cache, MachineDeployment, cluster),
    machineSets: await labelled(cache, MachineSet, cluster),
    controlPlaneMachines: machines.filter(isControlPlane),
    workerMachines: machines.filter((machine) => !isControlPlane(machine)),
  }
  return proceed()
}

async function labelled<T extends KubeObject>(cache: Cache, kind: Kind<T>, { metadata }: Cluster): Promise<T[]> {
  const labelSelector = `${ClusterNameLabel}=${metadata.name}`
  return (await cache.list(kind, { namespace: metadata.namespace!, labelSelector })).items
}

const isControlPlane = ({ metadata }: Machine): boolean => metadata.labels?.[MachineControlPlaneLabel] !== undefined

/** Owned by the Cluster itself, not by something in between. */
export const isStandAlone =
  (cluster: Cluster) =>
  (object: KubeObject): boolean =>
    isOwnedBy(object, cluster, Cluster)
