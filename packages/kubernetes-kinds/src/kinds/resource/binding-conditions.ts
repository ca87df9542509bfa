/** Validates binding conditions: conditions of a device that must be met before a Pod is bound to its node. */
import { duplicate, type FieldError, invalid, labelKeyProblems, repeats } from '@capstan/kube'
import { problems } from '../checks.ts'
import { duplicateErrors, listErrors } from './lists.ts'

const MaxConditions = 4

export function bindingErrors(
  field: string,
  conditions: { readonly bindingConditions?: readonly string[]; readonly bindingFailureConditions?: readonly string[] },
): FieldError[] {
  const { bindingConditions: wanted = [], bindingFailureConditions: failed = [] } = conditions
  const [wantedAt, failedAt] = [`${field}.bindingConditions`, `${field}.bindingFailureConditions`]
  const isRepeated = repeats(failed)
  const isWanted = new Set(wanted)
  const name = (at: string, condition: string) => problems(at, condition, labelKeyProblems(condition))
  return [
    ...listErrors(wantedAt, wanted, MaxConditions, name),
    ...listErrors(failedAt, failed, MaxConditions, name),
    ...duplicateErrors(wantedAt, wanted),
    ...failed.flatMap((condition, index) => [
      ...(isRepeated[index] ? [duplicate(`${failedAt}[${index}]`, condition)] : []),
      ...(isWanted.has(condition)
        ? [invalid(`${failedAt}[${index}]`, condition, 'bindingFailureConditions must not overlap with bindingConditions')]
        : []),
    ]),
    ...(wanted.length === 0 && failed.length > 0
      ? [invalid(wantedAt, conditions.bindingConditions, 'bindingConditions are required to use bindingFailureConditions')]
      : []),
    ...(failed.length === 0 && wanted.length > 0
      ? [invalid(failedAt, conditions.bindingFailureConditions, 'bindingFailureConditions are required to use bindingConditions')]
      : []),
  ]
}
