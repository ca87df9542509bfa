/**
 * Derives schemas from Go types, as upstream's generator of CustomResourceDefinitions does. Types are written as in `recorded-types.ts`:
 * `*` is a pointer, `[]` a list, `{}` a map with string keys, `core/v1beta1.Machine` a struct, `metadata` the struct ObjectMeta.
 */
import type { JSONSchema } from '@capstan/kube'

/** Returns the Go type of the items of a list or of the values of a map; `undefined` for other types. */
export function elementOf(type: string): string | undefined {
  const plain = type.replace(/^\*/, '')
  return plain.startsWith('[]') || plain.startsWith('{}') ? plain.slice(2) : undefined
}

/** Returns the name of the struct that a type is, points to, or has as its items or values; `undefined` if there is none. */
export function structOf(type: string): string | undefined {
  const name = type.replace(/^(\*|\[\]|\{\})+/, '')
  return name.includes('.') || name === 'metadata' ? name : undefined
}

/**
 * Returns the schema keywords that follow from a type, without those of its items, values and fields. For older API versions,
 * `recorded-types.ts` has the other keywords, such as the format `int32` of an `int`.
 */
export function baseSchema(type: string): JSONSchema {
  const plain = type.replace(/^\*/, '')
  if (plain.startsWith('[]')) return { type: 'array' }
  switch (plain) {
    case 'bool':
      return { type: 'boolean' }
    case 'int':
      return { type: 'integer' }
    case 'string':
    case 'duration':
      return { type: 'string' }
    case 'time':
      return { type: 'string', format: 'date-time' }
    case 'bytes':
      return { type: 'string', format: 'byte' }
    case 'json':
      return { 'x-kubernetes-preserve-unknown-fields': true }
    case 'intOrString':
      return { anyOf: [{ type: 'integer' }, { type: 'string' }], 'x-kubernetes-int-or-string': true }
    default:
      return { type: 'object' }
  }
}
