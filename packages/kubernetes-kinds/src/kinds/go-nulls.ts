/**
 * Applies the rules of Go's decoder for `null` and absent fields: a null field becomes absent, a null list item or map value becomes the
 * zero value of its type (which can be null, too), and absent required strings without a format become empty, as do absent required structs
 * of CustomResourceDefinitions. A bigint in a float field becomes a number. Later code can then rely on the declared types. Upstream:
 * encoding/json.
 */
import { asWork, each, isRecord, type RemainingWork, type Work } from '@capstan/kube'
import { type Component, componentOf, targetOf } from './catalog.ts'
import { structIn } from './go-types.ts'

/** Decodes nulls and absent fields in a value, in place. */
type Decoder = (value: unknown) => RemainingWork

const decoders = new Map<string, Decoder>()

/**
 * Decodes null and absent fields of a draft in place, as Go does. `component` is the name of its schema, such as `io.k8s.api.core.v1.Pod`.
 * The types of its values must have been checked before.
 */
export function* readNulls(component: string, object: { [field: string]: unknown }): Work<void> {
  const { metadata } = object
  yield* asWork(() => decoderOf(component)(object))
  // Null metadata stays null: the server decodes metadata separately.
  object.metadata = metadata
}

function decoderOf(name: string): Decoder {
  const cached = decoders.get(name)
  if (cached) return cached
  let compiled: Decoder | undefined
  // Types may be recursive: the decoder is registered before it is compiled.
  const decoder: Decoder = (value) => (compiled ??= structDecoder(name))(value)
  decoders.set(name, decoder)
  return decoder
}

function structDecoder(name: string): Decoder {
  const { properties, required = [] } = componentOf(name) ?? {}
  if (!properties) return () => undefined
  const members = new Map(Object.entries(properties).map(([field, schema]) => [field, memberDecoder(schema)]))
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
 * Returns a function that creates the zero value of a required field: the empty string for a string without a format, or an empty struct in a
 * CustomResourceDefinition, so that validation reports each missing field of the struct. Returns `undefined` for other fields, which stay
 * absent.
 */
function zeroOfRequired(schema: Component, owner: string): (() => unknown) | undefined {
  const target = targetOf(schema)
  if (target === undefined) return schema.type === 'string' && schema.format === undefined ? () => '' : undefined
  return owner.includes('.apiextensions-apiserver.') && componentOf(target)?.properties ? () => ({}) : undefined
}

function memberDecoder(schema: Component): Decoder | undefined {
  const target = targetOf(schema)
  if (target !== undefined) return (value) => decoderOf(structIn(target, value))(value)
  const inner = schema.items ?? (typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined)
  if (!inner) return undefined
  const decodeInner = memberDecoder(inner)
  return (container) => {
    if (typeof container !== 'object' || container === null) return undefined
    const members = container as { [key: string]: unknown }
    return each(Object.keys(members), (key) => {
      if (members[key] === null) members[key] = zeroOf(inner)
      return decodeInner?.(members[key])
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
 * Sets an absent or empty list to `null`, for fields without `omitempty`. Upstream stores protobuf, in which an empty list becomes an absent
 * one, and Go's encoder writes an absent list as `null`.
 */
export function nullIfNone<T extends object>(owner: T | undefined, field: keyof T): void {
  const list = owner?.[field] as readonly unknown[] | null | undefined
  if (owner && !list?.length) owner[field] = null as never
}
