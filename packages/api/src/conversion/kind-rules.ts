/** Conversion rules for whole objects, in addition to the rules for their Go types. Upstream: core/webhooks/conversion, v1.14. */
import type { ObjectMeta } from '@capstan/kube'
import { ClusterNameLabel } from '../core/well-known.ts'
import { type KindRule, withoutAnnotation } from './convert.ts'

const machineInitialization = ['bootstrapDataSecretCreated', 'infrastructureProvisioned'].map(
  (name) => `status.initialization.${name}`,
)

/**
 * Annotation of an IPAddressClaim of v1alpha1. The value `false` means that the object of v1beta2 does not have the label
 * `cluster.x-k8s.io/cluster-name`.
 */
const ClusterNameLabelSet = 'conversion.cluster.x-k8s.io/cluster-name-label-set'

/** Rules by kind and older version. */
export const kindRules: { readonly [kindAndVersion: string]: KindRule } = {
  'Cluster v1beta1': {
    keepsData: true,
    zeros: ['spec.paused', 'status.initialization.controlPlaneInitialized', 'status.initialization.infrastructureProvisioned'],
  },
  'ClusterClass v1beta1': {
    keepsData: true,
    zeros: [
      'spec.patches[name].definitions[].selector.matchResources.infrastructureCluster',
      'spec.patches[name].definitions[].selector.matchResources.controlPlane',
      'spec.variables[name].schema.openAPIV3Schema.{schema}',
      'status.variables[name].definitionsConflict',
      'status.variables[name].definitions[from].schema.openAPIV3Schema.{schema}',
    ],
  },
  'Machine v1beta1': {
    keepsData: true,
    zeros: machineInitialization,
    restores: ['spec.minReadySeconds', 'status.phase', 'status.failureDomain'],
  },
  'MachineDeployment v1beta1': { keepsData: true, zeros: ['spec.paused'] },
  'MachinePool v1beta1': { keepsData: true, zeros: machineInitialization },
  'MachineHealthCheck v1beta1': {
    keepsData: true,
    zeros: ['status.expectedMachines', 'status.currentHealthy', 'status.remediationsAllowed'],
  },
  'IPAddressClaim v1alpha1': {
    keepsData: true,
    restores: ['status.conditions'],
    metadataUp(metadata, stored) {
      if (!metadata.labels) return metadata
      const name = metadata.labels[ClusterNameLabel]
      if (name) stored.spec = { ...(stored.spec as object), clusterName: name }
      const wasSet = metadata.annotations?.[ClusterNameLabelSet]
      if (wasSet === undefined) return metadata
      const plain = withoutAnnotation(metadata, ClusterNameLabelSet)
      return wasSet === 'false' ? withoutClusterName(plain) : plain
    },
    metadataDown(metadata, { spec }) {
      const { clusterName } = (spec ?? {}) as { clusterName?: string }
      if (!clusterName) return metadata
      const labels = { ...metadata.labels, [ClusterNameLabel]: clusterName }
      if (metadata.labels && ClusterNameLabel in metadata.labels) return { ...metadata, labels }
      return { ...metadata, labels, annotations: { ...metadata.annotations, [ClusterNameLabelSet]: 'false' } }
    },
  },
}

function withoutClusterName({ labels = {}, ...metadata }: ObjectMeta): ObjectMeta {
  const otherLabels = Object.entries(labels).filter(([name]) => name !== ClusterNameLabel)
  return otherLabels.length === 0 ? metadata : { ...metadata, labels: Object.fromEntries(otherLabels) }
}
