/**
 * The kind ClusterResourceSetBinding, which records whether the resources of ClusterResourceSets were applied to one Cluster.
 * Upstream: api/addons/v1beta2/clusterresourcesetbinding_types.go, v1.14.
 */
import type { Infer, ObjectOf } from '@capstan/kube'
import { column, defineKind, s } from '@capstan/kube'
import { olderVersions } from '../../conversion/older-versions.ts'
import { ageColumn } from '../../core/v1beta2/shared/columns.ts'
import { coreLabels } from '../../core/v1beta2/shared/core-labels.ts'
import { shortText } from '../../core/v1beta2/shared/limits.ts'
import { clusterResourceSetBindingErrors } from './admission/cluster-resource-set-binding.ts'
import { resourceReferenceFields } from './cluster-resource-set.ts'

const resourceBinding = s
  .object({
    ...resourceReferenceFields,
    applied: s.boolean().doc('Whether all objects of the resource were applied.'),
    hash: s.string(shortText).optional().doc('Hash of the content at the last attempt; absent if the content could not be read.'),
    lastAppliedTime: s
      .timestamp()
      .optional()
      .doc('Time of the last attempt to apply the resource; of the first attempt if several in a row failed with the same hash.'),
  })
  .doc('Whether and when the objects in one Secret or ConfigMap were applied to the Cluster.')
export interface ResourceBinding extends Infer<typeof resourceBinding> {}

const resourceSetBinding = s
  .object({
    clusterResourceSetName: s.string({ minLength: 1, maxLength: 253 }).doc('Name of the ClusterResourceSet.'),
    resources: s
      .list(resourceBinding, { maxItems: 100 })
      .atomic()
      .optional()
      .doc('State of the resources of the ClusterResourceSet.'),
  })
  .doc('State of the resources of one ClusterResourceSet in the Cluster.')
export interface ResourceSetBinding extends Infer<typeof resourceSetBinding> {}

const clusterResourceSetBindingSpec = s.object({
  clusterName: s.string({ minLength: 1, maxLength: 63 }).doc('Name of the Cluster. It cannot change.'),
  bindings: s
    .list(resourceSetBinding, { maxItems: 100 })
    .atomic()
    .optional()
    .doc('The ClusterResourceSets that have selected the Cluster, with the state of their resources.'),
})
export interface ClusterResourceSetBindingSpec extends Infer<typeof clusterResourceSetBindingSpec> {}

export const ClusterResourceSetBinding = defineKind({
  group: 'addons.cluster.x-k8s.io',
  version: 'v1beta2',
  kind: 'ClusterResourceSetBinding',
  plural: 'clusterresourcesetbindings',
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'Records which resources of which ClusterResourceSets were applied to the Cluster of the same name.',
  spec: clusterResourceSetBindingSpec,
  columns: [column('Cluster', '.spec.clusterName', { description: 'Cluster' }), ageColumn],
  labels: coreLabels,
  versions: olderVersions('addons.cluster.x-k8s.io', 'ClusterResourceSetBinding'),
  validate: clusterResourceSetBindingErrors,
})
export interface ClusterResourceSetBinding extends ObjectOf<typeof ClusterResourceSetBinding> {
  spec: ClusterResourceSetBindingSpec
}
