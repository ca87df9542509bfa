/**
 * Requests and responses between JSON text and typed values, with the rules of Go's decoder: what is unknown is ignored, keys may
 * differ in case, null is the zero value. Upstream: encoding/json as internal/runtime/client uses it, v1.14.
 */
import type { Schema } from '@capstan/kube'
import { isRecord, type JSONSchema } from '@capstan/kube'

/** The text is not what the schema says. The message is Go's, as far as Go has one. */
export class WireError extends Error {
  override readonly name = 'WireError'
}

/** No request or response may be longer, in bytes. */
export const maxBodyBytes = 20 * 1024 * 1024

/**
 * Decodes one JSON document. What must be there and is not has its zero value, as in Go; `structName` stands in messages.
 *
 * @throws WireError
 */
export function decodeWire(text: string, schema: Schema, structName: string): Record<string, unknown> {
  const value = parse(text)
  if (!isRecord(value)) throw mismatch(value, structName, 'object')
  return decodeObject(value, schema.json, structName, '')
}

/** Fields that the schema requires and the value lacks. */
export const missingFields = (value: Record<string, unknown>, schema: Schema): string[] =>
  (schema.json.required ?? []).filter((name) => value[name] === undefined || value[name] === '')

function parse(text: string): unknown {
  if (text.trim() === '') throw new WireError('EOF')
  try {
    return JSON.parse(text)
  } catch (err) {
    const first = text.trimStart()[0]!
    if (!/["[{0-9tfn-]/.test(first)) throw new WireError(`invalid character ${goRune(first)} looking for beginning of value`)
    throw new WireError((err as Error).message)
  }
}

const goRune = (char: string): string => (char === "'" ? `'\\''` : `'${char}'`)

function decode(value: unknown, schema: JSONSchema, structName: string, path: string): unknown {
  switch (schema.type) {
    case 'object':
      if (!isRecord(value)) throw mismatch(value, at(structName, path), 'object')
      return decodeObject(value, schema, structName, path)
    case 'array':
      if (!Array.isArray(value)) throw mismatch(value, at(structName, path), 'list')
      return value.map((item) => decode(item, schema.items ?? {}, structName, path))
    case 'integer': {
      const type = schema.format ?? 'int64'
      if (typeof value !== 'number' || !Number.isInteger(value)) throw mismatch(value, at(structName, path), type)
      if (type === 'int32' && value !== (value | 0)) throw mismatch(value, at(structName, path), type)
      return value
    }
    case 'string':
    case 'boolean':
    case 'number':
      if (typeof value !== schema.type) throw mismatch(value, at(structName, path), goTypes[schema.type])
      return value
    case undefined:
      return value
  }
}

const goTypes = { string: 'string', boolean: 'bool', number: 'float64' } as const

function decodeObject(
  value: Record<string, unknown>,
  schema: JSONSchema,
  structName: string,
  path: string,
): Record<string, unknown> {
  if (schema['x-kubernetes-preserve-unknown-fields']) return value
  const decoded: Record<string, unknown> = {}
  const below = (name: string): string => (path === '' ? name : `${path}.${name}`)
  const { properties, additionalProperties } = schema
  if (typeof additionalProperties === 'object') {
    for (const [key, item] of Object.entries(value)) decoded[key] = decode(item, additionalProperties, structName, below(key))
    return decoded
  }
  const names = new Map(Object.keys(properties ?? {}).map((name) => [name.toLowerCase(), name]))
  for (const [key, item] of Object.entries(value)) {
    const name = properties?.[key] ? key : names.get(key.toLowerCase())
    // A key in its exact form wins over others that differ in case.
    if (name === undefined || (name !== key && Object.hasOwn(value, name))) continue
    if (item !== null) decoded[name] = decode(item, properties![name]!, structName, below(name))
  }
  for (const [name, field] of Object.entries(properties ?? {})) {
    if (decoded[name] !== undefined) continue
    const zero = schema.required?.includes(name) ? zeroOf(field, structName, below(name)) : field.default
    if (zero !== undefined) decoded[name] = zero
  }
  return decoded
}

/** What a field that must be there has when it is not. */
function zeroOf(schema: JSONSchema, structName: string, path: string): unknown {
  if (schema.type === 'string') return ''
  return schema.type === 'object' && schema.properties ? decodeObject({}, schema, structName, path) : undefined
}

const at = (structName: string, path: string): string => (path === '' ? structName : `struct field ${structName}.${path}`)

const mismatch = (value: unknown, where: string, type: string): WireError =>
  new WireError(`json: cannot unmarshal ${kindOf(value)} into Go ${where.startsWith('struct') ? where : `value`} of type ${type}`)

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'array'
  if (value === null) return 'null'
  if (typeof value === 'boolean') return 'bool'
  return typeof value === 'number' ? `number ${value}` : typeof value
}
