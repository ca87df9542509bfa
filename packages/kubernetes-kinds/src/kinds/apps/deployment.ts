import { type FieldError, forbidden, invalid, notSupported, type Work } from '@capstan/kube'
import type { BuiltinKind } from '../builtin-kind.ts'
import { atMostHundredPercent, intOrPercentErrors, nonNegative, notAbove, notDecremented, numberOf } from '../counts.ts'
import { podNameWarnings, usableSelector } from '../pod-names.ts'
import { same } from '../same.ts'
import { ageColumn, at, column, containerColumns, nameColumn, number, selectorColumn } from '../columns.ts'
import { defaultPodTemplate } from '../pod/defaults.ts'
import { validatePodTemplate } from '../pod/spec.ts'
import type { Deployment, DeploymentSpec, DeploymentStatus, DeploymentStrategy } from '../schemas/types.ts'
import { immutableSelector, longRunningErrors, replicasScale, requiredSelectorErrors, templateLabelErrors } from './replicas.ts'
import { templateWarnings } from '../pod/warnings.ts'

/** Strategy of Deployments. Upstream: pkg/apis/apps and pkg/registry/apps/deployment, v1.36. */
export const deployments: BuiltinKind<Deployment> = {
  // Changes of annotations also increase the generation, because annotations are copied to the ReplicaSets of the Deployment.
  generation: (deployment, old) => !same(deployment.metadata.annotations, old.metadata.annotations),
  scale: replicasScale,
  columns: [
    nameColumn,
    column('Ready', (o) => `${number(o, 'status', 'readyReplicas')}/${number(o, 'spec', 'replicas')}`),
    column('Up-to-date', (o) => number(o, 'status', 'updatedReplicas')),
    column('Available', (o) => number(o, 'status', 'availableReplicas')),
    ageColumn,
    ...containerColumns(),
    selectorColumn((o) => at(o, 'spec', 'selector')),
  ],
  default({ spec }) {
    defaultPodTemplate(spec.template)
    spec.replicas ??= 1
    spec.revisionHistoryLimit ??= 10
    spec.progressDeadlineSeconds ??= 600
    const { strategy } = spec
    strategy.type ||= 'RollingUpdate'
    if (strategy.type !== 'RollingUpdate') return
    strategy.rollingUpdate ??= {}
    strategy.rollingUpdate.maxUnavailable ??= '25%'
    strategy.rollingUpdate.maxSurge ??= '25%'
  },
  subresourceWrites: {
    status(deployment, old) {
      deployment.spec = old.spec
      const { labels } = old.metadata
      if (labels) deployment.metadata.labels = labels
      else delete deployment.metadata.labels
    },
  },
  warnings: (deployment, old) => [
    ...(old ? [] : podNameWarnings(deployment)),
    ...templateWarnings('spec.template', deployment.spec.template, deployment, old),
  ],
  *validate({ spec, status }, old, { subresource }) {
    if (subresource === 'status') return statusErrors(status, old?.status)
    return [...(yield* specErrors(spec)), ...(old ? immutableSelector(spec.selector, old.spec.selector) : [])]
  },
}

function* specErrors(spec: DeploymentSpec): Work<FieldError[]> {
  const { selector, template, progressDeadlineSeconds: deadline, minReadySeconds = 0 } = spec
  const isUsable = !selector || usableSelector(selector) !== undefined
  return [
    ...nonNegative('spec', spec, 'replicas'),
    ...requiredSelectorErrors(selector, 'deployment'),
    ...(isUsable
      ? [
          ...templateLabelErrors(selector, template),
          ...(yield* validatePodTemplate('spec.template', template)),
          // Upstream's text names a ReplicaSet also for a Deployment.
          ...longRunningErrors(template, 'ReplicaSet'),
        ]
      : [invalid('spec.selector', selector, 'invalid label selector')]),
    ...strategyErrors(spec.strategy),
    ...nonNegative('spec', spec, 'minReadySeconds', 'revisionHistoryLimit', 'progressDeadlineSeconds'),
    ...(deadline !== undefined && deadline <= minReadySeconds
      ? [invalid('spec.progressDeadlineSeconds', deadline, 'must be greater than minReadySeconds')]
      : []),
  ]
}

function strategyErrors({ type, rollingUpdate }: DeploymentStrategy): FieldError[] {
  const path = 'spec.strategy.rollingUpdate'
  if (type === 'Recreate') {
    return rollingUpdate ? [forbidden(path, "may not be specified when strategy `type` is 'Recreate'")] : []
  }
  if (type !== 'RollingUpdate') {
    // Upstream prints its Go struct.
    const badValue = { Type: type, RollingUpdate: rollingUpdate ?? null }
    return [notSupported('spec.strategy', badValue, ['Recreate', 'RollingUpdate'])]
  }
  const { maxSurge, maxUnavailable } = rollingUpdate ?? {}
  return [
    ...intOrPercentErrors(`${path}.maxUnavailable`, maxUnavailable),
    ...intOrPercentErrors(`${path}.maxSurge`, maxSurge),
    ...(numberOf(maxUnavailable) === 0 && numberOf(maxSurge) === 0
      ? [invalid(`${path}.maxUnavailable`, maxUnavailable, 'may not be 0 when `maxSurge` is 0')]
      : []),
    ...atMostHundredPercent(`${path}.maxUnavailable`, maxUnavailable),
  ]
}

function statusErrors(status: DeploymentStatus, old: DeploymentStatus | undefined): FieldError[] {
  return [
    ...nonNegative(
      'status',
      status,
      'observedGeneration',
      'replicas',
      'updatedReplicas',
      'readyReplicas',
      'availableReplicas',
      'unavailableReplicas',
      'terminatingReplicas',
      'collisionCount',
    ),
    ...notAbove(
      'status',
      status,
      'replicas',
      ['updatedReplicas', 'readyReplicas', 'availableReplicas'],
      'cannot be greater than status.replicas',
    ),
    ...notAbove('status', status, 'readyReplicas', ['availableReplicas'], 'cannot be greater than readyReplicas'),
    ...notDecremented('status.collisionCount', status.collisionCount, old?.collisionCount),
  ]
}
