import { Cluster, ClusterNameLabel } from '@capstan/api'
import { proceed } from '@capstan/controller'
import { ensureOwnerReference, ownerReference } from '@capstan/kube'
import type { MachinePoolPhase } from './scope.ts'

/** Adds the label with the Cluster's name to the pool, and makes the Cluster its owner. */
export const owner: MachinePoolPhase = async ({ machinePool, cluster }) => {
  const { metadata, spec } = machinePool
  metadata.labels = { ...metadata.labels, [ClusterNameLabel]: spec.clusterName }
  ensureOwnerReference(machinePool, ownerReference(cluster, Cluster))
  return proceed()
}
