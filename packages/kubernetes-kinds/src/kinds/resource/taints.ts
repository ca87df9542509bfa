/** Validates the taints of devices (`resource.k8s.io`), and validates and defaults tolerations of such taints. */
import { type FieldError, invalid, labelKeyProblems, labelValueProblems } from '@capstan/kube'
import { oneOf, problems, requiredOneOf } from '../checks.ts'
import type { DeviceTaint, DeviceToleration } from '../schemas/types.ts'

const effects = ['NoExecute', 'NoSchedule', 'None']

export const taintErrors = (field: string, { key, value = '', effect }: DeviceTaint): FieldError[] => [
  ...problems(`${field}.key`, key, labelKeyProblems(key)),
  ...problems(`${field}.value`, value, labelValueProblems(value)),
  ...requiredOneOf(`${field}.effect`, effect, effects),
]

export function tolerationErrors(field: string, { key = '', value = '', operator, effect }: DeviceToleration): FieldError[] {
  return [
    ...(key === '' ? [] : problems(`${field}.key`, key, labelKeyProblems(key))),
    ...(operator === 'Exists' && value !== '' ? [invalid(`${field}.value`, value, 'must be empty for operator `Exists`')] : []),
    ...(operator === 'Equal' ? problems(`${field}.value`, value, labelValueProblems(value)) : []),
    ...requiredOneOf(`${field}.operator`, operator, ['Equal', 'Exists']),
    ...(effect ? oneOf(`${field}.effect`, effect, effects) : []),
  ]
}

export function defaultTolerations(tolerations: readonly DeviceToleration[] | undefined): void {
  for (const toleration of tolerations ?? []) toleration.operator ||= 'Equal'
}
