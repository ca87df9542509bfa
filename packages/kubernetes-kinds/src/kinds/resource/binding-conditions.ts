/**
 * Validates binding conditions, which a device must meet before a Pod is bound to its node, and binding failure conditions,
 * each of which makes the binding fail.
 */
import { duplicate, type FieldError, invalid, labelKeyProblems, repeats } from '@capstan/kube'
import { problems } from '../checks.ts'
import { duplicateErrors, listErrors } from './lists.ts'

const MaxConditions = 4

export function bindingErrors(
  field: string,
  conditions: { readonly bindingConditions?: readonly string[]; readonly bindingFailureConditions?: readonly string[] },
): FieldError[] {
  const { bindingConditions: required = [], bindingFailureConditions: failed = [] } = conditions
  const [requiredPath, failedPath] = [`${field}.bindingConditions`, `${field}.bindingFailureConditions`]
  const repeated = repeats(failed)
  const requiredConditions = new Set(required)
  const nameErrors = (valuePath: string, condition: string) => problems(valuePath, condition, labelKeyProblems(condition))
  return [
    ...listErrors(requiredPath, required, MaxConditions, nameErrors),
    ...listErrors(failedPath, failed, MaxConditions, nameErrors),
    ...duplicateErrors(requiredPath, required),
    ...failed.flatMap((condition, index) => [
      ...(repeated[index] ? [duplicate(`${failedPath}[${index}]`, condition)] : []),
      ...(requiredConditions.has(condition)
        ? [invalid(`${failedPath}[${index}]`, condition, 'bindingFailureConditions must not overlap with bindingConditions')]
        : []),
    ]),
    ...(required.length === 0 && failed.length > 0
      ? [invalid(requiredPath, conditions.bindingConditions, 'bindingConditions are required to use bindingFailureConditions')]
      : []),
    ...(failed.length === 0 && required.length > 0
      ? [
          invalid(
            failedPath,
            conditions.bindingFailureConditions,
            'bindingFailureConditions are required to use bindingConditions',
          ),
        ]
      : []),
  ]
}
