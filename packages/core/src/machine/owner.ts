import { Cluster, ClusterNameLabel, MachineControlPlaneNameLabel, MachinePoolNameLabel, MachineSetNameLabel } from '@capstan/api'
import { proceed } from '@capstan/controller'
import { controllerOf, ensureOwnerReference, ownerOfKind, ownerReference } from '@capstan/kube'
import type { MachinePhase } from './scope.ts'

/** Adds the label with the Cluster's name to the Machine, and makes the Cluster its owner unless another object created the Machine. */
export const owner: MachinePhase = async ({ machine, cluster }) => {
  const { metadata, spec } = machine
  metadata.labels = { ...metadata.labels, [ClusterNameLabel]: spec.clusterName }
  const isOwned = controllerOf(machine) !== undefined || ownerOfKind(machine, Cluster) !== undefined
  const hasCreatorLabel = CreatorLabels.some((label) => metadata.labels?.[label] !== undefined)
  if (!isOwned && !hasCreatorLabel) ensureOwnerReference(machine, ownerReference(cluster, Cluster))
  return proceed()
}

/**
 * Labels of Machines that a MachineSet, MachinePool or control plane created. The Cluster does not become the owner of such a Machine, even
 * while the owner reference to its creator is missing, for example after a restore from a backup.
 */
const CreatorLabels = [MachineSetNameLabel, MachinePoolNameLabel, MachineControlPlaneNameLabel]
