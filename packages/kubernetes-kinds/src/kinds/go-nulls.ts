/**
 * Applies the rules of Go's decoder for `null` and absent fields: a null field becomes absent, a null list item or map value becomes the
 * zero value of its type, and absent required strings become empty, as do absent required structs of CustomResourceDefinitions. A bigint in a
 * float field becomes a number. Later code can then rely on the declared types. Upstream: encoding/json.
 */
import { asWork, each, isRecord, type RemainingWork, type Work } from '@capstan/kube'
import { type Component, componentOf, targetOf } from './catalog.ts'
import { structIn } from './go-types.ts'

/** Changes a value in place. */
type Reader = (value: unknown) => RemainingWork

const readers = new Map<string, Reader>()

/**
 * Decodes null and absent fields of a draft in place, as Go does. `component` is the name of its schema, such as `io.k8s.api.core.v1.Pod`.
 * The types of its values must have been checked before.
 */
export function* readNulls(component: string, object: { [field: string]: unknown }): Work<void> {
  const { metadata } = object
  yield* asWork(() => readerOf(component)(object))
  // The server decodes metadata separately.
  object.metadata = metadata
}

function readerOf(name: string): Reader {
  const cached = readers.get(name)
  if (cached) return cached
  let compiled: Reader | undefined
  // Types may be recursive: the reader is registered before it is compiled.
  const reader: Reader = (value) => (compiled ??= structReader(name))(value)
  readers.set(name, reader)
  return reader
}

function structReader(name: string): Reader {
  const { properties, required = [] } = componentOf(name) ?? {}
  if (!properties) return () => undefined
  const members = new Map(Object.entries(properties).map(([field, schema]) => [field, memberReader(schema)]))
  const zeros = Object.entries(properties).flatMap(([field, schema]) => {
    const zero = required.includes(field) ? zeroOfRequired(schema, name) : undefined
    return zero ? [{ field, zero }] : []
  })
  const floatFields = Object.keys(properties).filter((field) => properties[field]!.type === 'number')
  return (value) => {
    if (!isRecord(value)) return undefined
    for (const field of floatFields) if (typeof value[field] === 'bigint') value[field] = Number(value[field])
    for (const { field, zero } of zeros) value[field] ??= zero()
    // Iterates over the fields that the object has: usually few of the fields of its type.
    return each(Object.keys(value), (field) => {
      if (!members.has(field) || value[field] === undefined) return undefined
      if (value[field] !== null) return members.get(field)?.(value[field])
      delete value[field]
      return undefined
    })
  }
}

/**
 * Returns a function that creates the zero value of a required field: the empty string, or an empty struct in a CustomResourceDefinition,
 * so that validation reports each missing field of the struct. Returns `undefined` for fields of other types, which stay absent.
 */
function zeroOfRequired(schema: Component, owner: string): (() => unknown) | undefined {
  const target = targetOf(schema)
  if (target === undefined) return schema.type === 'string' && schema.format === undefined ? () => '' : undefined
  return owner.includes('.apiextensions-apiserver.') && componentOf(target)?.properties ? () => ({}) : undefined
}

function memberReader(schema: Component): Reader | undefined {
  const target = targetOf(schema)
  if (target !== undefined) return (value) => readerOf(structIn(target, value))(value)
  const inner = schema.items ?? (typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined)
  if (!inner) return undefined
  const read = memberReader(inner)
  return (container) => {
    if (typeof container !== 'object' || container === null) return undefined
    const members = container as { [key: string]: unknown }
    return each(Object.keys(members), (key) => {
      if (members[key] === null) members[key] = zeroOf(inner)
      return read?.(members[key])
    })
  }
}

function zeroOf(schema: Component): unknown {
  const target = targetOf(schema)
  const { type, properties } = target === undefined ? schema : (componentOf(target) ?? {})
  if (target?.endsWith('.Quantity')) return '0'
  // Types with properties are structs. For other named types, null stays null: their own decoders in Go accept it.
  if (properties) return {}
  if (type === 'string') return target === undefined ? '' : null
  if (type === 'boolean') return false
  return type === 'integer' || type === 'number' ? 0 : null
}

/**
 * Sets an absent or empty list to `null`, for fields that Go always writes. Stored objects do not distinguish absent and empty lists.
 */
export function nullIfNone<T extends object>(owner: T | undefined, field: keyof T): void {
  const list = owner?.[field] as readonly unknown[] | null | undefined
  if (owner && !list?.length) owner[field] = null as never
}
