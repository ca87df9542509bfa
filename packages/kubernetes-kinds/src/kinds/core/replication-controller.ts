import { appendAll, equal, type FieldError, forbidden, invalid, notSupported, required } from '@capstan/kube'
import type { BuiltinKind } from '../builtin-kind.ts'
import { nonNegative, notAbove } from '../counts.ts'
import { ageColumn, at, column, containerColumns, nameColumn, number, pairs, wide } from '../columns.ts'
import { defaultPodTemplate } from '../pod/defaults.ts'
import { validatePodTemplate } from '../pod/spec.ts'
import { templateWarnings } from '../pod/warnings.ts'
import type { ReplicationController } from '../schemas/types.ts'
import { podNameWarnings } from '../pod-names.ts'

export const replicationcontrollers: BuiltinKind<ReplicationController> = {
  generation: true,
  scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas', labelSelectorPath: '.spec.selector' },
  selectableFields: { 'status.replicas': (o) => String(number(o, 'status', 'replicas')) },
  columns: [
    nameColumn,
    column('Desired', (o) => number(o, 'spec', 'replicas'), { type: 'integer' }),
    column('Current', (o) => number(o, 'status', 'replicas'), { type: 'integer' }),
    column('Ready', (o) => number(o, 'status', 'readyReplicas'), { type: 'integer' }),
    ageColumn,
    ...containerColumns(),
    wide('Selector', (o) => pairs(at(o, 'spec', 'selector'))),
  ],
  default({ metadata, spec }) {
    spec.replicas ??= 1
    const labels = spec.template?.metadata.labels
    if (labels) {
      if (Object.keys(spec.selector ?? {}).length === 0) spec.selector = labels
      if (Object.keys(metadata.labels ?? {}).length === 0) metadata.labels = labels
    }
    defaultPodTemplate(spec.template)
  },
  // On update, upstream returns the warnings of the old template.
  warnings: (controller, old) => [
    ...(old ? [] : podNameWarnings(controller)),
    ...templateWarnings('spec.template', (old ?? controller).spec.template, controller, old),
  ],
  prepare(controller, old) {
    if (!old) controller.status = { replicas: 0 }
  },
  *validate({ spec, status }, old, { subresource }) {
    if (subresource === 'status') return statusErrors(status)
    const { selector = {}, template } = spec
    const errors: FieldError[] = nonNegative('spec', spec, 'minReadySeconds')
    if (Object.keys(selector).length === 0) errors.push(required('spec.selector'))
    appendAll(errors, nonNegative('spec', spec, 'replicas'))
    if (!template) return [...errors, required('spec.template')]
    const labels = template.metadata.labels ?? {}
    if (!equal({ ...labels, ...selector }, labels)) {
      errors.push(invalid('spec.template.metadata.labels', labels, '`selector` does not match template `labels`'))
    }
    appendAll(errors, yield* validatePodTemplate('spec.template', template))
    if (template.spec.restartPolicy !== 'Always') {
      errors.push(notSupported('spec.template.spec.restartPolicy', template.spec.restartPolicy, ['Always']))
    }
    if (template.spec.activeDeadlineSeconds !== undefined) {
      const text = 'activeDeadlineSeconds in ReplicationController is not Supported'
      errors.push(forbidden('spec.template.spec.activeDeadlineSeconds', text))
    }
    return errors
  },
}

const ReplicaCounts = ['fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'] as const

function statusErrors(status: ReplicationController['status']): FieldError[] {
  return [
    ...nonNegative('status', status, 'replicas', ...ReplicaCounts, 'observedGeneration'),
    ...notAbove('status', status, 'replicas', ReplicaCounts, 'cannot be greater than status.replicas'),
    ...notAbove('status', status, 'readyReplicas', ['availableReplicas'], 'cannot be greater than readyReplicas'),
  ]
}
