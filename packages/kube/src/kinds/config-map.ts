import { byteLength } from '../byte-length.ts'
import { appendAll } from '../lists.ts'
import { equal } from '../json.ts'
import { addInvalid, type FieldError, forbidden, invalid, tooLong } from '../errors.ts'
import { defineKind, type ObjectOf } from '../kind.ts'
import { s } from '../schema.ts'

export const ConfigMap = defineKind({
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  shortNames: ['cm'],
  scope: 'Namespaced',
  doc: 'Configuration data for other objects and programs.',
  fields: {
    data: s.map(s.string()).optional().doc('Text values by key.'),
    binaryData: s
      .map(s.string({ format: 'byte' }))
      .optional()
      .doc('Binary values by key, base64-encoded.'),
    immutable: s.boolean().optional().doc('If true, the data is immutable; only metadata can change.'),
  },
  validate(configMap, { oldObject }) {
    const errors: FieldError[] = []
    let size = 0
    const { data = {}, binaryData } = configMap
    for (const key of Object.keys(data)) {
      size += byteLength(data[key]!)
      addInvalid(errors, `data[${key}]`, key, keyProblems(key))
      if (binaryData && Object.hasOwn(binaryData, key)) {
        errors.push(invalid(`data[${key}]`, key, 'duplicate of key present in binaryData'))
      }
    }
    for (const [key, value] of Object.entries(binaryData ?? {})) {
      size += decodedLength(value)
      addInvalid(errors, `binaryData[${key}]`, key, keyProblems(key))
    }
    if (size > MaxDataSize) errors.push(tooLong('', MaxDataSize))
    if (oldObject?.immutable) appendAll(errors, immutableErrors(configMap, oldObject, ['data', 'binaryData']))
    return errors
  },
})
export type ConfigMap = ObjectOf<typeof ConfigMap>

/** Maximum total size of the values of a ConfigMap or Secret, in bytes. Upstream: core/v1 MaxSecretSize. */
export const MaxDataSize = 1024 * 1024

/**
 * Returns the first problem of a key in the data of a ConfigMap or Secret; an empty list for a valid key.
 * Upstream: validation.IsConfigMapKey.
 */
export function keyProblems(key: string): readonly string[] {
  if (key.length > 253) return ['must be no more than 253 characters']
  if (!/^[-._a-zA-Z0-9]+$/.test(key)) return InvalidKey
  if (key === '.') return ["must not be '.'"]
  if (key === '..') return ["must not be '..'"]
  return key.startsWith('..') ? ["must not start with '..'"] : []
}
const InvalidKey = [
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
]

/** Errors for changes of `fields`, or of `immutable` itself, in an object that had `immutable: true`. */
export function immutableErrors<T extends { immutable?: boolean }>(
  object: T,
  old: T,
  fields: readonly (keyof T & string)[],
): FieldError[] {
  const text = 'field is immutable when `immutable` is set'
  const errors = object.immutable ? [] : [forbidden('immutable', text)]
  for (const field of fields) if (!equal(object[field] ?? {}, old[field] ?? {})) errors.push(forbidden(field, text))
  return errors
}

/** Length of the bytes that a base64 text encodes. */
export const decodedLength = (base64: string): number =>
  Math.floor((base64.length * 3) / 4) - (base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0)
