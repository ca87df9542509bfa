/** Defaults and rules of ClusterResourceSets beyond their schema. Upstream: core/webhooks/admission/clusterresourceset.go, v1.14. */
import type { AdmissionContext, FieldError, KubeObject } from '@capstan/kube'
import { equal, invalid } from '@capstan/kube'
import { isEmptySelector, printedSelector, selectorSyntaxErrors } from '../../../core/v1beta2/admission/selector.ts'
import type { ClusterResourceSetSpec } from '../cluster-resource-set.ts'

type ClusterResourceSetLike = KubeObject & { spec: ClusterResourceSetSpec }

export function defaultClusterResourceSet({ spec }: ClusterResourceSetLike): void {
  spec.strategy ||= 'ApplyOnce'
}

export function clusterResourceSetErrors(
  { spec }: ClusterResourceSetLike,
  { oldObject }: AdmissionContext<ClusterResourceSetLike>,
): FieldError[] {
  const { clusterSelector, strategy } = spec
  const before = oldObject?.spec
  return [
    ...selectorSyntaxErrors('spec.clusterSelector', clusterSelector),
    ...(isEmptySelector(clusterSelector)
      ? [invalid('spec.clusterSelector', printedSelector(clusterSelector), 'selector must not be empty')]
      : []),
    ...(before?.strategy && before.strategy !== strategy ? [invalid('spec.strategy', strategy ?? '', 'field is immutable')] : []),
    ...(before && !equal(before.clusterSelector, clusterSelector)
      ? [invalid('spec.clusterSelector', printedSelector(clusterSelector), 'field is immutable')]
      : []),
  ]
}
