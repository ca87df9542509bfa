import { equal, type FieldError, forbidden, invalid, notSupported, required } from '@capstan/kube'
import type { BuiltinKind } from '../builtin-kind.ts'
import { notNegative } from '../checks.ts'
import { ageColumn, at, column, containerColumns, nameColumn, number, pairs, wide } from '../columns.ts'
import { defaultPodTemplate } from '../pod/defaults.ts'
import { validatePodTemplate } from '../pod/spec.ts'
import { templateWarnings } from '../pod/warnings.ts'
import type { ReplicationController } from '../schemas/types.ts'
import { podNameWarnings } from '../pod-names.ts'

export const replicationcontrollers: BuiltinKind<ReplicationController> = {
  generation: true,
  scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas', labelSelectorPath: '.spec.selector' },
  fields: { 'status.replicas': (o) => String(number(o, 'status', 'replicas')) },
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
  // Upstream looks at the template that was there before.
  warnings: (controller, old) => [
    ...(old ? [] : podNameWarnings(controller)),
    ...templateWarnings('spec.template', (old ?? controller).spec.template, controller, old),
  ],
  prepare(controller, old) {
    if (!old) controller.status = { replicas: 0 }
  },
  validate({ spec, status }, old, { subresource }) {
    if (subresource === 'status') return statusErrors(status)
    const { selector = {}, template, replicas, minReadySeconds } = spec
    const errors: FieldError[] = notNegative('spec.minReadySeconds', minReadySeconds)
    if (Object.keys(selector).length === 0) errors.push(required('spec.selector'))
    errors.push(...notNegative('spec.replicas', replicas))
    if (!template) return [...errors, required('spec.template')]
    const labels = template.metadata.labels ?? {}
    if (!equal({ ...labels, ...selector }, labels)) {
      errors.push(invalid('spec.template.metadata.labels', labels, '`selector` does not match template `labels`'))
    }
    errors.push(...validatePodTemplate('spec.template', template))
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

function statusErrors(status: ReplicationController['status']): FieldError[] {
  const errors: FieldError[] = []
  const counts = ['replicas', 'fullyLabeledReplicas', 'readyReplicas', 'availableReplicas', 'observedGeneration'] as const
  for (const member of counts) errors.push(...notNegative(`status.${member}`, status[member]))
  for (const member of ['fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'] as const) {
    if ((status[member] ?? 0) > status.replicas) {
      errors.push(invalid(`status.${member}`, status[member], 'cannot be greater than status.replicas'))
    }
  }
  if ((status.availableReplicas ?? 0) > (status.readyReplicas ?? 0)) {
    errors.push(invalid('status.availableReplicas', status.availableReplicas, 'cannot be greater than readyReplicas'))
  }
  return errors
}
