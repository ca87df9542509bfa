/** Validates conditions. Upstream: k8s.io/apimachinery/pkg/apis/meta/v1/validation, v0.36. */
import { duplicate, type FieldError, invalid, labelKeyProblems, repeats, required, tooLong, tooMany } from '@capstan/kube'
import { oneOf, problems } from '../checks.ts'
import type { Condition } from '../schemas/types.ts'

const MaxReason = 1024
const MaxMessage = 32 * 1024

/**
 * Validates a list of conditions of an allocated device, which may have at most `max` items. `null` counts as empty: the Go field has no
 * `omitempty`, so Go clients without conditions send `null`.
 */
export function conditionErrors(field: string, list: readonly Condition[] | null | undefined, max: number): FieldError[] {
  const conditions = list ?? []
  const repeated = repeats(conditions.map(({ type }) => type))
  return [
    ...(conditions.length > max ? [tooMany(field, conditions.length, max)] : []),
    ...conditions.flatMap((condition, index) => [
      ...(repeated[index] ? [duplicate(`${field}[${index}].type`, condition.type)] : []),
      ...oneConditionErrors(`${field}[${index}]`, condition),
    ]),
  ]
}

const reasonText =
  "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"

function oneConditionErrors(field: string, condition: Condition): FieldError[] {
  const { type, status, observedGeneration: generation = 0, lastTransitionTime, reason, message } = condition
  return [
    ...problems(`${field}.type`, type, labelKeyProblems(type)),
    ...oneOf(`${field}.status`, status, ['False', 'True', 'Unknown']),
    ...(generation < 0 ? [invalid(`${field}.observedGeneration`, generation, 'must be greater than or equal to zero')] : []),
    ...(lastTransitionTime ? [] : [required(`${field}.lastTransitionTime`)]),
    ...(reason === '' ? [required(`${field}.reason`)] : []),
    ...(reason === '' || /^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/.test(reason)
      ? []
      : [invalid(`${field}.reason`, reason, reasonText)]),
    ...(Buffer.byteLength(reason) > MaxReason ? [tooLong(`${field}.reason`, MaxReason)] : []),
    ...(Buffer.byteLength(message) > MaxMessage ? [tooLong(`${field}.message`, MaxMessage)] : []),
  ]
}
