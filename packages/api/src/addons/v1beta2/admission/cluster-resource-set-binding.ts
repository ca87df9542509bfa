/** Rules of ClusterResourceSetBindings beyond their schema. Upstream: core/webhooks/admission/clusterresourcesetbinding.go, v1.14. */
import type { AdmissionContext, FieldError, KubeObject } from '@capstan/kube'
import { invalid } from '@capstan/kube'
import type { ClusterResourceSetBindingSpec } from '../cluster-resource-set-binding.ts'

type BindingLike = KubeObject & { spec: ClusterResourceSetBindingSpec }

export const clusterResourceSetBindingErrors = (
  { spec }: BindingLike,
  { oldObject }: AdmissionContext<BindingLike>,
): FieldError[] =>
  oldObject?.spec.clusterName && oldObject.spec.clusterName !== spec.clusterName
    ? [invalid('spec.clusterName', spec.clusterName, 'field is immutable')]
    : []
