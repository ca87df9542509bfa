import { Cluster, ClusterNameLabel } from '@capstan/api'
import { proceed } from '@capstan/controller'
import { ensureOwnerReference, ownerReference } from '@capstan/kube'
import type { MachineDeploymentPhase } from './scope.ts'

/** Adds the label with the Cluster's name to the deployment, and makes the Cluster its owner. */
export const owner: MachineDeploymentPhase = async ({ machineDeployment, cluster }) => {
  const { metadata, spec } = machineDeployment
  metadata.labels = { ...metadata.labels, [ClusterNameLabel]: spec.clusterName }
  ensureOwnerReference(machineDeployment, ownerReference(cluster, Cluster))
  return proceed()
}
