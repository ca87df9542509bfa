import { dnsLabelProblems, type FieldError, forbidden, invalid, required, type Work } from '@capstan/kube'
import type { BuiltinKind } from '../builtin-kind.ts'
import { oneOf, problems } from '../checks.ts'
import { atMostHundredPercent, intOrPercentErrors, nonNegative, notAbove, notDecremented, numberOf } from '../counts.ts'
import { usableSelector } from '../pod-names.ts'
import { same } from '../same.ts'
import { ageColumn, column, containerColumns, nameColumn, number } from '../columns.ts'
import { persistentvolumeclaims } from '../core/volume.ts'
import { defaultPodTemplate } from '../pod/defaults.ts'
import { validatePodTemplate } from '../pod/spec.ts'
import type {
  PersistentVolumeClaim,
  PodTemplateSpec,
  StatefulSet,
  StatefulSetSpec,
  StatefulSetStatus,
  StatefulSetUpdateStrategy,
} from '../schemas/types.ts'
import { longRunningErrors, replicasScale, requiredSelectorErrors, templateLabelErrors } from './replicas.ts'
import { templateWarnings } from '../pod/warnings.ts'

/** Upstream: pkg/apis/apps and pkg/registry/apps/statefulset, v1.36. */
export const statefulsets: BuiltinKind<StatefulSet> = {
  generation: true,
  names: dnsLabelProblems,
  scale: replicasScale,
  columns: [
    nameColumn,
    column('Ready', (o) => `${number(o, 'status', 'readyReplicas')}/${number(o, 'spec', 'replicas')}`),
    ageColumn,
    ...containerColumns(),
  ],
  default({ spec }) {
    defaultPodTemplate(spec.template)
    spec.podManagementPolicy ||= 'OrderedReady'
    for (const claim of spec.volumeClaimTemplates ?? []) defaultClaimTemplate(claim)
    const strategy = spec.updateStrategy
    if (!strategy.type) {
      strategy.type = 'RollingUpdate'
      strategy.rollingUpdate ??= {}
    }
    if (strategy.type === 'RollingUpdate' && strategy.rollingUpdate) strategy.rollingUpdate.partition ??= 0
    spec.persistentVolumeClaimRetentionPolicy ??= {}
    spec.persistentVolumeClaimRetentionPolicy.whenDeleted ||= 'Retain'
    spec.persistentVolumeClaimRetentionPolicy.whenScaled ||= 'Retain'
    spec.replicas ??= 1
    spec.revisionHistoryLimit ??= 10
  },
  prepare({ spec: { updateStrategy } }, old) {
    // As upstream, drops maxUnavailable if the stored object does not have it: MaxUnavailableStatefulSet is off by default in v1.36.
    if (old?.spec.updateStrategy.rollingUpdate?.maxUnavailable === undefined) delete updateStrategy.rollingUpdate?.maxUnavailable
  },
  warnings: (set, old) => [
    ...templateWarnings('spec.template', set.spec.template, set, old),
    ...((set.spec.revisionHistoryLimit ?? 0) < 0
      ? ['spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended']
      : []),
  ],
  *validate({ spec, status }, old, { subresource }) {
    if (subresource === 'status') return status ? statusErrors(status, old?.status) : []
    return [...(yield* specErrors(spec, old?.spec)), ...(old ? updateErrors(spec, old.spec) : [])]
  },
}

function* specErrors(spec: StatefulSetSpec, old: StatefulSetSpec | undefined): Work<FieldError[]> {
  const { selector, template, podManagementPolicy: policy, serviceName } = spec
  const retention = spec.persistentVolumeClaimRetentionPolicy
  const retentionPolicies = ['Retain', 'Delete']
  const isUsable = !selector || usableSelector(selector) !== undefined
  return [
    ...(policy === 'OrderedReady' || policy === 'Parallel'
      ? []
      : [invalid('spec.podManagementPolicy', policy, "must be 'OrderedReady' or 'Parallel'")]),
    ...strategyErrors(spec.updateStrategy),
    ...oneOf('spec.persistentVolumeClaimRetentionPolicy.whenDeleted', retention?.whenDeleted, retentionPolicies),
    ...oneOf('spec.persistentVolumeClaimRetentionPolicy.whenScaled', retention?.whenScaled, retentionPolicies),
    ...(old ? [] : claimErrors(spec)),
    ...nonNegative('spec', spec, 'replicas', 'minReadySeconds'),
    ...(spec.ordinals ? nonNegative('spec.ordinals', spec.ordinals, 'start') : []),
    // serviceName is immutable, so updates may keep names that older servers did not validate.
    ...(old || serviceName === '' ? [] : problems('spec.serviceName', serviceName, dnsLabelProblems(serviceName))),
    ...requiredSelectorErrors(selector, 'statefulset'),
    ...(isUsable
      ? [...templateLabelErrors(selector, template), ...(yield* validatePodTemplate('spec.template', withClaimVolumes(spec)))]
      : [invalid('spec.selector', selector, '')]),
    ...longRunningErrors(template, 'StatefulSet'),
  ]
}

/** Sets apiVersion, kind and defaults of a claim template, as for a complete object. */
function defaultClaimTemplate(claim: PersistentVolumeClaim): void {
  claim.kind ??= 'PersistentVolumeClaim'
  claim.apiVersion ??= 'v1'
  persistentvolumeclaims.default!(claim, undefined)
}

function claimErrors({ volumeClaimTemplates = [] }: StatefulSetSpec): FieldError[] {
  return volumeClaimTemplates.flatMap(({ spec }, index) => {
    const path = `spec.volumeClaimTemplates[${index}].spec`
    return [
      ...(spec.accessModes?.length ? [] : [required(`${path}.accessModes`, 'at least 1 access mode is required')]),
      ...(spec.resources?.requests?.storage === undefined ? [required(`${path}.resources[storage]`)] : []),
    ]
  })
}

function strategyErrors({ type, rollingUpdate }: StatefulSetUpdateStrategy): FieldError[] {
  const path = 'spec.updateStrategy.rollingUpdate'
  if (type === 'OnDelete') {
    // Upstream prints its Go struct.
    const badValue = rollingUpdate && {
      Partition: rollingUpdate.partition ?? 0,
      MaxUnavailable: rollingUpdate.maxUnavailable ?? null,
    }
    return badValue ? [invalid(path, badValue, "only allowed for updateStrategy 'RollingUpdate'")] : []
  }
  if (type !== 'RollingUpdate') {
    const badValue = { Type: type, RollingUpdate: rollingUpdate ?? null }
    return [invalid('spec.updateStrategy', badValue, "must be 'RollingUpdate' or 'OnDelete'")]
  }
  const maxUnavailable = rollingUpdate?.maxUnavailable
  return [
    ...(rollingUpdate ? nonNegative(path, rollingUpdate, 'partition') : []),
    ...intOrPercentErrors(`${path}.maxUnavailable`, maxUnavailable),
    ...(maxUnavailable !== undefined && numberOf(maxUnavailable) === 0
      ? [invalid(`${path}.maxUnavailable`, maxUnavailable, 'cannot be 0')]
      : []),
    ...atMostHundredPercent(`${path}.maxUnavailable`, maxUnavailable),
  ]
}

/**
 * Returns the template with a volume for each claim template, as the controller adds them to pods, and without hostname and
 * subdomain, which the controller sets.
 */
function withClaimVolumes({ template, volumeClaimTemplates = [] }: StatefulSetSpec): PodTemplateSpec {
  const { hostname: _hostname, subdomain: _subdomain, ...spec } = template.spec
  const claimNames = volumeClaimTemplates.map(({ metadata: { name } }) => name)
  if (claimNames.length === 0) return { ...template, spec }
  const names = new Set(claimNames)
  const otherVolumes = (spec.volumes ?? []).filter(({ name }) => !names.has(name))
  const volumes = claimNames.map((name) => ({ name, persistentVolumeClaim: { claimName: name } }))
  return { ...template, spec: { ...spec, volumes: [...volumes, ...otherVolumes] } }
}

const mutableFields = [
  'replicas',
  'template',
  'updateStrategy',
  'minReadySeconds',
  'ordinals',
  'revisionHistoryLimit',
  'persistentVolumeClaimRetentionPolicy',
] as const

function updateErrors(spec: StatefulSetSpec, old: StatefulSetSpec): FieldError[] {
  const immutableFields = (from: StatefulSetSpec): object => {
    const fields: Partial<StatefulSetSpec> = { ...from }
    for (const name of mutableFields) delete fields[name]
    return fields
  }
  const text =
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
  return same(immutableFields(spec), immutableFields(old)) ? [] : [forbidden('spec', text)]
}

function statusErrors(status: StatefulSetStatus, old: StatefulSetStatus | undefined): FieldError[] {
  return [
    ...nonNegative(
      'status',
      status,
      'replicas',
      'readyReplicas',
      'currentReplicas',
      'updatedReplicas',
      'availableReplicas',
      'observedGeneration',
      'collisionCount',
    ),
    ...notAbove(
      'status',
      status,
      'replicas',
      ['readyReplicas', 'currentReplicas', 'updatedReplicas', 'availableReplicas'],
      'cannot be greater than status.replicas',
    ),
    ...notAbove('status', status, 'readyReplicas', ['availableReplicas'], 'cannot be greater than status.readyReplicas'),
    ...notDecremented('status.collisionCount', status.collisionCount, old?.collisionCount),
  ]
}
