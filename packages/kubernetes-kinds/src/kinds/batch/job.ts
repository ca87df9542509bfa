import {
  dnsLabelProblems,
  type FieldError,
  humanDuration,
  invalid,
  labelValueProblems,
  required,
  type UnknownObject,
  type Work,
} from '@capstan/kube'
import type { BuiltinKind } from '../builtin-kind.ts'
import { labelSelector } from '../checks.ts'
import { ageColumn, at, column, containerColumns, list, nameColumn, number, selectorColumn, text } from '../columns.ts'
import { podNameWarnings, usableSelector } from '../pod-names.ts'
import { immutable, inOrder, same, printedSelector } from '../same.ts'
import type { Job, JobCondition, JobSpec, PodTemplateSpec } from '../schemas/types.ts'
import { defaultJobTemplate, jobSpecErrors } from './job-spec.ts'
import { statusErrors } from './job-status.ts'
import { templateWarnings } from '../pod/warnings.ts'

const nameLabels = ['job-name', 'batch.kubernetes.io/job-name']
const uidLabels = ['controller-uid', 'batch.kubernetes.io/controller-uid']

/** Upstream: pkg/apis/batch and pkg/registry/batch/job, v1.36. */
export const jobs: BuiltinKind<Job> = {
  generation: true,
  orphanWarning:
    'child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning',
  selectableFields: { 'status.successful': (o) => String(number(o, 'status', 'succeeded')) },
  unknownFieldSelector: (field) => `field label ${JSON.stringify(field)} not supported for Job`,
  columns: [
    nameColumn,
    column('Status', stateOf),
    column('Completions', completions),
    column('Duration', duration),
    ageColumn,
    ...containerColumns(),
    selectorColumn((o) => at(o, 'spec', 'selector')),
  ],
  default(job) {
    const { spec } = job
    defaultJobTemplate(spec)
    if (spec.completions === undefined && spec.parallelism === undefined) spec.completions = 1
    spec.parallelism ??= 1
    spec.backoffLimit ??= spec.backoffLimitPerIndex === undefined ? 6 : 2 ** 31 - 1
    spec.completionMode ??= 'NonIndexed'
    spec.suspend ??= false
    spec.podReplacementPolicy ??= spec.podFailurePolicy ? 'Failed' : 'TerminatingOrFailed'
    spec.manualSelector ??= false
    copyPodLabels(job)
  },
  prepare(job, old, { subresource }) {
    if (subresource !== undefined || old || job.spec.manualSelector) return
    const { metadata, spec } = job
    const labels = { ...spec.template.metadata.labels }
    for (const key of nameLabels) labels[key] ??= metadata.name
    for (const key of uidLabels) labels[key] ??= metadata.uid!
    spec.template.metadata.labels = labels
    // Label that identifies the pods of this job.
    const uidLabel = 'batch.kubernetes.io/controller-uid'
    spec.selector = { ...spec.selector, matchLabels: inOrder({ [uidLabel]: metadata.uid!, ...spec.selector?.matchLabels })! }
    // The labels of the template include the name of the job. If the name is not a valid label value, validation reports it for the
    // template, and the labels are not copied to the job.
    if (labelValueProblems(metadata.name).length === 0) copyPodLabels(job)
  },
  warnings: (job, old) => [
    ...(old ? [] : podNameWarnings(job)),
    ...templateWarnings('spec.template', job.spec.template, job, old),
  ],
  *validate(job, old, { subresource }) {
    if (subresource === 'status') return statusErrors(job, old!)
    const { metadata, spec } = job
    const errors = [...generatedErrors(job), ...(yield* specErrors(spec)), ...hostnameErrors(metadata.name, spec)]
    // Upstream validates the spec of an update twice, and lists its errors twice.
    return old ? [...errors, ...(yield* specErrors(spec)), ...updateErrors(spec, old)] : errors
  },
}

/** Copies the labels of the pod template to a job without labels. */
function copyPodLabels({ metadata, spec }: Job): void {
  const podLabels = spec.template.metadata.labels
  if (podLabels && Object.keys(metadata.labels ?? {}).length === 0) metadata.labels = { ...podLabels }
}

function stateOf(job: UnknownObject): string {
  const hasCondition = (type: string) =>
    list<JobCondition>(job, 'status', 'conditions').some((condition) => condition.type === type && condition.status === 'True')
  if (hasCondition('Complete')) return 'Complete'
  if (hasCondition('Failed')) return 'Failed'
  if (job.metadata.deletionTimestamp !== undefined) return 'Terminating'
  return ['Suspended', 'FailureTarget', 'SuccessCriteriaMet'].find(hasCondition) ?? 'Running'
}

function completions(job: UnknownObject): string {
  const succeeded = number(job, 'status', 'succeeded')
  if (at(job, 'spec', 'completions') !== undefined) return `${succeeded}/${number(job, 'spec', 'completions')}`
  const parallelism = number(job, 'spec', 'parallelism')
  return `${succeeded}/1${parallelism > 1 ? ` of ${parallelism}` : ''}`
}

function duration(job: UnknownObject, now: number): string {
  const [start, end] = [text(job, 'status', 'startTime'), text(job, 'status', 'completionTime')]
  return start === '' ? '' : humanDuration((end === '' ? now : Date.parse(end)) - Date.parse(start))
}

/** Returns errors for missing or wrong generated labels of the template, and for a selector that does not match the generated labels. */
function generatedErrors({ metadata, spec }: Job): FieldError[] {
  const { selector, template } = spec
  if (spec.manualSelector || !selector) return []
  const path = 'spec.template.metadata'
  const expected: { [key: string]: string } = {}
  for (const key of nameLabels) expected[key] = metadata.name
  for (const key of uidLabels) expected[key] = metadata.uid!
  const labels = template.metadata.labels ?? {}
  const order = [uidLabels[0]!, nameLabels[0]!, uidLabels[1]!, nameLabels[1]!]
  const errors = order.flatMap((key) => {
    if (labels[key] === undefined) return [required(`${path}.labels`, `must be '${expected[key]}'`)]
    const labelPath = `${path}.labels[${key}]`
    return labels[key] === expected[key] ? [] : [invalid(labelPath, inOrder(labels), `must be '${expected[key]}'`)]
  })
  if (usableSelector(selector)?.matches(expected) === false) {
    errors.push(invalid('spec.selector', printedSelector(selector), '`selector` not auto-generated'))
  }
  return errors
}

function* specErrors(spec: JobSpec): Work<FieldError[]> {
  const { selector, template } = spec
  const { labels } = template.metadata
  return [
    ...(yield* jobSpecErrors('spec', spec)),
    ...(selector ? labelSelector('spec.selector', selector) : [required('spec.selector')]),
    ...(usableSelector(selector)?.matches(labels) === false
      ? [invalid('spec.template.metadata.labels', inOrder(labels), '`selector` does not match template `labels`')]
      : []),
  ]
}

/** Validates the hostnames of an indexed job's pods, which consist of the name of the job and the index. */
function hostnameErrors(name: string, { completionMode, completions: count = 0 }: JobSpec): FieldError[] {
  if (completionMode !== 'Indexed' || count <= 0) return []
  const longest = `${name}-${count - 1}`
  const text = `will not able to create pod with invalid DNS label: ${longest}`
  return dnsLabelProblems(longest).length === 0 ? [] : [invalid('metadata.name', name, text)]
}

function updateErrors(spec: JobSpec, { spec: old, status }: Job): FieldError[] {
  const immutableFields = ['completionMode', 'podFailurePolicy', 'backoffLimitPerIndex', 'managedBy', 'successPolicy'] as const
  const isMutable = old.suspend === true && status.startTime === undefined && (status.active ?? 0) === 0
  return [
    ...completionErrors(spec, old),
    ...immutable('spec.selector', printedSelector(spec.selector), old.selector),
    ...(same(comparable(spec.template, isMutable), comparable(old.template, isMutable))
      ? []
      : [invalid(isMutable ? 'spec.template.spec' : 'spec.template', spec.template, 'field is immutable')]),
    ...immutableFields.flatMap((name) => immutable(`spec.${name}`, spec[name], old[name])),
  ]
}

function completionErrors(spec: JobSpec, old: JobSpec): FieldError[] {
  const path = 'spec.completions'
  if (spec.completionMode !== 'Indexed') return immutable(path, spec.completions, old.completions)
  if (spec.completions === old.completions || spec.completions === undefined) return []
  if (spec.completions === spec.parallelism) return []
  return [invalid(path, spec.completions, 'can only be modified in tandem with spec.parallelism')]
}

/**
 * Returns the part of a template that an update must not change. `isMutable`: the job is suspended, has not started and has no active pods,
 * so the metadata, node selector, node affinity, tolerations, scheduling gates and resources of its pods may change.
 */
function comparable(template: PodTemplateSpec, isMutable: boolean): object {
  if (!isMutable) return template
  const { nodeSelector: _n, tolerations: _t, schedulingGates: _g, affinity, ...spec } = template.spec
  const containers = spec.containers?.map((container) => ({ ...container, resources: undefined }))
  const initContainers = spec.initContainers?.map((container) => ({ ...container, resources: undefined }))
  const { nodeAffinity: _a, ...otherAffinity } = affinity ?? {}
  return { ...spec, containers, initContainers, affinity: Object.keys(otherAffinity).length > 0 ? otherAffinity : undefined }
}
