/**
 * Decodes requests and responses as Go does: unknown fields are ignored, keys may differ in case, null is the zero value or keeps the value of
 * an earlier duplicate key, objects and lists of duplicate keys are merged. Upstream: encoding/json of Go 1.26 as internal/runtime/client
 * and exp/runtime/server use it, v1.14. The interop suite hooks-peer compares this decoder with Go's.
 */
import type { JSONSchema, Schema } from '@capstan/kube'
import { isRecord, setMember } from '@capstan/kube'
import { base64Bytes, bytesBase64, checkBase64 } from './go-bytes.ts'
import { byFoldedName, foldKey, goFieldPath, goType } from './go-names.ts'
import { goString, goText } from './go-string.ts'
import { assertNothingAfter, Byte, type EndErrors, endOfPlainString, endOfValue, isSpace } from './json-syntax.ts'
import { decodePlain } from './plain-json.ts'
import { WireError } from './wire-error.ts'
import { addZeroValues, resolveRef, zero } from './zero-values.ts'

export { WireError } from './wire-error.ts'

/** Maximum size of a request or response, in bytes. */
export const maxBodyBytes = 20 * 1024 * 1024

/**
 * Decodes one JSON document. Missing required strings and structs (but not API objects) get Go's zero value, and missing
 * fields whose default is 0 get 0. `structName` is the name of the document's struct in error messages.
 *
 * @throws WireError if the text is not JSON or does not match the schema
 */
export function decodeWire(
  body: Uint8Array | string,
  schema: Schema,
  structName: string,
  what: WireText,
): Record<string, unknown> {
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body
  return decodePlain(bytes, schema.json) ?? decodeAsGo(bytes, schema, structName, what)
}

/** Decodes by all of Go's rules, byte by byte. `decodeWire` uses it for texts that `decodePlain` does not decode. @throws WireError */
export function decodeAsGo(bytes: Uint8Array, schema: Schema, structName: string, what: WireText): Record<string, unknown> {
  const end = endOfValue(bytes, endings[what])
  if (what === 'request') assertNothingAfter(bytes, end)
  return new Decoder(bytes, schema.json, structName).document()
}

/** Kind of a text. Go decodes a whole request (`json.Unmarshal`), but only the first value of a response (`json.Decoder`). */
export type WireText = 'request' | 'response'

const endings: { readonly [what in WireText]: EndErrors } = {
  request: { empty: 'unexpected end of JSON input', truncated: 'unexpected end of JSON input' },
  response: { empty: 'EOF', truncated: 'unexpected EOF' },
}

/** Returns the names of required fields that are missing or have an empty string as value. */
export const missingFields = (value: Record<string, unknown>, schema: Schema): string[] =>
  (schema.json.required ?? []).filter((name) => value[name] === undefined || value[name] === '')

/** Place of a value, for messages. */
interface Place {
  /** Go's name of the struct that has the field. */
  readonly struct: string
  /** Fields, from the document on; empty for the document itself. */
  readonly path: readonly string[]
  /** Go's name of the type of the value. */
  readonly type: string
}

/** Decodes text that is valid JSON. */
class Decoder {
  readonly #bytes: Uint8Array
  readonly #root: JSONSchema
  readonly #struct: string
  /**
   * The items in the memory of each list in Go. After a duplicate key has replaced a list by a shorter one, the memory still contains the
   * remaining items of the longer list, and Go decodes the items of a further duplicate key into them.
   */
  readonly #backing = new WeakMap<unknown[], unknown[]>()
  /**
   * The first number outside the range of float64 in a value without a schema. Go detects it only when the value is used, so it is reported after
   * all other errors.
   */
  #tooLarge: string | undefined
  #at = 0

  constructor(bytes: Uint8Array, root: JSONSchema, struct: string) {
    this.#bytes = bytes
    this.#root = root
    this.#struct = struct
  }

  document(): Record<string, unknown> {
    const decoded = this.#value(this.#root, undefined, { struct: '', path: [], type: `v1alpha1.${this.#struct}` })
    if (this.#tooLarge !== undefined) {
      throw new WireError(`json: cannot unmarshal number ${this.#tooLarge} into Go value of type float64`, { isJson: true })
    }
    // Go keeps the existing value when the document is null.
    return addZeroValues(isRecord(decoded) ? decoded : {}, this.#root, this.#root)
  }

  /**
   * Decodes a value. `known` is the value of an earlier duplicate key. For null, returns `known`, or `undefined` if null removes `known`.
   */
  #value(schemaOrRef: JSONSchema, known: unknown, place: Place): unknown {
    this.#space()
    const schema = resolveRef(schemaOrRef, this.#root)
    const byte = this.#bytes[this.#at]
    const isAny = schema.type === undefined || schema['x-kubernetes-preserve-unknown-fields'] === true
    const matchesType = schema.type !== 'object' || byte === Byte.openObject || byte === Byte.n
    if (isAny && matchesType) return this.#any()
    if (byte === Byte.n) {
      this.#skip()
      return schemaOrRef.$ref !== undefined || isPointer(schema) ? undefined : known
    }
    switch (schema.type) {
      case 'object':
        if (byte !== Byte.openObject) throw this.#mismatch(place)
        return typeof schema.additionalProperties === 'object'
          ? this.#map(schema.additionalProperties, known, place)
          : this.#object(schema, known, place)
      case 'array':
        if (byte !== Byte.openArray) throw this.#mismatch(place)
        return this.#list(schema.items ?? {}, known, place)
      case 'string':
        if (schema.format === 'byte') return this.#binary(known, place)
        if (byte !== Byte.quote) throw this.#mismatch(place)
        return this.#string()
      case 'integer':
      case 'number':
        return this.#number(schema, place)
      case 'boolean':
        if (byte !== Byte.t && byte !== Byte.f) throw this.#mismatch(place)
        this.#skip()
        return byte === Byte.t
      case undefined:
        return this.#any()
    }
  }

  #object(schema: JSONSchema, known: unknown, { path, type }: Place): Record<string, unknown> {
    const decoded: Record<string, unknown> = isRecord(known) ? known : {}
    const struct = type.slice(type.lastIndexOf('.') + 1)
    const isDocument = path.length === 0
    const properties = schema.properties ?? {}
    // Computed only when needed: most responses use the exact names.
    let names: ReadonlyMap<string, string> | undefined
    for (const key of this.#keys()) {
      const name = Object.hasOwn(properties, key) ? key : (names ??= byFoldedName(properties)).get(foldKey(key))
      if (name === undefined) {
        this.#skip()
        continue
      }
      const field = properties[name]!
      const value = this.#value(field, decoded[name], {
        struct,
        path: [...path, ...goFieldPath(schema, name, isDocument)],
        type: goType(struct, name, field, isDocument),
      })
      if (value === undefined) delete decoded[name]
      else decoded[name] = value
    }
    return addZeroValues(decoded, schema, this.#root)
  }

  #map(schema: JSONSchema, known: unknown, place: Place): Record<string, unknown> {
    const decoded: Record<string, unknown> = isRecord(known) ? known : {}
    const element = { ...place, type: place.type.replace(/^map\[string\]/, '') }
    for (const key of this.#keys()) setMember(decoded, key, this.#value(schema, undefined, element) ?? zero(schema, this.#root))
    return decoded
  }

  #list(items: JSONSchema, known: unknown, place: Place): unknown[] {
    const earlier = Array.isArray(known) ? (this.#backing.get(known) ?? known) : []
    const element = { ...place, type: place.type.replace(/^\[\]/, '') }
    const decoded: unknown[] = []
    for (const index of this.#elements()) {
      decoded.push(this.#value(items, earlier[index], element) ?? zero(items, this.#root))
    }
    this.#backing.set(decoded, decoded.length === 0 ? [] : [...decoded, ...earlier.slice(decoded.length)])
    return decoded
  }

  /** Returns bytes as base64. Reads base64 in a string or, as in Go, a list of numbers. */
  #binary(known: unknown, place: Place): string {
    const byte = this.#bytes[this.#at]
    if (byte === Byte.quote) {
      const text = this.#string()
      checkBase64(text)
      return text
    }
    if (byte !== Byte.openArray) throw this.#mismatch(place)
    const earlier = typeof known === 'string' ? base64Bytes(known) : []
    const decoded: number[] = []
    const element = { ...place, type: 'uint8' }
    for (const index of this.#elements()) {
      const isNull = this.#bytes[this.#at] === Byte.n
      const value = this.#value({ type: 'integer', format: 'uint8' }, undefined, element)
      decoded.push(isNull ? (earlier[index] ?? 0) : (value as number))
    }
    return bytesBase64(decoded)
  }

  #number(schema: JSONSchema, place: Place): number {
    const start = this.#at
    const byte = this.#bytes[start]
    if (byte !== Byte.minus && !(byte !== undefined && byte >= 0x30 && byte <= 0x39)) throw this.#mismatch(place)
    const length = this.#skip()
    const text = goText(this.#bytes.subarray(start, start + length))
    const value = Number(text)
    const fits = schema.type === 'number' ? Number.isFinite(value) : fitsInteger(text, schema.format)
    if (!fits) throw mismatch(`number ${text}`, place)
    // Converts -0 to 0.
    return value === 0 ? 0 : value
  }

  #string(): string {
    const start = this.#at
    const length = this.#skip()
    return goString(this.#bytes.subarray(start + 1, start + length - 1))
  }

  /** Decodes a value without a schema. Go keeps its text; this decoder parses it at once. */
  #any(): unknown {
    const start = this.#at
    const length = this.#skip()
    const text = goText(this.#bytes.subarray(start, start + length))
    this.#tooLarge ??= unrepresentable(text)
    return (JSON.parse(text) as unknown) ?? undefined
  }

  /** Yields the keys of the object at the current position; the caller reads each value in between. */
  *#keys(): Generator<string> {
    this.#at++
    this.#space()
    while (this.#bytes[this.#at] !== Byte.closeObject) {
      const key = this.#string()
      this.#space()
      this.#at++
      this.#space()
      yield key
      this.#next()
    }
    this.#at++
  }

  /** Yields the indexes of the list at the current position; the caller reads each value in between. */
  *#elements(): Generator<number> {
    this.#at++
    this.#space()
    for (let index = 0; this.#bytes[this.#at] !== Byte.closeArray; index++) {
      yield index
      this.#next()
    }
    this.#at++
  }

  /** Advances past a comma and white space, or to the closing bracket of the enclosing value. */
  #next(): void {
    this.#space()
    if (this.#bytes[this.#at] !== Byte.comma) return
    this.#at++
    this.#space()
  }

  #space(): void {
    while (isSpace(this.#bytes[this.#at])) this.#at++
  }

  /** Skips a value. @returns its length in bytes */
  #skip(): number {
    const start = this.#at
    let open = 0
    do {
      const byte = this.#bytes[this.#at]
      if (byte === Byte.quote) this.#skipString()
      else if (byte === Byte.openObject || byte === Byte.openArray) {
        open++
        this.#at++
      } else if (byte === Byte.closeObject || byte === Byte.closeArray) {
        open--
        this.#at++
      } else if (isSpace(byte) || byte === Byte.comma || byte === Byte.colon) this.#at++
      else while (isLiteral(this.#bytes[this.#at])) this.#at++
    } while (open > 0)
    return this.#at - start
  }

  #skipString(): void {
    const end = endOfPlainString(this.#bytes, this.#at)
    if (end !== undefined) {
      this.#at = end
      return
    }
    for (this.#at++; this.#bytes[this.#at] !== Byte.quote; this.#at++) if (this.#bytes[this.#at] === Byte.backslash) this.#at++
    this.#at++
  }

  #mismatch(place: Place): WireError {
    return mismatch(kindOf(this.#bytes[this.#at]), place)
  }
}

/** Whether the field is a pointer, slice or map in Go, so that null removes the value of an earlier duplicate key. */
const isPointer = ({ type, format, default: defaultValue, enum: values, additionalProperties }: JSONSchema): boolean =>
  type === 'boolean' ||
  type === 'array' ||
  format === 'byte' ||
  typeof additionalProperties === 'object' ||
  (type === 'integer' && defaultValue === undefined) ||
  // The failurePolicy of a handler.
  (type === 'string' && values?.includes('Ignore') === true)

const isLiteral = (byte: number | undefined): boolean =>
  byte !== undefined &&
  (byte === Byte.minus || byte === Byte.plus || byte === Byte.dot || (byte >= 0x30 && byte <= 0x39) || byte >= 0x41) &&
  byte !== Byte.openArray &&
  byte !== Byte.closeArray &&
  byte !== Byte.openObject &&
  byte !== Byte.closeObject

const ranges: { readonly [format: string]: readonly [bigint, bigint] } = {
  uint8: [0n, 255n],
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
}

function fitsInteger(text: string, format = 'int64'): boolean {
  if (!/^-?\d+$/.test(text) || text.length > 20 || (format === 'uint8' && text.startsWith('-'))) return false
  if (text.length < 10) return format !== 'uint8' || Number(text) < 256
  const [least, most] = ranges[format] ?? ranges.int64!
  const value = BigInt(text)
  return value >= least && value <= most
}

/** Returns the first number in the text that exceeds float64, which JSON.parse would convert to Infinity. */
function unrepresentable(text: string): string | undefined {
  if (!/\d[eE]\+?\d{2}|\d{300}/.test(text)) return undefined
  const strings = /"(?:[^"\\]|\\.)*"/g
  return text
    .replace(strings, '""')
    .match(/-?\d[\d.eE+-]*/g)
    ?.find((number) => !Number.isFinite(Number(number)))
}

function mismatch(value: string, { struct, path, type }: Place): WireError {
  const where = path.length === 0 ? 'value' : `struct field ${struct}.${path.join('.')}`
  return new WireError(`json: cannot unmarshal ${value} into Go ${where} of type ${type}`, { isJson: true })
}

function kindOf(byte: number | undefined): string {
  if (byte === Byte.quote) return 'string'
  if (byte === Byte.openArray) return 'array'
  if (byte === Byte.openObject) return 'object'
  return byte === Byte.t || byte === Byte.f ? 'bool' : 'number'
}
