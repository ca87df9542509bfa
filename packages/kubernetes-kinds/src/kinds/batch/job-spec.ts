/** Defaults and validation that jobs and job templates share. Upstream: pkg/apis/batch, v1.36. */
import { appendAll, duplicate, type FieldError, invalid, notSupported, required, tooLong, type Work } from '@capstan/kube'
import { oneOf, problems, qualifiedName } from '../checks.ts'
import { noMoreThan, nonNegative } from '../counts.ts'
import { domainPathProblems } from '../domain-path.ts'
import { defaultPodTemplate } from '../pod/defaults.ts'
import { validatePodTemplate } from '../pod/spec.ts'
import { invalidWithoutValue } from '../same.ts'
import type {
  JobSpec,
  PodFailurePolicyOnExitCodesRequirement as ExitCodes,
  PodFailurePolicyOnPodConditionsPattern as PodConditions,
  PodFailurePolicyRule,
  SuccessPolicyRule,
} from '../schemas/types.ts'
import { countIndexes } from './indexes.ts'

const MaxParallelismIndexed = 100_000
const MaxFailedIndexes = 100_000
/** Jobs with backoffLimitPerIndex and more completions than this have lower limits for parallelism and failed indexes. */
const ManyCompletions = 100_000
const MaxParallelismForManyCompletions = 10_000
const MaxFailedIndexesForManyCompletions = 10_000
const MaxIndexesLength = 64 * 1024

/** Sets the defaults of a Job spec that also apply in a Job template: those of the Pod template and of podFailurePolicy. */
export function defaultJobTemplate({ template, podFailurePolicy }: JobSpec): void {
  defaultPodTemplate(template)
  for (const { onPodConditions = [] } of podFailurePolicy?.rules ?? []) {
    for (const condition of onPodConditions) condition.status ||= 'True'
  }
}

/** Validates a Job spec as far as the rules also apply in a Job template. `path` is the path of the spec, such as `spec`. */
export function* jobSpecErrors(path: string, spec: JobSpec): Work<FieldError[]> {
  const { managedBy, completionMode, podFailurePolicy, successPolicy, template } = spec
  const isIndexed = completionMode === 'Indexed'
  return [
    ...nonNegative(path, spec, 'parallelism', 'completions', 'activeDeadlineSeconds', 'backoffLimit'),
    ...nonNegative(path, spec, 'ttlSecondsAfterFinished', 'backoffLimitPerIndex', 'maxFailedIndexes'),
    ...(spec.maxFailedIndexes !== undefined && spec.backoffLimitPerIndex === undefined
      ? [required(`${path}.backoffLimitPerIndex`, 'when maxFailedIndexes is specified')]
      : []),
    ...(managedBy === undefined ? [] : problems(`${path}.managedBy`, managedBy, domainPathProblems(managedBy))),
    ...((managedBy?.length ?? 0) > 63 ? [tooLong(`${path}.managedBy`, 63)] : []),
    ...(completionMode === undefined ? [] : oneOf(`${path}.completionMode`, completionMode, ['NonIndexed', 'Indexed'])),
    ...(isIndexed ? indexedErrors(path, spec) : []),
    ...(completionMode === undefined || completionMode === 'NonIndexed' ? unindexedErrors(path, spec) : []),
    ...(podFailurePolicy ? failurePolicyErrors(`${path}.podFailurePolicy.rules`, spec) : []),
    ...(successPolicy && isIndexed ? successPolicyErrors(`${path}.successPolicy.rules`, spec) : []),
    ...(successPolicy && !isIndexed
      ? [invalid(`${path}.successPolicy`, asInGo(successPolicy.rules ?? []), 'requires indexed completion mode')]
      : []),
    ...replacementErrors(`${path}.podReplacementPolicy`, spec),
    ...(yield* validatePodTemplate(`${path}.template`, template)),
    ...restartErrors(`${path}.template.spec.restartPolicy`, spec),
  ]
}

/** Returns the rules as upstream's error prints them: as the Go struct that contains them. */
const asInGo = (rules: readonly SuccessPolicyRule[]) => ({
  Rules: rules.map(({ succeededIndexes, succeededCount }) => ({
    SucceededIndexes: succeededIndexes ?? null,
    SucceededCount: succeededCount ?? null,
  })),
})

function indexedErrors(
  path: string,
  { completions, parallelism = 0, maxFailedIndexes, backoffLimitPerIndex }: JobSpec,
): FieldError[] {
  const errors: FieldError[] = []
  const addLimitError = (field: string, value: number, text: string) => errors.push(invalid(`${path}.${field}`, value, text))
  if (completions === undefined) errors.push(required(`${path}.completions`, 'when completion mode is Indexed'))
  if (parallelism > MaxParallelismIndexed) {
    addLimitError(
      'parallelism',
      parallelism,
      `must be less than or equal to ${MaxParallelismIndexed} when completion mode is Indexed`,
    )
  }
  if (maxFailedIndexes !== undefined) {
    if (completions !== undefined && maxFailedIndexes > completions) {
      addLimitError('maxFailedIndexes', maxFailedIndexes, 'must be less than or equal to completions')
    }
    if (maxFailedIndexes > MaxFailedIndexes) {
      addLimitError('maxFailedIndexes', maxFailedIndexes, `must be less than or equal to ${MaxFailedIndexes}`)
    }
  }
  if ((completions ?? 0) <= ManyCompletions || backoffLimitPerIndex === undefined) return errors
  const condition = `when completions are above ${ManyCompletions} and used with backoff limit per index`
  if (maxFailedIndexes === undefined) {
    errors.push(required(`${path}.maxFailedIndexes`, `must be specified when completions is above ${ManyCompletions}`))
  }
  if (parallelism > MaxParallelismForManyCompletions) {
    addLimitError('parallelism', parallelism, `must be less than or equal to ${MaxParallelismForManyCompletions} ${condition}`)
  }
  if (maxFailedIndexes !== undefined && maxFailedIndexes > MaxFailedIndexesForManyCompletions) {
    addLimitError(
      'maxFailedIndexes',
      maxFailedIndexes,
      `must be less than or equal to ${MaxFailedIndexesForManyCompletions} ${condition}`,
    )
  }
  return errors
}

const unindexedErrors = (path: string, spec: JobSpec): FieldError[] =>
  (['backoffLimitPerIndex', 'maxFailedIndexes'] as const).flatMap((name) =>
    spec[name] === undefined ? [] : [invalid(`${path}.${name}`, spec[name], 'requires indexed completion mode')],
  )

function replacementErrors(path: string, { podReplacementPolicy: policy, podFailurePolicy }: JobSpec): FieldError[] {
  if (policy === undefined) return []
  return oneOf(path, policy, podFailurePolicy ? ['Failed'] : ['Failed', 'TerminatingOrFailed'])
}

function restartErrors(path: string, { template, podFailurePolicy }: JobSpec): FieldError[] {
  const { restartPolicy: policy = '' } = template.spec
  if (policy === 'Always' || policy === '') return [required(path, 'valid values: "OnFailure", "Never"')]
  if (policy !== 'OnFailure' && policy !== 'Never') return [notSupported(path, policy, ['OnFailure', 'Never'])]
  if (!podFailurePolicy || policy === 'Never') return []
  return [invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
}

// Policies

const Actions = ['Count', 'FailIndex', 'FailJob', 'Ignore']
const validValues = (values: readonly string[]): string => `valid values: [${values.map((value) => `"${value}"`).join(' ')}]`

function failurePolicyErrors(path: string, { podFailurePolicy, template, backoffLimitPerIndex }: JobSpec): FieldError[] {
  const rules = podFailurePolicy?.rules ?? []
  const { containers, initContainers } = template.spec
  const names = new Set([...(containers ?? []), ...(initContainers ?? [])].map(({ name }) => name))
  return [
    ...noMoreThan(path, rules, 20),
    ...rules.flatMap((rule, index) => ruleErrors(`${path}[${index}]`, rule, names, backoffLimitPerIndex)),
  ]
}

function ruleErrors(
  path: string,
  { action, onExitCodes, onPodConditions = [] }: PodFailurePolicyRule,
  containers: ReadonlySet<string>,
  backoffLimitPerIndex: number | undefined,
): FieldError[] {
  const errors: FieldError[] = []
  if (!action) errors.push(required(`${path}.action`, validValues(Actions)))
  else if (action === 'FailIndex') {
    if (backoffLimitPerIndex === undefined) {
      errors.push(invalid(`${path}.action`, action, 'requires the backoffLimitPerIndex to be set'))
    }
  } else appendAll(errors, oneOf(`${path}.action`, action, Actions))
  if (onExitCodes) appendAll(errors, exitCodeErrors(`${path}.onExitCodes`, onExitCodes, containers))
  appendAll(errors, conditionErrors(`${path}.onPodConditions`, onPodConditions))
  if (onExitCodes && onPodConditions.length > 0) {
    errors.push(invalidWithoutValue(path, 'specifying both OnExitCodes and OnPodConditions is not supported'))
  }
  if (!onExitCodes && onPodConditions.length === 0) {
    errors.push(invalidWithoutValue(path, 'specifying one of OnExitCodes and OnPodConditions is required'))
  }
  return errors
}

function exitCodeErrors(
  path: string,
  { operator, containerName, values }: ExitCodes,
  containers: ReadonlySet<string>,
): FieldError[] {
  const errors = operator
    ? oneOf(`${path}.operator`, operator, ['In', 'NotIn'])
    : [required(`${path}.operator`, validValues(['In', 'NotIn']))]
  if (containerName !== undefined && !containers.has(containerName)) {
    const text = 'must be one of the container or initContainer names in the pod template'
    errors.push(invalid(`${path}.containerName`, containerName, text))
  }
  const codes = values ?? []
  if (codes.length === 0) errors.push(invalid(`${path}.values`, codes, 'at least one value is required'))
  else appendAll(errors, noMoreThan(`${path}.values`, codes, 255))
  const seenCodes = new Set<number>()
  for (const [index, code] of codes.entries()) {
    if (operator === 'In' && code === 0)
      errors.push(invalid(`${path}.values[${index}]`, code, 'must not be 0 for the In operator'))
    if (seenCodes.has(code)) errors.push(duplicate(`${path}.values[${index}]`, code))
    seenCodes.add(code)
  }
  if (codes.some((code, index) => index > 0 && codes[index - 1]! > code)) {
    errors.push(invalid(`${path}.values`, codes, 'must be ordered'))
  }
  return errors
}

function conditionErrors(path: string, conditions: readonly PodConditions[]): FieldError[] {
  const States = ['False', 'True', 'Unknown']
  return [
    ...noMoreThan(path, conditions, 20),
    ...conditions.flatMap(({ type, status }, index) => [
      ...qualifiedName(`${path}[${index}].type`, type),
      ...(status
        ? oneOf(`${path}[${index}].status`, status, States)
        : [required(`${path}[${index}].status`, validValues(States))]),
    ]),
  ]
}

function successPolicyErrors(path: string, { successPolicy, completions = 0 }: JobSpec): FieldError[] {
  const rules = successPolicy?.rules ?? []
  const problem = 'at least one rules must be specified when the successPolicy is specified'
  return [
    ...(rules.length === 0 ? [required(path, problem)] : []),
    ...noMoreThan(path, rules, 20),
    ...rules.flatMap((rule, index) => successRuleErrors(`${path}[${index}]`, rule, completions)),
  ]
}

function successRuleErrors(
  path: string,
  { succeededCount: count, succeededIndexes: text }: SuccessPolicyRule,
  completions: number,
): FieldError[] {
  const errors: FieldError[] = []
  if (count === undefined && text === undefined) {
    errors.push(required(path, 'at least one of succeededCount or succeededIndexes must be specified'))
  }
  let indexes = 0
  if (text !== undefined) {
    if (text.length > MaxIndexesLength) errors.push(tooLong(`${path}.succeededIndexes`, MaxIndexesLength))
    const counted = countIndexes(text, completions)
    if (typeof counted === 'number') indexes = counted
    else errors.push(invalid(`${path}.succeededIndexes`, text, `error parsing succeededIndexes: ${counted.error}`))
  }
  if (count === undefined) return errors
  const addLimitError = (maximum: number, noun: string) =>
    errors.push(invalid(`${path}.succeededCount`, count, `must be less than or equal to ${maximum} (the number of ${noun})`))
  if (count < 0) errors.push(invalid(`${path}.succeededCount`, count, 'must be greater than or equal to 0'))
  if (count > completions) addLimitError(completions, 'specified completions')
  if (text !== undefined && count > indexes) addLimitError(indexes, 'indexes in the specified succeededIndexes field')
  return errors
}
