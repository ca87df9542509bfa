import { ageText, type FieldError, invalid, notSupported, required, type Work } from '@capstan/kube'
import type { BuiltinKind } from '../builtin-kind.ts'
import { oneOf } from '../checks.ts'
import { ageColumn, at, column, containerColumns, list, nameColumn, orNone, selectorColumn, text } from '../columns.ts'
import { nonNegative } from '../counts.ts'
import { podNameWarnings } from '../pod-names.ts'
import type { CronJob, CronJobSpec, JobTemplateSpec } from '../schemas/types.ts'
import { defaultJobTemplate, jobSpecErrors } from './job-spec.ts'
import { scheduleProblem } from './schedule.ts'
import { templateWarnings } from '../pod/warnings.ts'

/** Maximum length of a CronJob's name. The name of each of its Jobs consists of this name and the scheduled minute. */
const MaxName = 52

/** Upstream: pkg/apis/batch and pkg/registry/batch/cronjob, v1.36. */
export const cronjobs: BuiltinKind<CronJob> = {
  generation: true,
  columns: [
    nameColumn,
    column('Schedule', (o) => text(o, 'spec', 'schedule')),
    column('Timezone', (o) => orNone(text(o, 'spec', 'timeZone'))),
    column('Suspend', (o) => (at(o, 'spec', 'suspend') === true ? 'True' : 'False'), { type: 'boolean' }),
    column('Active', (o) => list(o, 'status', 'active').length, { type: 'integer' }),
    column('Last Schedule', (o, now) => {
      const last = text(o, 'status', 'lastScheduleTime')
      return last === '' ? '<none>' : ageText(last, now)
    }),
    ageColumn,
    ...containerColumns('spec', 'jobTemplate', 'spec', 'template'),
    selectorColumn((o) => at(o, 'spec', 'jobTemplate', 'spec', 'selector')),
  ],
  default({ spec }) {
    defaultJobTemplate(spec.jobTemplate.spec)
    spec.concurrencyPolicy ||= 'Allow'
    spec.suspend ??= false
    spec.successfulJobsHistoryLimit ??= 3
    spec.failedJobsHistoryLimit ??= 1
  },
  warnings(cronJob, old) {
    const { template } = cronJob.spec.jobTemplate.spec
    const templateTexts = templateWarnings('spec.jobTemplate.spec.template', template, cronJob, old)
    if (!old) return [...podNameWarnings(cronJob), ...templateTexts]
    const text =
      'cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details'
    return cronJob.spec.schedule.includes('TZ') ? [...templateTexts, text] : templateTexts
  },
  *validate({ metadata: { name }, spec }, old, { subresource }) {
    if (subresource === 'status') return []
    return [
      ...(yield* specErrors(spec, old?.spec)),
      ...(!old && name.length > MaxName ? [invalid('metadata.name', name, `must be no more than ${MaxName} characters`)] : []),
    ]
  },
}

function* specErrors(spec: CronJobSpec, old: CronJobSpec | undefined): Work<FieldError[]> {
  return [
    ...(spec.schedule === '' ? [required('spec.schedule')] : scheduleErrors(spec, old)),
    ...nonNegative('spec', spec, 'startingDeadlineSeconds'),
    ...(old && old.timeZone === spec.timeZone ? [] : timeZoneErrors('spec.timeZone', spec.timeZone)),
    ...oneOf('spec.concurrencyPolicy', spec.concurrencyPolicy, ['Allow', 'Forbid', 'Replace']),
    ...(yield* templateErrors('spec.jobTemplate.spec', spec.jobTemplate)),
    ...nonNegative('spec', spec, 'successfulJobsHistoryLimit', 'failedJobsHistoryLimit'),
  ]
}

function scheduleErrors({ schedule, timeZone }: CronJobSpec, old: CronJobSpec | undefined): FieldError[] {
  const problem = scheduleProblem(schedule)
  const errors = problem === undefined ? [] : [invalid('spec.schedule', schedule, problem)]
  if (!schedule.includes('TZ')) return errors
  // A stored schedule that contains a time zone may keep it.
  if (!old?.schedule.includes('TZ')) {
    const text = 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead'
    errors.push(invalid('spec.schedule', schedule, text))
  } else if (timeZone !== undefined) {
    errors.push(invalid('spec.schedule', schedule, 'cannot use both timeZone field and TZ or CRON_TZ in schedule'))
  }
  return errors
}

function timeZoneErrors(path: string, zone: string | undefined): FieldError[] {
  if (zone === undefined) return []
  if (zone === '') return [invalid(path, zone, 'timeZone must be nil or non-empty string')]
  const unknown = [invalid(path, zone, `unknown time zone ${zone}`)]
  const isPart = (part: string) => /^[A-Za-z.\-_0-9+]{1,14}$/.test(part) && !/^(\.\.?$|-)/.test(part)
  if (!zone.split('/').every(isPart)) return unknown
  if (zone.toLowerCase() === 'local') {
    const text = 'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones'
    return [invalid(path, zone, text)]
  }
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone })
    return []
  } catch {
    return unknown
  }
}

function* templateErrors(path: string, { spec }: JobTemplateSpec): Work<FieldError[]> {
  return [
    ...(yield* jobSpecErrors(path, spec)),
    ...(spec.selector ? [invalid(`${path}.selector`, spec.selector, '`selector` will be auto-generated')] : []),
    ...(spec.manualSelector ? [notSupported(`${path}.manualSelector`, true, ['nil', 'false'])] : []),
  ]
}
