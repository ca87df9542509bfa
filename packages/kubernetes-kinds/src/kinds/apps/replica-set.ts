import { type FieldError, invalid, type Work } from '@capstan/kube'
import type { BuiltinKind } from '../builtin-kind.ts'
import { nonNegative, notAbove } from '../counts.ts'
import { podNameWarnings, usableSelector } from '../pod-names.ts'
import { ageColumn, at, column, containerColumns, nameColumn, number, selectorColumn } from '../columns.ts'
import { defaultPodTemplate } from '../pod/defaults.ts'
import { validatePodTemplate } from '../pod/spec.ts'
import type { ReplicaSet, ReplicaSetSpec, ReplicaSetStatus } from '../schemas/types.ts'
import { immutableSelector, longRunningErrors, replicasScale, requiredSelectorErrors, templateLabelErrors } from './replicas.ts'
import { templateWarnings } from '../pod/warnings.ts'

/** Upstream: pkg/apis/apps and pkg/registry/apps/replicaset, v1.36. */
export const replicasets: BuiltinKind<ReplicaSet> = {
  generation: true,
  scale: replicasScale,
  columns: [
    nameColumn,
    column('Desired', (o) => number(o, 'spec', 'replicas'), { type: 'integer' }),
    column('Current', (o) => number(o, 'status', 'replicas'), { type: 'integer' }),
    column('Ready', (o) => number(o, 'status', 'readyReplicas'), { type: 'integer' }),
    ageColumn,
    ...containerColumns(),
    selectorColumn((o) => at(o, 'spec', 'selector')),
  ],
  default({ spec }) {
    defaultPodTemplate(spec.template)
    spec.replicas ??= 1
  },
  warnings: (set, old) => [
    ...(old ? [] : podNameWarnings(set)),
    ...templateWarnings('spec.template', set.spec.template, set, old),
  ],
  *validate({ spec, status }, old, { subresource }) {
    if (subresource === 'status') return status ? statusErrors(status) : []
    return [...(yield* specErrors(spec)), ...(old ? immutableSelector(spec.selector, old.spec.selector) : [])]
  },
}

function* specErrors(spec: ReplicaSetSpec): Work<FieldError[]> {
  const { selector, template } = spec
  const isUsable = !selector || usableSelector(selector) !== undefined
  return [
    ...nonNegative('spec', spec, 'replicas', 'minReadySeconds'),
    // Upstream's text names a deployment also for a ReplicaSet.
    ...requiredSelectorErrors(selector, 'deployment'),
    ...(isUsable
      ? [
          ...templateLabelErrors(selector, template),
          ...(yield* validatePodTemplate('spec.template', template)),
          ...longRunningErrors(template, 'ReplicaSet'),
        ]
      : [invalid('spec.selector', selector, 'invalid label selector')]),
  ]
}

function statusErrors(status: ReplicaSetStatus): FieldError[] {
  return [
    ...nonNegative(
      'status',
      status,
      'replicas',
      'fullyLabeledReplicas',
      'readyReplicas',
      'availableReplicas',
      'observedGeneration',
      'terminatingReplicas',
    ),
    ...notAbove(
      'status',
      status,
      'replicas',
      ['fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'],
      'cannot be greater than status.replicas',
    ),
    ...notAbove('status', status, 'readyReplicas', ['availableReplicas'], 'cannot be greater than readyReplicas'),
  ]
}
