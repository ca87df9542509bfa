/**
 * Decodes protobuf bodies, which Go clients send for built-in kinds, into the object of the equivalent JSON body. Responses are JSON, which
 * these clients accept by default.
 * Upstream: k8s.io/apimachinery/pkg/runtime/serializer/protobuf.
 */
import {
  exactInteger,
  MaxObjects,
  measureJSON,
  parseApiVersion,
  readJSON,
  scanJSON,
  seconds,
  setMember,
  type Work,
} from '@capstan/kube'
import type { ProtobufMessages } from '../../registry/resource.ts'
import { schemeName } from '../../verbs/errors.ts'
import { tooManyObjects } from '../errors.ts'

/** Error for an invalid protobuf body. Where upstream rejects the body, too, the text is upstream's or resembles it. */
export class ProtobufError extends Error {
  override readonly name = 'ProtobufError'
  /** Kind and version of the message; `undefined` when the envelope is invalid. */
  sentType: { readonly kind: string; readonly version: string } | undefined
}

const prefix = Buffer.from('k8s\0')

interface Members {
  [field: string]: unknown
}

/**
 * Decodes a body: the envelope and the message in it. Yields between pieces of the work.
 * @param messages messages of built-in kinds
 * @param fallback type of the message when its envelope names none
 * @param maxDepth maximum nesting depth of messages and of JSON; upstream has none for messages
 * @throws ProtobufError, or StatusError RequestEntityTooLarge for too many objects and lists
 */
export function* decodingProtobuf(
  messages: ProtobufMessages,
  bytes: Buffer,
  fallback: { apiVersion: string; kind: string },
  maxDepth: number,
): Work<Members> {
  if (bytes.length === 0) throw new ProtobufError('empty data')
  if (!bytes.subarray(0, prefix.length).equals(prefix)) {
    throw new ProtobufError('provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]')
  }
  if (bytes.length === prefix.length) throw new ProtobufError('empty body')
  const decoding: Decoding = { messages, maxDepth, fields: 0, objects: 0 }
  const { apiVersion = fallback.apiVersion, kind = fallback.kind, message } = yield* decodingEnvelope(decoding, bytes)
  try {
    const name = messageOf(messages, apiVersion, kind)
    if (name === undefined) {
      const unknown = `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)}`
      throw new ProtobufError(`${unknown} in scheme ${JSON.stringify(schemeName)}`)
    }
    return { apiVersion, kind, ...(yield* decodingMessage(decoding, name, message, 1)) }
  } catch (err) {
    if (err instanceof ProtobufError) err.sentType = { kind, version: parseApiVersion(apiVersion).version }
    throw err
  }
}

function* decodingEnvelope(decoding: Decoding, bytes: Buffer): Work<{ apiVersion?: string; kind?: string; message: WireReader }> {
  const envelope = new WireReader(bytes, prefix.length, bytes.length)
  const type: { apiVersion?: string; kind?: string } = {}
  let message = new WireReader(bytes, 0, 0)
  while (envelope.next()) {
    if (endsPiece(decoding)) yield
    if (envelope.number === 2) message = envelope.message('Raw')
    if (envelope.number !== 1) continue
    for (const typeMeta = envelope.message('TypeMeta'); typeMeta.next(); ) {
      if (endsPiece(decoding)) yield
      if (typeMeta.number === 1) type.apiVersion = typeMeta.text('APIVersion')
      if (typeMeta.number === 2) type.kind = typeMeta.text('Kind')
    }
  }
  return { ...type, message }
}

/** Returns the name of the message of a kind; `undefined` for an unknown kind. DeleteOptions exist in every group. */
function messageOf(messages: ProtobufMessages, apiVersion: string, kind: string): string | undefined {
  if (kind === 'DeleteOptions') return 'meta/v1.DeleteOptions'
  const { group, version } = parseApiVersion(apiVersion)
  const message = `${group === '' ? 'core' : group.split('.')[0]!}/${version}.${kind}`
  return Object.hasOwn(messages, message) ? message : undefined
}

interface Field {
  readonly name: string
  /** Name in Go, for error texts. Approximate: abbreviations such as UID have only one uppercase letter. */
  readonly goName: string
  readonly type: string
  readonly shape: 'one' | 'list' | 'map'
  /** Whether the members of the field belong to the surrounding object in JSON. */
  readonly isInline: boolean
  /** Whether the JSON keeps the field when the message contains it with the zero value of its type. */
  readonly keepsZero: boolean
}

const parsedFields = new WeakMap<ProtobufMessages, Map<string, ReadonlyMap<number, Field>>>()

function fieldsOf(messages: ProtobufMessages, message: string): ReadonlyMap<number, Field> {
  let fieldsByMessage = parsedFields.get(messages)
  if (!fieldsByMessage) parsedFields.set(messages, (fieldsByMessage = new Map()))
  let fields = fieldsByMessage.get(message)
  if (!fields) fieldsByMessage.set(message, (fields = new Map((messages[message] ?? '').split(', ').map(parseField))))
  return fields
}

/** Parses a field in the format of `ProtobufMessages`, such as `11 labels {}string`. `[]` before the type is a list, `{}` a map. */
function parseField(text: string): [number, Field] {
  const [number, name = '', type = '', keep] = text.split(' ')
  const shape = type.startsWith('[]') ? 'list' : type.startsWith('{}') ? 'map' : 'one'
  const item = shape === 'one' ? type : type.slice(2)
  return [
    Number(number),
    { name, goName: goName(name), type: item, shape, isInline: name === '.', keepsZero: keep !== undefined },
  ]
}

/** State of one decoding. */
interface Decoding {
  readonly messages: ProtobufMessages
  /** Maximum nesting depth of the decoded object. Also limits the nested generators, so that they do not exhaust the stack. */
  readonly maxDepth: number
  /** Number of fields that were read in the current piece. */
  fields: number
  /** Number of objects and lists that were created. */
  objects: number
}

/** Number of fields that are read in one piece. */
const FieldsInPiece = 1024

/** Counts a field that was read. Reports whether the piece has enough fields, so that the caller must yield. */
function endsPiece(decoding: Decoding): boolean {
  if (++decoding.fields <= FieldsInPiece) return false
  decoding.fields = 0
  return true
}

/** Counts new objects and lists. @throws StatusError RequestEntityTooLarge */
function countObjects(decoding: Decoding, count: number): void {
  decoding.objects += count
  if (decoding.objects > MaxObjects) throw tooManyObjects()
}

function* decodingMessage(decoding: Decoding, message: string, reader: WireReader, depth: number): Work<Members> {
  if (depth > decoding.maxDepth) throw new ProtobufError('exceeded max depth')
  countObjects(decoding, 1)
  const fields = fieldsOf(decoding.messages, message)
  const object: Members = {}
  while (reader.next()) {
    if (endsPiece(decoding)) yield
    const field = fields.get(reader.number)
    // Fields of later versions are ignored, as by upstream's decoder.
    if (!field) continue
    const { name, type, shape } = field
    if (shape !== 'one' && object[name] === undefined) {
      countObjects(decoding, 1)
      object[name] = shape === 'map' ? {} : []
    }
    if (shape === 'map') {
      const [key, member] = yield* decodingEntry(decoding, field, reader.message(field.goName), depth + 1)
      setMember(object[name] as Members, key, member)
      continue
    }
    const value = isScalar(type)
      ? readScalar(field, reader)
      : yield* decodingValue(decoding, field, reader, depth + (shape === 'list' ? 2 : 1))
    if (shape === 'list') (object[name] as unknown[]).push(value)
    else if (field.isInline) Object.assign(object, value)
    else if (field.keepsZero || !isZero(value)) object[name] = value
  }
  return object
}

/** Decodes a member of a map: its key is field 1, its value field 2. */
function* decodingEntry(
  decoding: Decoding,
  field: Field,
  entry: WireReader,
  depth: number,
): Work<readonly [key: string, member: unknown]> {
  const { type, goName } = field
  let key = ''
  let member: unknown
  while (entry.next()) {
    if (endsPiece(decoding)) yield
    if (entry.number === 1) key = entry.text(goName)
    else if (entry.number === 2)
      member = isScalar(type) ? readScalar(field, entry) : yield* decodingValue(decoding, field, entry, depth + 1)
  }
  if (member !== undefined) return [key, member]
  const empty = emptyValue(type)
  if (typeof empty === 'object') countObjects(decoding, 1)
  return [key, empty]
}

/** Returns the value of a map entry whose message omits the value, by the type of the map's values. */
function emptyValue(type: string): unknown {
  const zeros: Members = { string: '', bytes: '', int: 0, bool: false, double: 0, Quantity: '0', IntOrString: 0 }
  if (isScalar(type) || specialNames.has(type)) return zeros[type] ?? null
  return type.startsWith('[]') ? [] : {}
}

/** Decodes a value that is encoded as a message. */
function decodingValue(decoding: Decoding, { goName, type }: NamedType, reader: WireReader, depth: number): Work<unknown> {
  const value = reader.message(goName)
  return type.startsWith('[]') || specialNames.has(type)
    ? decodingSpecial(decoding, type, value, depth)
    : decodingMessage(decoding, type, value, depth)
}

type NamedType = Pick<Field, 'goName' | 'type'>

/** Types whose JSON is not an object with the fields of the message. */
const specialNames: ReadonlySet<string> = new Set([
  'SchemaOrSchemas',
  'SchemaOrStrings',
  'SchemaOrBool',
  'Quantity',
  'Time',
  'MicroTime',
  'IntOrString',
  'JSON',
])

function* decodingSpecial(decoding: Decoding, type: string, value: WireReader, depth: number): Work<unknown> {
  switch (type) {
    case 'SchemaOrSchemas':
    case 'SchemaOrStrings': {
      // The type is one schema (field 1) or a list (field 2). Its JSON is the schema or the list.
      let single: unknown = null
      let list: unknown[] | undefined
      while (value.next()) {
        if (endsPiece(decoding)) yield
        if (value.number === 1) single = yield* decodingMessage(decoding, schema, value.message('Schema'), depth + 1)
        if (value.number !== 2) continue
        if (!list) countObjects(decoding, 1)
        list ??= []
        if (type === 'SchemaOrStrings') list.push(value.text('Property'))
        else list.push(yield* decodingMessage(decoding, schema, value.message('JSONSchemas'), depth + 1))
      }
      return list ?? single
    }
    case 'SchemaOrBool': {
      let allows = false
      let nested: Members | undefined
      while (value.next()) {
        if (endsPiece(decoding)) yield
        if (value.number === 1) allows = value.integer('Allows') !== 0
        else if (value.number === 2) nested = yield* decodingMessage(decoding, schema, value.message('Schema'), depth + 1)
      }
      return nested ?? allows
    }
    case 'Quantity':
      return (yield* decodingText(decoding, value, 'String_')) ?? '0'
    case 'Time':
    case 'MicroTime':
      return yield* decodingTime(decoding, type, value)
    case 'IntOrString':
      return yield* decodingIntOrString(decoding, value)
    case 'JSON': {
      const text = (yield* decodingText(decoding, value, 'Raw')) ?? ''
      return text === '' ? null : yield* decodingJSON(decoding, text, depth)
    }
    default: {
      // A named list type is encoded as a message whose first field is the list.
      countObjects(decoding, 1)
      const item = { goName: 'Items', type: type.slice(2) }
      const list: unknown[] = []
      while (value.next()) {
        if (endsPiece(decoding)) yield
        if (value.number !== 1) continue
        list.push(isScalar(item.type) ? readScalar(item, value) : yield* decodingValue(decoding, item, value, depth + 1))
      }
      return list
    }
  }
}

/** Message of a schema in a CustomResourceDefinition. */
const schema = 'apiextensions/v1.JSONSchemaProps'

const scalars = ['string', 'bytes', 'int', 'bool', 'double'] as const
type Scalar = (typeof scalars)[number]
const scalarNames: ReadonlySet<string> = new Set(scalars)
const isScalar = (type: string): type is Scalar => scalarNames.has(type)

function readScalar({ goName: name, type }: NamedType, reader: WireReader): unknown {
  switch (type as Scalar) {
    case 'string':
      return reader.text(name)
    case 'bytes':
      return reader.text(name, 'base64')
    case 'int':
      return reader.integer(name)
    case 'bool':
      return reader.integer(name) !== 0
    case 'double':
      return reader.double(name)
  }
}

/** Decodes a message whose only field is a text. */
function* decodingText(decoding: Decoding, message: WireReader, name: string): Work<string | undefined> {
  let text: string | undefined
  while (message.next()) {
    if (endsPiece(decoding)) yield
    if (message.number === 1) text = message.text(name)
  }
  return text
}

/** Parses JSON whose outermost object has the depth `depth`. */
function* decodingJSON(decoding: Decoding, text: string, depth: number): Work<unknown> {
  const measured = measureJSON(text)
  if (measured.depth > decoding.maxDepth - depth + 1) throw new ProtobufError('exceeded max depth')
  countObjects(decoding, measured.objects)
  yield
  try {
    return readJSON(text)
  } catch {
    throw new ProtobufError(scanJSON(text).error ?? 'unexpected end of JSON input')
  }
}

function* decodingIntOrString(decoding: Decoding, parts: WireReader): Work<number | bigint | string> {
  let isText = false
  let integer: number | bigint = 0
  let text = ''
  while (parts.next()) {
    if (endsPiece(decoding)) yield
    if (parts.number === 1) isText = parts.integer('Type') !== 0
    else if (parts.number === 2) integer = parts.integer('IntVal')
    else if (parts.number === 3) text = parts.text('StrVal')
  }
  return isText ? text : integer
}

/** Seconds since the epoch of the first and the last moment that RFC 3339 can express. */
const Times = { first: -62_167_219_200, last: 253_402_300_799 }

/**
 * Decodes seconds and nanoseconds since the epoch; an empty message is null. As upstream, uses the nanoseconds only for MicroTime. Rejects
 * times outside of the years 0 to 9999: upstream accepts them, and writes them as JSON that Go clients cannot read.
 */
function* decodingTime(decoding: Decoding, type: 'Time' | 'MicroTime', parts: WireReader): Work<string | null> {
  if (parts.isEmpty) return null
  let time = 0
  let nanoseconds = 0
  while (parts.next()) {
    if (endsPiece(decoding)) yield
    if (parts.number === 1) time = Number(parts.integer('Seconds'))
    else if (parts.number === 2) nanoseconds = Number(BigInt.asIntN(32, BigInt(parts.integer('Nanos'))))
  }
  // As upstream, truncates to microseconds. The nanoseconds may be negative.
  const microseconds = type === 'Time' ? 0 : Math.trunc(nanoseconds / 1000)
  time += Math.floor(microseconds / 1e6)
  if (time < Times.first || time > Times.last) throw new ProtobufError('a time is not in the years 0 to 9999')
  const text = new Date(seconds(time)).toISOString().slice(0, 19)
  const fraction = microseconds - Math.floor(microseconds / 1e6) * 1e6
  return type === 'Time' ? `${text}Z` : `${text}.${String(fraction).padStart(6, '0')}Z`
}

const isZero = (value: unknown): boolean => value === '' || value === 0 || value === false || value === null

const goName = (name: string): string => (name === 'metadata' ? 'ObjectMeta' : `${name.charAt(0).toUpperCase()}${name.slice(1)}`)

/** Wire types of protobuf. */
const Wire = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const

const LastFieldNumber = 2 ** 29 - 1

/** Reads the fields of a message one after the other. */
class WireReader {
  /** Number and wire type of the current field. */
  number = 0
  #wireType = 0
  /** Value of the current field if it is a varint. */
  #varint: number | bigint = 0
  /** Position of the value of the current field if it is not a varint. */
  #from = 0
  readonly #bytes: Buffer
  #position: number
  readonly #end: number

  constructor(bytes: Buffer, start: number, end: number) {
    this.#bytes = bytes
    this.#position = start
    this.#end = end
  }

  get isEmpty(): boolean {
    return this.#position === this.#end
  }

  /** Reads the next field. Returns false at the end. @throws ProtobufError */
  next(): boolean {
    if (this.isEmpty) return false
    const key = Number(this.#readVarint())
    this.number = Math.floor(key / 8)
    this.#wireType = key % 8
    if (this.number === 0 || this.number > LastFieldNumber) throw new ProtobufError('proto: illegal tag 0')
    switch (this.#wireType) {
      case Wire.varint:
        this.#varint = this.#readVarint()
        break
      case Wire.fixed64:
        this.#skip(8)
        break
      case Wire.bytes:
        this.#skip(Number(this.#readVarint()))
        break
      case Wire.fixed32:
        this.#skip(4)
        break
      default:
        throw new ProtobufError(`proto: illegal wireType ${this.#wireType}`)
    }
    return true
  }

  integer(name: string): number | bigint {
    this.#expect(Wire.varint, name)
    return typeof this.#varint === 'number' ? this.#varint : exactInteger(BigInt.asIntN(64, this.#varint))
  }

  double(name: string): number {
    this.#expect(Wire.fixed64, name)
    const value = this.#bytes.readDoubleLE(this.#from)
    if (Number.isFinite(value)) return value
    const text = Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf'
    throw new ProtobufError(`json: unsupported value: ${text}`)
  }

  /** Returns the bytes of the field as text or base64. Invalid UTF-8 is replaced, as upstream does when it writes JSON. */
  text(name: string, encoding: 'utf8' | 'base64' = 'utf8'): string {
    this.#expect(Wire.bytes, name)
    return this.#bytes.toString(encoding, this.#from, this.#position)
  }

  message(name: string): WireReader {
    this.#expect(Wire.bytes, name)
    return new WireReader(this.#bytes, this.#from, this.#position)
  }

  #expect(wireType: number, name: string): void {
    if (this.#wireType !== wireType) throw new ProtobufError(`proto: wrong wireType = ${this.#wireType} for field ${name}`)
  }

  #skip(length: number): void {
    if (length > this.#end - this.#position) throw new ProtobufError('unexpected EOF')
    this.#from = this.#position
    this.#position += length
  }

  #readVarint(): number | bigint {
    const start = this.#position
    let value = 0
    // Each byte contains seven bits of the value. A number represents the 49 bits of seven bytes exactly.
    for (let factor = 1; factor < 2 ** 49; factor *= 2 ** 7) {
      const byte = this.#readByte()
      value += (byte & 0x7f) * factor
      if (byte < 0x80) return value
    }
    this.#position = start
    return this.#readLongVarint()
  }

  #readLongVarint(): bigint {
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#readByte()
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return BigInt.asUintN(64, value)
    }
    throw new ProtobufError('proto: integer overflow')
  }

  #readByte(): number {
    if (this.isEmpty) throw new ProtobufError('unexpected EOF')
    return this.#bytes[this.#position++]!
  }
}
