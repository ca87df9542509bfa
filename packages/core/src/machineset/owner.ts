import {
  Cluster,
  ClusterNameLabel,
  MachineDeployment,
  MachineDeploymentNameLabel,
  type MachineSet,
  type MachineTemplateSpec,
} from '@capstan/api'
import { proceed } from '@capstan/controller'
import { ensureOwnerReference, ownerOfKind, ownerReference } from '@capstan/kube'
import type { MachineSetPhase } from './scope.ts'

/**
 * Adds the label with the Cluster's name to the set, its selector and its template. A set that belongs to no MachineDeployment also gets an
 * owner reference to the Cluster.
 */
export const owner: MachineSetPhase = async ({ machineSet, cluster }) => {
  const { metadata, spec } = machineSet
  metadata.labels = { ...metadata.labels, [ClusterNameLabel]: spec.clusterName }
  spec.selector.matchLabels = { ...spec.selector.matchLabels, [ClusterNameLabel]: spec.clusterName }
  spec.template.metadata = withClusterLabel(spec.template, spec.clusterName)
  if (isStandAlone(machineSet)) ensureOwnerReference(machineSet, ownerReference(cluster, Cluster))
  return proceed()
}

const withClusterLabel = (
  { metadata }: MachineTemplateSpec,
  clusterName: string,
): NonNullable<MachineTemplateSpec['metadata']> => ({
  ...metadata,
  labels: { ...metadata?.labels, [ClusterNameLabel]: clusterName },
})

/**
 * Whether the set belongs to no MachineDeployment. As upstream, also checks the label, because the owner reference may be missing for
 * a while after a restore from a backup.
 */
const isStandAlone = (machineSet: MachineSet): boolean =>
  machineSet.metadata.labels?.[MachineDeploymentNameLabel] === undefined && !ownerOfKind(machineSet, MachineDeployment)
