/**
 * Requests and responses between JSON text and typed values, with the rules of Go's decoder: what is unknown is ignored, keys may
 * differ in case, null is the zero value. Upstream: encoding/json as internal/runtime/client uses it, v1.14.
 */
import type { Schema } from '@capstan/kube'
import { isRecord, type JSONSchema, scanJSON } from '@capstan/kube'

/** The text is not what the schema says. The message is Go's, as far as Go has one. */
export class WireError extends Error {
  override readonly name = 'WireError'
  /** The text is JSON, but not of the shape that was expected. */
  readonly isJson: boolean

  constructor(message: string, { isJson = false }: { isJson?: boolean } = {}) {
    super(message)
    this.isJson = isJson
  }
}

/** No request or response may be longer, in bytes. */
export const maxBodyBytes = 20 * 1024 * 1024

/**
 * Decodes one JSON document. What must be there and is not has its zero value, as in Go; `structName` stands in messages.
 *
 * @throws WireError
 */
export function decodeWire(text: string, schema: Schema, structName: string, what: WireText): Record<string, unknown> {
  const { value, fractions } = parse(text, what)
  if (!isRecord(value)) throw mismatch(value, structName, 'object')
  return new Decoder(structName, fractions).object(value, schema.json, '')
}

/** Go reads a request whole (`json.Unmarshal`), but of an answer one value (`json.Decoder`): what follows it is not looked at. */
export type WireText = 'request' | 'answer'

/** Fields that the schema requires and the value lacks. */
export const missingFields = (value: Record<string, unknown>, schema: Schema): string[] =>
  (schema.json.required ?? []).filter((name) => value[name] === undefined || value[name] === '')

/** Numbers that are written as fractions, such as 5.0, by the object that holds them: Go takes none of them for an integer. */
type Fractions = WeakMap<object, Map<string, string>>

function parse(text: string, what: WireText): { value: unknown; fractions: Fractions } {
  const fractions: Fractions = new WeakMap()
  if (text.trim() === '') throw new WireError(what === 'answer' ? 'EOF' : 'unexpected end of JSON input')
  // A byte order mark, as its first byte.
  if (text.startsWith('\ufeff')) throw new WireError("invalid character 'ï' looking for beginning of value")
  const note: Reviver = function (key, value, context) {
    const source = typeof value === 'number' ? context?.source : undefined
    if (source === undefined || /^-?\d+$/.test(source)) return value
    const noted = fractions.get(this) ?? new Map<string, string>()
    fractions.set(this, noted.set(key, source))
    return value
  }
  try {
    const value = /\d[.eE]/.test(text) ? JSON.parse(text, note as Parameters<typeof JSON.parse>[1]) : JSON.parse(text)
    return { value, fractions }
  } catch (err) {
    const { error: why = (err as Error).message, end } = scanJSON(text)
    if (what === 'request') throw new WireError(why)
    if (end !== undefined) return parse(text.slice(0, end), 'request')
    // Go reads from the connection here: text that ends too early is one that might have gone on.
    throw new WireError(why === 'unexpected end of JSON input' ? 'unexpected EOF' : why)
  }
}

type Reviver = (this: object, key: string, value: unknown, context?: { source?: string }) => unknown

class Decoder {
  readonly #struct: string
  readonly #fractions: Fractions

  constructor(struct: string, fractions: Fractions) {
    this.#struct = struct
    this.#fractions = fractions
  }

  object(value: Record<string, unknown>, schema: JSONSchema, path: string): Record<string, unknown> {
    if (schema['x-kubernetes-preserve-unknown-fields']) return value
    const decoded: Record<string, unknown> = {}
    const below = (name: string): string => (path === '' ? name : `${path}.${name}`)
    const { properties, additionalProperties } = schema
    if (typeof additionalProperties === 'object') {
      for (const key of Object.keys(value)) decoded[key] = this.#member(value, key, additionalProperties, below(key))
      return decoded
    }
    const names = new Map(Object.keys(properties ?? {}).map((name) => [name.toLowerCase(), name]))
    for (const key of Object.keys(value)) {
      const name = properties?.[key] ? key : names.get(key.toLowerCase())
      // A key in its exact form wins over others that differ in case.
      if (name === undefined || (name !== key && Object.hasOwn(value, name))) continue
      if (value[key] !== null) decoded[name] = this.#member(value, key, properties![name]!, below(name))
    }
    for (const [name, field] of Object.entries(properties ?? {})) {
      if (decoded[name] !== undefined) continue
      const zero = schema.required?.includes(name) ? this.#zero(field, below(name)) : field.default
      if (zero !== undefined) decoded[name] = zero
    }
    return decoded
  }

  #member(holder: object, key: string, schema: JSONSchema, path: string): unknown {
    const value = (holder as Record<string, unknown>)[key]
    const expected = (type: string) => mismatch(value, at(this.#struct, path), type, this.#fractions.get(holder)?.get(key))
    switch (schema.type) {
      case 'object':
        if (!isRecord(value)) throw expected('object')
        return this.object(value, schema, path)
      case 'array':
        if (!Array.isArray(value)) throw expected('list')
        return value.map((_, index) => this.#member(value, String(index), schema.items ?? {}, path))
      case 'integer': {
        const type = schema.format ?? 'int64'
        if (typeof value !== 'number' || !Number.isInteger(value)) throw expected(type)
        if (this.#fractions.get(holder)?.has(key) || (type === 'int32' && value !== (value | 0))) throw expected(type)
        return value
      }
      case 'string':
      case 'boolean':
      case 'number':
        if (typeof value !== schema.type) throw expected(goTypes[schema.type])
        if (schema.format === 'byte') checkBase64(value as string)
        return value
      case undefined:
        return value
    }
  }

  /** What a field that must be there has when it is not. */
  #zero(schema: JSONSchema, path: string): unknown {
    if (schema.type === 'string') return ''
    // Whole objects of the API are carried as they are: one that is missing is missing.
    if (schema['x-kubernetes-preserve-unknown-fields']) return undefined
    return schema.type === 'object' && schema.properties ? this.object({}, schema, path) : undefined
  }
}

/** Go takes standard base64 with padding, line breaks apart, and says where it stopped reading. */
function checkBase64(text: string): void {
  const plain = text.replace(/[\r\n]/g, '')
  const bad = /[^A-Za-z0-9+/]/.exec(plain.replace(/={1,2}$/, ''))
  if (bad) throw illegalBase64(bad.index)
  if (plain.length % 4 !== 0) throw illegalBase64(plain.length - (plain.length % 4))
}

const illegalBase64 = (at: number): WireError => new WireError(`illegal base64 data at input byte ${at}`, { isJson: true })

const goTypes = { string: 'string', boolean: 'bool', number: 'float64' } as const

const at = (structName: string, path: string): string => (path === '' ? structName : `struct field ${structName}.${path}`)

const mismatch = (value: unknown, where: string, type: string, source?: string): WireError =>
  new WireError(
    `json: cannot unmarshal ${kindOf(value, source)} into Go ${where.startsWith('struct') ? where : 'value'} of type ${type}`,
    { isJson: true },
  )

function kindOf(value: unknown, source = String(value)): string {
  if (Array.isArray(value)) return 'array'
  if (value === null) return 'null'
  if (typeof value === 'boolean') return 'bool'
  return typeof value === 'number' ? `number ${source}` : typeof value
}
