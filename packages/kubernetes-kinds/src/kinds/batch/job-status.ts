/** Validates status updates of a job: its conditions must be consistent with the other fields. Upstream: validateJobStatus, v1.36. */
import { appendAll, equal, type FieldError, invalid, required } from '@capstan/kube'
import { nonNegative } from '../counts.ts'
import { invalidWithoutValue } from '../same.ts'
import type { Job, JobStatus } from '../schemas/types.ts'
import { commonIndex, countIndexes } from './indexes.ts'

const hasCondition = ({ conditions = [] }: JobStatus, type: string): boolean =>
  conditions.some((condition) => condition.type === type && condition.status === 'True')
const isFinished = (status: JobStatus): boolean => hasCondition(status, 'Complete') || hasCondition(status, 'Failed')

/** Validates a status update. Most rules apply only when the update changes one of the fields that the rule checks. */
export function statusErrors({ spec, status }: Job, { status: old }: Job): FieldError[] {
  const changed = (...names: (keyof JobStatus)[]) => names.some((name) => !equal(status[name] ?? null, old[name] ?? null))
  const changes = (type: string) => hasCondition(status, type) !== hasCondition(old, type)
  const finishedChanges = isFinished(status) !== isFinished(old)
  const { completionTime, startTime, active = 0, ready, terminating = 0 } = status
  const [complete, failed] = [hasCondition(status, 'Complete'), hasCondition(status, 'Failed')]
  const errors = nonNegative('status', status, 'active', 'succeeded', 'failed', 'ready', 'terminating')
  const addConditionError = (text: string) => errors.push(invalidWithoutValue('status.conditions', text))

  if ((changes('Complete') || changes('Failed')) && complete && failed) {
    addConditionError('cannot set Complete=True and Failed=true conditions')
  }
  if ((changes('Complete') || changes('FailureTarget')) && complete && hasCondition(status, 'FailureTarget')) {
    addConditionError('cannot set Complete=True and FailureTarget=true conditions')
  }
  if (changes('Complete') || changed('completionTime')) {
    if (completionTime !== undefined && !complete) {
      const text = 'cannot set completionTime when there is no Complete=True condition'
      errors.push(invalid('status.completionTime', completionTime, text))
    }
    if (completionTime === undefined && complete) {
      errors.push(required('status.completionTime', 'completionTime is required for Complete jobs'))
    }
  }
  if (changed('startTime', 'completionTime') && startTime && completionTime && completionTime < startTime) {
    errors.push(invalid('status.completionTime', completionTime, 'must be equal to or after `startTime`'))
  }
  if ((changes('Failed') || changed('failedIndexes')) && failed && !hasCondition(status, 'FailureTarget')) {
    addConditionError('cannot set Failed=True condition without the FailureTarget=true condition')
  }
  if ((changes('Complete') || changes('SuccessCriteriaMet')) && complete && !hasCondition(status, 'SuccessCriteriaMet')) {
    addConditionError('cannot set Complete=True condition without the SuccessCriteriaMet=true condition')
  }
  if ((finishedChanges || changed('active')) && active > 0 && isFinished(status)) {
    errors.push(invalid('status.active', active, 'active>0 is invalid for finished job'))
  }
  const neverStarts = spec.suspend === true && spec.completions === 0
  if ((finishedChanges || changed('startTime')) && !neverStarts && startTime === undefined && isFinished(status)) {
    errors.push(required('status.startTime', 'startTime is required for finished job'))
  }
  appendAll(errors, indexErrors(spec, status, changed))
  if ((finishedChanges || changed('terminating')) && terminating > 0 && isFinished(status)) {
    errors.push(invalid('status.terminating', terminating, 'terminating>0 is invalid for finished job'))
  }
  if (changed('ready', 'active') && ready !== undefined && ready > active) {
    errors.push(invalid('status.ready', ready, 'cannot set more ready pods than active'))
  }
  if (hasCondition(status, 'SuccessCriteriaMet')) {
    if (failed) addConditionError('cannot set SuccessCriteriaMet=True and Failed=true conditions')
    if (hasCondition(status, 'FailureTarget'))
      addConditionError('cannot set SuccessCriteriaMet=True and FailureTarget=true conditions')
  }
  return [...errors, ...transitionErrors(spec, status, old)]
}

function indexErrors(
  { completions, completionMode, backoffLimitPerIndex }: Job['spec'],
  { completedIndexes = '', failedIndexes }: JobStatus,
  changed: (...names: (keyof JobStatus)[]) => boolean,
): FieldError[] {
  const errors: FieldError[] = []
  const check = (field: 'completedIndexes' | 'failedIndexes', text: string) => {
    const counted = countIndexes(text, completions!)
    if (typeof counted !== 'number') errors.push(invalid(`status.${field}`, text, `error parsing ${field}: ${counted.error}`))
  }
  if (changed('completedIndexes')) {
    if (completions !== undefined) check('completedIndexes', completedIndexes)
    if (completedIndexes !== '' && completionMode !== 'Indexed') {
      const text = 'cannot set non-empty completedIndexes when non-indexed completion mode'
      errors.push(invalid('status.completedIndexes', completedIndexes, text))
    }
  }
  if (changed('failedIndexes') && failedIndexes !== undefined) {
    if (completions !== undefined && backoffLimitPerIndex !== undefined) check('failedIndexes', failedIndexes)
    if (backoffLimitPerIndex === undefined) {
      const text = 'cannot set non-null failedIndexes when backoffLimitPerIndex is null'
      errors.push(invalid('status.failedIndexes', failedIndexes, text))
    }
  }
  if (changed('completedIndexes', 'failedIndexes') && failedIndexes !== undefined && completions !== undefined) {
    const common = commonIndex(completedIndexes, failedIndexes, completions)
    if (common !== undefined) {
      const text = `failedIndexes and completedIndexes overlap at index: ${common}`
      errors.push(invalid('status.failedIndexes', failedIndexes, text))
    }
  }
  return errors
}

function transitionErrors(spec: Job['spec'], status: JobStatus, old: JobStatus): FieldError[] {
  const errors: FieldError[] = []
  for (const type of ['Failed', 'Complete', 'FailureTarget']) {
    if (hasCondition(old, type) && !hasCondition(status, type)) {
      errors.push(invalidWithoutValue('status.conditions', `cannot disable the terminal ${type}=True condition`))
    }
  }
  const mayShrink = spec.completionMode === 'Indexed' && spec.completions === spec.parallelism
  const requireNoDecrease = (name: 'failed' | 'succeeded') => {
    if ((status[name] ?? 0) >= (old[name] ?? 0)) return
    errors.push(invalid(`status.${name}`, status[name], `cannot decrease the ${name} counter`))
  }
  requireNoDecrease('failed')
  if (!mayShrink) requireNoDecrease('succeeded')
  if (status.completionTime && old.completionTime && status.completionTime !== old.completionTime) {
    errors.push(invalid('status.completionTime', status.completionTime, 'field is immutable'))
  }
  const resumes = hasCondition(old, 'Suspended') && !hasCondition(status, 'Suspended')
  if (old.startTime && old.startTime !== status.startTime && !resumes && spec.suspend !== true) {
    errors.push(invalid('status.startTime', status.startTime, 'field is immutable for unsuspended job once set'))
  }
  if (hasCondition(old, 'SuccessCriteriaMet') && !hasCondition(status, 'SuccessCriteriaMet')) {
    errors.push(invalidWithoutValue('status.conditions', 'cannot disable the SuccessCriteriaMet=True condition'))
  }
  return errors
}
