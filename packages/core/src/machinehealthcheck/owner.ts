import { Cluster, ClusterNameLabel } from '@capstan/api'
import { proceed } from '@capstan/controller'
import { ensureOwnerReference, ownerReference } from '@capstan/kube'
import type { MachineHealthCheckPhase } from './scope.ts'

/** Adds the label with the Cluster's name to the MachineHealthCheck, and makes the Cluster its owner. */
export const owner: MachineHealthCheckPhase = async ({ healthCheck, cluster }) => {
  const { metadata, spec } = healthCheck
  metadata.labels = { ...metadata.labels, [ClusterNameLabel]: spec.clusterName }
  ensureOwnerReference(healthCheck, ownerReference(cluster, Cluster))
  return proceed()
}
