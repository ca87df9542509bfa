import { Cluster, ClusterNameLabel, MachineControlPlaneNameLabel, MachinePoolNameLabel, MachineSetNameLabel } from '@capstan/api'
import { proceed } from '@capstan/controller'
import { controllerOf, ensureOwnerReference, ownerOfKind, ownerReference } from '@capstan/kube'
import type { MachinePhase } from './scope.ts'

/**
 * Adds the label with the Cluster's name to the Machine, and makes the Cluster its owner unless the Machine has a controller or one of the
 * `CreatorLabels`.
 */
export const owner: MachinePhase = async ({ machine, cluster }) => {
  const { metadata, spec } = machine
  metadata.labels = { ...metadata.labels, [ClusterNameLabel]: spec.clusterName }
  const isOwned = controllerOf(machine) !== undefined || ownerOfKind(machine, Cluster) !== undefined
  const hasCreatorLabel = CreatorLabels.some((label) => metadata.labels?.[label] !== undefined)
  if (!isOwned && !hasCreatorLabel) ensureOwnerReference(machine, ownerReference(cluster, Cluster))
  return proceed()
}

/**
 * Labels that a MachineSet, MachinePool or control plane sets on its Machines. The Cluster does not become the owner of a Machine with such a
 * label, even while the controller reference of the Machine is missing, for example after a restore from a backup.
 */
const CreatorLabels = [MachineSetNameLabel, MachinePoolNameLabel, MachineControlPlaneNameLabel]
