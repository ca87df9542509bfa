/** Reads the current state of the only Cluster from the API server's store, and formats it. */
import {
  Cluster,
  ClusterTopologyMachineDeploymentNameLabel,
  ClusterTopologyOwnedLabel,
  Machine,
  MachineDeployment,
} from '@capstan/api'
import type { Store } from '@capstan/apiserver'
import { isDeleting, isTrue, type Kind, type KubeObject, resourceName } from '@capstan/kube'
import { LocalBootstrapConfigTemplate, LocalCluster, LocalControlPlane, LocalMachineTemplate } from '@capstan/local'

export interface ClusterState {
  readonly cluster: Cluster | undefined
  readonly infrastructure: LocalCluster | undefined
  readonly controlPlane: LocalControlPlane | undefined
  /** MachineDeployments by their name in the topology. */
  readonly deployments: ReadonlyMap<string, MachineDeployment>
  readonly machines: readonly Machine[]
  /** Templates that core cloned for the Cluster from those of its class. */
  readonly templates: readonly KubeObject[]
}

export function clusterStateIn(store: Store): ClusterState {
  const objectsOf = <T extends KubeObject>(kind: Kind<T>) => store.list(resourceName(kind)) as unknown as readonly T[]
  const owned = <T extends KubeObject>(kind: Kind<T>) => objectsOf(kind).filter(isOfTopology)
  return {
    cluster: objectsOf(Cluster)[0],
    infrastructure: owned(LocalCluster)[0],
    controlPlane: owned(LocalControlPlane)[0],
    deployments: new Map(
      objectsOf(MachineDeployment).map((object) => [
        object.metadata.labels?.[ClusterTopologyMachineDeploymentNameLabel] ?? '',
        object,
      ]),
    ),
    machines: objectsOf(Machine),
    templates: [...owned(LocalMachineTemplate), ...owned(LocalBootstrapConfigTemplate)],
  }
}

/** Whether the object was created from the class of a Cluster. */
export const isOfTopology = ({ metadata }: KubeObject): boolean => metadata.labels?.[ClusterTopologyOwnedLabel] !== undefined

/** Returns the topology name of a MachineDeployment, or of a Machine's MachineDeployment; `undefined` for a control plane Machine. */
export const deploymentOf = ({ metadata }: KubeObject): string | undefined =>
  metadata.labels?.[ClusterTopologyMachineDeploymentNameLabel]

/** Returns the Machines of a MachineDeployment, by its name in the topology; for `undefined`, those of the control plane. */
export const machinesOf = ({ machines }: ClusterState, deployment: string | undefined): readonly Machine[] =>
  machines.filter((machine) => deploymentOf(machine) === deployment)

/**
 * Formats a state, for example `control plane v1.34.0, Machine v1.34.0 | steady v1.35.0, Machine v1.34.0 (deleting) + v1.35.0`. `steady` is
 * the name of a MachineDeployment in the topology.
 */
export function clusterStateText(state: ClusterState): string {
  const { cluster, controlPlane, deployments } = state
  const machines = (deployment: string | undefined) => {
    const machineTexts = machinesOf(state, deployment).map(
      (machine) => `${machine.spec.version}${isDeleting(machine) ? ' (deleting)' : ''}`,
    )
    return machineTexts.length === 0 ? 'no Machine' : `Machine ${machineTexts.sort().join(' + ')}`
  }
  const parts = [
    ...(cluster && isDeleting(cluster) ? ['deleting'] : []),
    ...(controlPlane ? [`control plane ${controlPlane.spec.version}, ${machines(undefined)}`] : []),
    ...[...deployments]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, { spec }]) => `${name} ${spec.template.spec.version}, ${machines(name)}`),
    ...(cluster && isTrue(cluster, 'ControlPlaneInitialized') ? [] : ['not initialized']),
  ]
  return parts.join(' | ')
}
