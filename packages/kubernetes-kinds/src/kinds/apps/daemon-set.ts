import { type FieldError, invalid, notSupported, required, type Work } from '@capstan/kube'
import type { BuiltinKind } from '../builtin-kind.ts'
import { labelSelector } from '../checks.ts'
import { atMostHundredPercent, intOrPercentErrors, nonNegative, notDecremented, numberOf } from '../counts.ts'
import { same } from '../same.ts'
import { ageColumn, at, column, containerColumns, nameColumn, number, pairs, selectorColumn } from '../columns.ts'
import { defaultPodTemplate } from '../pod/defaults.ts'
import { validatePodTemplate } from '../pod/spec.ts'
import type { DaemonSet, DaemonSetSpec, DaemonSetStatus, DaemonSetUpdateStrategy } from '../schemas/types.ts'
import { emptySelectorErrors, immutableSelector, longRunningErrors, templateLabelErrors } from './replicas.ts'
import { podWarnings } from '../pod/warnings.ts'

/** Annotation that counts changes of the template. */
const templateGeneration = 'deprecated.daemonset.template.generation'

/** Upstream: pkg/apis/apps and pkg/registry/apps/daemonset, v1.36. */
export const daemonsets: BuiltinKind<DaemonSet> = {
  generation: true,
  columns: [
    nameColumn,
    column('Desired', (o) => number(o, 'status', 'desiredNumberScheduled'), { type: 'integer' }),
    column('Current', (o) => number(o, 'status', 'currentNumberScheduled'), { type: 'integer' }),
    column('Ready', (o) => number(o, 'status', 'numberReady'), { type: 'integer' }),
    column('Up-to-date', (o) => number(o, 'status', 'updatedNumberScheduled'), { type: 'integer' }),
    column('Available', (o) => number(o, 'status', 'numberAvailable'), { type: 'integer' }),
    column('Node Selector', (o) => pairs(at(o, 'spec', 'template', 'spec', 'nodeSelector'))),
    ageColumn,
    ...containerColumns(),
    selectorColumn((o) => at(o, 'spec', 'selector')),
  ],
  default({ metadata, spec }) {
    // Every DaemonSet has this annotation.
    metadata.annotations = { [templateGeneration]: '0', ...metadata.annotations }
    defaultPodTemplate(spec.template)
    spec.revisionHistoryLimit ??= 10
    const strategy = spec.updateStrategy
    strategy.type ||= 'RollingUpdate'
    if (strategy.type !== 'RollingUpdate') return
    strategy.rollingUpdate ??= {}
    strategy.rollingUpdate.maxUnavailable ??= 1
    strategy.rollingUpdate.maxSurge ??= 0
  },
  prepare(set, old, { subresource }) {
    if (subresource === 'status') return
    const oldGeneration = Number(old?.metadata.annotations?.[templateGeneration] ?? 0)
    const isChanged = !old || !same(set.spec.template, old.spec.template)
    set.metadata.annotations = { ...set.metadata.annotations, [templateGeneration]: String(oldGeneration + (isChanged ? 1 : 0)) }
  },
  // The annotation changes only with the template.
  warnings: ({ metadata: { annotations }, spec: { template } }, old) =>
    annotations?.[templateGeneration] === old?.metadata.annotations?.[templateGeneration]
      ? []
      : podWarnings('spec.template', template),
  *validate({ spec, status }, old, { subresource }) {
    if (subresource === 'status') return status ? statusErrors(status, old?.status) : []
    return [...(old ? immutableSelector(spec.selector, old.spec.selector) : []), ...(yield* specErrors(spec))]
  },
}

function* specErrors(spec: DaemonSetSpec): Work<FieldError[]> {
  const { selector, template } = spec
  return [
    ...labelSelector('spec.selector', selector),
    ...templateLabelErrors(selector, template),
    ...(selector ? emptySelectorErrors(selector, 'daemonset') : []),
    ...(yield* validatePodTemplate('spec.template', template)),
    ...longRunningErrors(template, 'DaemonSet'),
    ...nonNegative('spec', spec, 'minReadySeconds'),
    ...strategyErrors(spec.updateStrategy),
    ...nonNegative('spec', spec, 'revisionHistoryLimit'),
  ]
}

function strategyErrors({ type, rollingUpdate }: DaemonSetUpdateStrategy): FieldError[] {
  if (type === 'OnDelete') return []
  if (type !== 'RollingUpdate') {
    // Upstream prints its Go struct.
    const badValue = { Type: type, RollingUpdate: rollingUpdate ?? null }
    return [notSupported('spec.updateStrategy', badValue, ['RollingUpdate', 'OnDelete'])]
  }
  const path = 'spec.updateStrategy.rollingUpdate'
  const { maxSurge, maxUnavailable } = rollingUpdate ?? {}
  const [allowsSurge, allowsUnavailable] = [numberOf(maxSurge) !== 0, numberOf(maxUnavailable) !== 0]
  return [
    ...intOrPercentErrors(`${path}.maxUnavailable`, maxUnavailable),
    ...intOrPercentErrors(`${path}.maxSurge`, maxSurge),
    ...atMostHundredPercent(`${path}.maxUnavailable`, maxUnavailable),
    ...atMostHundredPercent(`${path}.maxSurge`, maxSurge),
    ...(allowsSurge && allowsUnavailable
      ? [invalid(`${path}.maxSurge`, maxSurge, 'may not be set when maxUnavailable is non-zero')]
      : []),
    ...(!allowsSurge && !allowsUnavailable ? [required(`${path}.maxUnavailable`, 'cannot be 0 when maxSurge is 0')] : []),
  ]
}

function statusErrors(status: DaemonSetStatus, old: DaemonSetStatus | undefined): FieldError[] {
  return [
    ...nonNegative(
      'status',
      status,
      'currentNumberScheduled',
      'numberMisscheduled',
      'desiredNumberScheduled',
      'numberReady',
      'observedGeneration',
      'updatedNumberScheduled',
      'numberAvailable',
      'numberUnavailable',
      'collisionCount',
    ),
    ...notDecremented('status.collisionCount', status.collisionCount, old?.collisionCount),
  ]
}
