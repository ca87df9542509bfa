/**
 * Decodes and encodes values as Go does. A decoded struct omits fields with Go's zero value: `false`, `0`, `""`, `null`, a zero duration
 * or time, and a struct whose fields are all omitted. Pointers, and items of lists and maps, keep zeros.
 * Upstream: encoding/json, and the types of Cluster API.
 */
import { formatNanoseconds, isRecord, type JSONSchema, parseNanoseconds } from '@capstan/kube'
import { recordedTypes } from './recorded-types.ts'

/** A field of a Go struct. */
export interface GoField {
  readonly name: string
  /** `*T` is a pointer, `[]T` a list and `{}T` a map of strings to T. A struct is named by package and type: `core/v1beta1.Machine`. */
  readonly type: string
  /** `omitempty`: zero scalars, nil pointers, empty lists and empty maps are omitted; structs and times are not. */
  readonly omitsEmpty: boolean
  /** `omitzero`: zero structs and times are omitted as well. */
  readonly omitsZero: boolean
  /** Whether the schema requires the field. False for fields of types that only v1beta2 uses. */
  readonly required: boolean
  /** In versions before v1beta2, schema keywords that do not follow from the type; keywords of list items and map values are under `[]`. */
  readonly keywords?: JSONSchema & { '[]'?: JSONSchema }
  /** In versions before v1beta2, the whole schema, if it contradicts the type. */
  readonly schema?: JSONSchema
}

export type Struct = { [field: string]: unknown }

let structs: Map<string, readonly GoField[]> | undefined

/** Returns the fields of a struct in the order in which Go writes them. @throws TypeError for an unknown struct */
export function fieldsOf(struct: string): readonly GoField[] {
  structs ??= parseTypes(recordedTypes)
  const fields = structs.get(struct)
  if (!fields) throw new TypeError(`no recorded Go type ${struct}`)
  return fields
}

function parseTypes(text: string): Map<string, readonly GoField[]> {
  const parsed = new Map<string, GoField[]>()
  let fields: GoField[] = []
  for (const line of text.trim().split('\n')) {
    if (line.startsWith('  ')) fields.push(parseField(line.slice(2)))
    else parsed.set(line, (fields = []))
  }
  return parsed
}

/** Parses the line of a field in `recordedTypes`. The doc comment of `recordedTypes` describes the format. */
function parseField(line: string): GoField {
  const [name = '', type = '', flags = ''] = line.split(' ', 3)
  const rest = line.slice(name.length + type.length + flags.length + 3)
  return {
    name,
    type,
    omitsEmpty: flags.includes('e'),
    omitsZero: flags.includes('z'),
    required: flags.includes('r'),
    ...(rest.startsWith('=') ? { schema: JSON.parse(rest.slice(1)) as JSONSchema } : {}),
    ...(rest.startsWith('{') ? { keywords: JSON.parse(rest) as JSONSchema } : {}),
  }
}

export const isPointer = (type: string): boolean => type.startsWith('*')
export const isList = (type: string): boolean => type.startsWith('[]')
export const isMap = (type: string): boolean => type.startsWith('{}')
export const isStruct = (type: string): boolean => type.includes('.') && !/^[*[{]/.test(type)

/** Decodes a JSON value as Go does. Returns `undefined` for Go's zero value. */
export function decode(type: string, value: unknown): unknown {
  if (value === undefined || value === null) return undefined
  if (isPointer(type)) return decodePointer(type.slice(1), value)
  if (isList(type)) return Array.isArray(value) ? value.map((item) => decodeItem(type.slice(2), item)) : undefined
  if (isMap(type)) {
    if (!isRecord(value)) return undefined
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, decodeItem(type.slice(2), item)]))
  }
  if (isStruct(type)) return nonZero(decodeStruct(type, value))
  switch (type) {
    case 'time':
      return decodeTime(value)
    case 'duration': {
      const nanoseconds = parseNanoseconds(value as string)
      return nanoseconds === 0n ? undefined : formatNanoseconds(nanoseconds)
    }
    case 'bool':
    case 'int':
    case 'string':
      return value === false || value === 0 || value === '' ? undefined : value
    default:
      return value
  }
}

/** Decodes a value to which a pointer refers. Keeps a zero. */
function decodePointer(type: string, value: unknown): unknown {
  if (isStruct(type)) return decodeStruct(type, value)
  return decode(type, value) ?? zeroOf(type)
}

/** Decodes an item of a list or a value of a map. Keeps zeros: an empty object for a struct, and `0`, `''` or `false` for a scalar. */
function decodeItem(type: string, value: unknown): unknown {
  if (isPointer(type)) return value === null ? null : decodePointer(type.slice(1), value)
  return decode(type, value) ?? zeroOf(type)
}

function decodeStruct(type: string, value: unknown): Struct {
  const decoded: Struct = {}
  if (!isRecord(value)) return decoded
  for (const { name, type: fieldType } of fieldsOf(type)) {
    const field = fieldType === 'metadata' ? value[name] : decode(fieldType, value[name])
    if (field !== undefined) decoded[name] = field
  }
  return decoded
}

export const nonZero = (struct: Struct): Struct | undefined => (Object.keys(struct).length === 0 ? undefined : struct)

const zeroTime = '0001-01-01T00:00:00Z'

/** Decodes a time as metav1.Time does: whole seconds in UTC. */
function decodeTime(value: unknown): string | undefined {
  const time = new Date(value as string)
  if (Number.isNaN(time.getTime())) return value as string
  const text = `${time.toISOString().slice(0, 19)}Z`
  return text === zeroTime ? undefined : text
}

/** Returns Go's zero value of a type. For structs, it is an empty object. */
export function zeroOf(type: string): unknown {
  if (isStruct(type)) return {}
  switch (type) {
    case 'bool':
      return false
    case 'int':
    case 'intOrString':
      return 0
    case 'string':
      return ''
    case 'duration':
      return '0s'
    default:
      return null
  }
}

/** Encodes a decoded value as Go does. */
export function encode(type: string, value: unknown): unknown {
  if (isPointer(type)) return value === undefined || value === null ? null : encode(type.slice(1), value)
  if (isList(type)) return Array.isArray(value) ? value.map((item) => encode(type.slice(2), item)) : null
  if (isMap(type)) {
    if (!isRecord(value)) return null
    const keys = Object.keys(value).sort()
    return Object.fromEntries(keys.map((key) => [key, encode(type.slice(2), value[key])]))
  }
  if (isStruct(type)) return encodeStruct(type, isRecord(value) ? value : {})
  return value ?? zeroOf(type)
}

/** Encodes a decoded struct as Go does, without the fields for which `isExcluded` returns true. */
export function encodeStruct(type: string, value: Struct, isExcluded: (field: string) => boolean = () => false): Struct {
  const encoded: Struct = {}
  for (const field of fieldsOf(type)) {
    const { name, type: fieldType } = field
    if (isExcluded(name) || isOmitted(field, value[name])) continue
    encoded[name] = encode(fieldType, value[name])
  }
  return encoded
}

function isOmitted({ type, omitsEmpty, omitsZero }: GoField, value: unknown): boolean {
  if (value === undefined) return omitsZero || (omitsEmpty && !isStruct(type) && type !== 'time')
  if (!omitsEmpty || isPointer(type)) return false
  if (type === 'bytes') return value === ''
  if (isList(type)) return (value as unknown[]).length === 0
  return isMap(type) && Object.keys(value as object).length === 0
}
