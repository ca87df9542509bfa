/**
 * The kind ClusterResourceSet, which applies objects in the Clusters that it selects.
 * Upstream: api/addons/v1beta2/clusterresourceset_types.go, v1.14.
 */
import type { Infer, ObjectOf } from '@capstan/kube'
import { column, conditionTypes, defineKind, s } from '@capstan/kube'
import { olderVersions } from '../../conversion/older-versions.ts'
import { ageColumn, pausedColumn } from '../../core/v1beta2/shared/columns.ts'
import { observedGeneration } from '../../core/v1beta2/shared/common-fields.ts'
import { coreLabels } from '../../core/v1beta2/shared/core-labels.ts'
import { labelSelector } from '../../core/v1beta2/shared/label-selector.ts'
import { legacyStatus } from '../../core/v1beta2/shared/legacy-status.ts'
import { nonEmpty } from '../../core/v1beta2/shared/limits.ts'
import { clusterResourceSetErrors, defaultClusterResourceSet } from './admission/cluster-resource-set.ts'

/** Type of the Secrets whose content a ClusterResourceSet may apply. */
export const ClusterResourceSetSecretType = 'addons.cluster.x-k8s.io/resource-set'
/**
 * Finalizer of a ClusterResourceSet. Core removes it from a ClusterResourceSet that is being deleted, after removing the ClusterResourceSet
 * from the ClusterResourceSetBindings of the Clusters that it selects.
 */
export const ClusterResourceSetFinalizer = 'addons.cluster.x-k8s.io'

export const resourceReferenceFields = {
  kind: s.enum('Secret', 'ConfigMap').doc('Kind of the object: Secret or ConfigMap.'),
  name: s.string({ minLength: 1, maxLength: 253 }).doc('Name of the object, in the namespace of the ClusterResourceSet.'),
}

const resourceReference = s
  .object(resourceReferenceFields)
  .doc('Refers to a Secret or ConfigMap whose values are manifests in YAML or JSON.')
export interface ResourceRef extends Infer<typeof resourceReference> {}

const clusterResourceSetSpec = s.object({
  clusterSelector: labelSelector.doc(
    'Selects Clusters in the namespace by their labels. It must not be empty and cannot change.',
  ),
  resources: s
    .list(resourceReference, { minItems: 1, maxItems: 100 })
    .atomic()
    .doc('Secrets and ConfigMaps whose content is applied to each selected Cluster.'),
  strategy: s
    .enum('ApplyOnce', 'Reconcile')
    .optional()
    .doc(
      'ApplyOnce (the default) applies each resource once; Reconcile applies a resource again whenever its content changes. The strategy cannot change.',
    ),
})
export interface ClusterResourceSetSpec extends Infer<typeof clusterResourceSetSpec> {}

const clusterResourceSetStatus = s.object(
  {
    conditions: s.conditions(),
    observedGeneration,
    deprecated: legacyStatus(),
  },
  nonEmpty,
)
export interface ClusterResourceSetStatus extends Infer<typeof clusterResourceSetStatus> {}

export const ClusterResourceSetConditions = conditionTypes({
  ResourcesApplied: ['Applied', 'NotApplied', 'WrongSecretType', 'InternalError'],
  Paused: ['Paused', 'NotPaused'],
})

export const ClusterResourceSet = defineKind({
  group: 'addons.cluster.x-k8s.io',
  version: 'v1beta2',
  kind: 'ClusterResourceSet',
  plural: 'clusterresourcesets',
  categories: ['cluster-api'],
  scope: 'Namespaced',
  doc: 'Applies the manifests in Secrets and ConfigMaps to every Cluster that a selector matches.',
  spec: clusterResourceSetSpec,
  status: clusterResourceSetStatus,
  columns: [
    column('Applied', '.status.conditions[?(@.type=="ResourcesApplied")].status', { description: 'Resource applied' }),
    pausedColumn,
    ageColumn,
  ],
  labels: coreLabels,
  versions: olderVersions('addons.cluster.x-k8s.io', 'ClusterResourceSet'),
  default: defaultClusterResourceSet,
  validate: clusterResourceSetErrors,
})
export interface ClusterResourceSet extends ObjectOf<typeof ClusterResourceSet> {
  spec: ClusterResourceSetSpec
  status?: ClusterResourceSetStatus
}
