/**
 * Validates that the scale subresource can read replicas and selector of a custom resource, and that the numbers of replicas are in range.
 * Upstream: pkg/registry/customresource/validator.go of k8s.io/apiextensions-apiserver.
 */
import { type FieldError, goText, goTypeName, invalid, isInt64, isRecord, type UnknownObject } from '@capstan/kube'
import type { ResourceInfo } from '../../registry/resource-info.ts'

const MaxInt32 = 2 ** 31 - 1

export function scaleErrors({ scale }: ResourceInfo, subresource: string | undefined, object: UnknownObject): FieldError[] {
  if (!scale) return []
  const { specReplicasPath, statusReplicasPath, labelSelectorPath = '' } = scale
  return [
    ...(subresource === 'status' ? [] : replicasErrors(specReplicasPath, object)),
    ...replicasErrors(statusReplicasPath, object),
    ...(labelSelectorPath === '' ? [] : valueErrors(labelSelectorPath, object, 'string', '')),
  ]
}

function replicasErrors(path: string, object: UnknownObject): FieldError[] {
  const value = valueAt(path, object)
  if (!isInt64(value)) return valueErrors(path, object, 'int64', 0)
  if (value < 0) return [invalid(path, value, 'should be a non-negative integer')]
  return value > MaxInt32 ? [invalid(path, value, `should be less than or equal to ${MaxInt32}`)] : []
}

/**
 * Returns an error if the value at the path does not have the type, or if a parent is not an object. An absent value, and an absent or null
 * parent, are valid. Upstream prints `zero` as the invalid value.
 */
function valueErrors(path: string, object: UnknownObject, type: 'int64' | 'string', zero: unknown): FieldError[] {
  const reject = (failingPath: string, value: unknown, expected: string) => [
    invalid(
      path,
      zero,
      `${failingPath} accessor error: ${goText(value)} is of the type ${goTypeName(value)}, expected ${expected}`,
    ),
  ]
  let value: unknown = object
  let currentPath = ''
  for (const member of membersOf(path)) {
    if (value === undefined || value === null) return []
    currentPath += `.${member}`
    if (!isRecord(value)) return reject(currentPath, value, 'map[string]interface{}')
    value = value[member]
  }
  return value === undefined || goTypeName(value) === type ? [] : reject(currentPath, value, type)
}

const membersOf = (path: string): string[] => path.split('.').slice(1)

const valueAt = (path: string, object: UnknownObject): unknown =>
  membersOf(path).reduce<unknown>((value, member) => (isRecord(value) ? value[member] : undefined), object)
