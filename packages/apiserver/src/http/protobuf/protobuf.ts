/**
 * Decodes protobuf bodies, which Go clients of built-in kinds send, to the same object as a JSON body. Responses are JSON, which
 * all of these clients accept.
 * Upstream: k8s.io/apimachinery/pkg/runtime/serializer/protobuf.
 */
import { exactInteger, parseApiVersion, readJSON } from '@capstan/kube'
import type { ProtobufMessages } from '../../registry/resource.ts'

/** Error for bytes that are not a message of the type, with Go's text. */
export class ProtobufError extends Error {
  override readonly name = 'ProtobufError'
}

const prefix = Buffer.from('k8s\0')

/**
 * Decodes a message with its envelope.
 * @param messages messages of built-in kinds
 * @param fallback type of the message when its envelope names none
 * @throws ProtobufError
 */
export function decodeProtobuf(
  messages: ProtobufMessages,
  bytes: Buffer,
  fallback: { apiVersion: string; kind: string },
): { [field: string]: unknown } {
  if (!bytes.subarray(0, 4).equals(prefix)) {
    throw new ProtobufError('provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]')
  }
  const { typeMeta, raw } = readMessage(messages, 'envelope', bytes.subarray(4)) as {
    typeMeta?: { apiVersion?: string; kind?: string }
    raw?: string
  }
  const apiVersion = typeMeta?.apiVersion ?? fallback.apiVersion
  const kind = typeMeta?.kind ?? fallback.kind
  const message = messageOf(messages, apiVersion, kind)
  if (message === undefined)
    throw new ProtobufError(`no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)}`)
  return { apiVersion, kind, ...readMessage(messages, message, Buffer.from(raw ?? '', 'base64')) }
}

/** Returns the name of the message of a kind. DeleteOptions exist in every group. */
function messageOf(messages: ProtobufMessages, apiVersion: string, kind: string): string | undefined {
  if (kind === 'DeleteOptions') return 'meta/v1.DeleteOptions'
  const { group, version } = parseApiVersion(apiVersion)
  const message = `${group === '' ? 'core' : group.split('.')[0]!}/${version}.${kind}`
  return message in messages ? message : undefined
}

interface Field {
  readonly name: string
  readonly type: string
  readonly shape: 'one' | 'list' | 'map'
  /** Whether the members of the field belong to the surrounding object in JSON. */
  readonly isInline: boolean
  /** Whether the JSON contains the field even when it has the zero value of its type. */
  readonly keepsZero: boolean
}

/** Messages of the encoding itself, which are not API types. */
const encodingMessages: { readonly [message: string]: string } = {
  envelope: '1 typeMeta typeMeta, 2 raw bytes',
  typeMeta: '1 apiVersion string, 2 kind string',
}

const parsedFields = new WeakMap<ProtobufMessages, Map<string, ReadonlyMap<number, Field>>>()

function fieldsOf(messages: ProtobufMessages, message: string): ReadonlyMap<number, Field> {
  let fieldsByMessage = parsedFields.get(messages)
  if (!fieldsByMessage) parsedFields.set(messages, (fieldsByMessage = new Map()))
  let fields = fieldsByMessage.get(message)
  if (!fields)
    fieldsByMessage.set(
      message,
      (fields = new Map((messages[message] ?? encodingMessages[message] ?? '').split(', ').map(parseField))),
    )
  return fields
}

function parseField(text: string): [number, Field] {
  const [number, name = '', type = '', keep] = text.split(' ')
  const shape = type.startsWith('[]') ? 'list' : type.startsWith('{}') ? 'map' : 'one'
  const item = shape === 'one' ? type : type.slice(2)
  return [Number(number), { name, type: item, shape, isInline: name === '.', keepsZero: keep !== undefined }]
}

function readMessage(messages: ProtobufMessages, message: string, bytes: Buffer): { [field: string]: unknown } {
  const fields = fieldsOf(messages, message)
  const object: { [field: string]: unknown } = {}
  for (const { number, value } of wireFields(bytes)) {
    const field = fields.get(number)
    // Fields of later versions are ignored, as by upstream's decoder.
    if (!field) continue
    const { name, type, shape } = field
    if (shape === 'map') {
      const entry = readEntry(messages, type, value)
      Object.assign((object[name] ??= {}) as object, entry)
    } else if (shape === 'list') {
      const list = (object[name] ??= []) as unknown[]
      list.push(readValue(messages, type, value))
    } else if (field.isInline) {
      Object.assign(object, readValue(messages, type, value))
    } else {
      const decoded = readValue(messages, type, value)
      if (field.keepsZero || !isZero(decoded)) object[name] = decoded
    }
  }
  return object
}

function readEntry(messages: ProtobufMessages, type: string, value: bigint | Buffer): { [key: string]: unknown } {
  let key = ''
  let member: unknown = readValue(messages, type, Buffer.alloc(0))
  for (const { number, value: part } of wireFields(bytesOf(value))) {
    if (number === 1) key = bytesOf(part).toString('utf8')
    else if (number === 2) member = readValue(messages, type, part)
  }
  return { [key]: member }
}

function readValue(messages: ProtobufMessages, type: string, value: bigint | Buffer): unknown {
  switch (type) {
    case 'string':
      return bytesOf(value).toString('utf8')
    case 'bytes':
      return bytesOf(value).toString('base64')
    case 'int':
      return exactInteger(BigInt.asIntN(64, varintOf(value)))
    case 'bool':
      return varintOf(value) !== 0n
    case 'double':
      return bytesOf(value).readDoubleLE(0)
    case 'Quantity': {
      const text = wireFields(bytesOf(value)).find(({ number }) => number === 1)?.value
      return text === undefined ? '0' : bytesOf(text).toString('utf8')
    }
    case 'Time':
    case 'MicroTime':
      return readTime(type, bytesOf(value))
    case 'IntOrString': {
      const parts = new Map(wireFields(bytesOf(value)).map(({ number, value: part }) => [number, part]))
      return varintOf(parts.get(1) ?? 0n) === 0n
        ? Number(BigInt.asIntN(64, varintOf(parts.get(2) ?? 0n)))
        : bytesOf(parts.get(3) ?? Buffer.alloc(0)).toString('utf8')
    }
    case 'JSON': {
      const raw = wireFields(bytesOf(value)).find(({ number }) => number === 1)?.value
      return raw === undefined ? null : readJSON(bytesOf(raw).toString('utf8'))
    }
    case 'SchemaOrSchemas':
      return oneOrMany(messages, value, (items) => items.map((item) => readMessage(messages, schema, bytesOf(item))))
    case 'SchemaOrStrings':
      return oneOrMany(messages, value, (items) => items.map((item) => bytesOf(item).toString('utf8')))
    case 'SchemaOrBool': {
      const parts = new Map(wireFields(bytesOf(value)).map(({ number, value: part }) => [number, part]))
      const nested = parts.get(2)
      return nested === undefined ? varintOf(parts.get(1) ?? 0n) !== 0n : readMessage(messages, schema, bytesOf(nested))
    }
    default:
      // A named list type is encoded as a message whose first field is the list.
      if (type.startsWith('[]')) {
        const items = wireFields(bytesOf(value)).filter(({ number }) => number === 1)
        return items.map((item) => readValue(messages, type.slice(2), item.value))
      }
      return readMessage(messages, type, bytesOf(value))
  }
}

/** Message of a schema in a CustomResourceDefinition. */
const schema = 'apiextensions/v1.JSONSchemaProps'

/** Decodes a type that is one schema (field 1) or a list (field 2). Its JSON is the schema or the list. */
function oneOrMany(
  messages: ProtobufMessages,
  value: bigint | Buffer,
  readItems: (items: readonly (bigint | Buffer)[]) => readonly unknown[],
): unknown {
  const fields = wireFields(bytesOf(value))
  const items = fields.filter(({ number }) => number === 2)
  const single = fields.find(({ number }) => number === 1)
  if (items.length > 0) return readItems(items.map((item) => item.value))
  return single === undefined ? null : readMessage(messages, schema, bytesOf(single.value))
}

/** Decodes seconds and nanoseconds since the epoch; an empty message is null. */
function readTime(type: 'Time' | 'MicroTime', bytes: Buffer): string | null {
  if (bytes.length === 0) return null
  const parts = new Map(wireFields(bytes).map(({ number, value }) => [number, Number(BigInt.asIntN(64, varintOf(value)))]))
  const text = new Date((parts.get(1) ?? 0) * 1000).toISOString().slice(0, 19)
  if (type === 'Time') return `${text}Z`
  const micros = Math.floor((parts.get(2) ?? 0) / 1000)
  return `${text}.${String(micros).padStart(6, '0')}Z`
}

const isZero = (value: unknown): boolean => value === '' || value === 0 || value === false || value === null

interface WireField {
  readonly number: number
  /** A varint as a bigint, other values as bytes. */
  readonly value: bigint | Buffer
}

function wireFields(bytes: Buffer): WireField[] {
  const fields: WireField[] = []
  let position = 0
  const take = (length: number): Buffer => {
    if (length < 0 || position + length > bytes.length) throw new ProtobufError('unexpected EOF')
    position += length
    return bytes.subarray(position - length, position)
  }
  const varint = (): bigint => {
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = take(1)[0]!
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return BigInt.asUintN(64, value)
    }
    throw new ProtobufError('proto: integer overflow')
  }
  while (position < bytes.length) {
    const key = Number(varint())
    const number = key >>> 3
    if (number === 0) throw new ProtobufError('proto: illegal tag 0')
    switch (key & 7) {
      case 0:
        fields.push({ number, value: varint() })
        break
      case 1:
        fields.push({ number, value: take(8) })
        break
      case 2:
        fields.push({ number, value: take(Number(varint())) })
        break
      case 5:
        fields.push({ number, value: take(4) })
        break
      default:
        throw new ProtobufError(`proto: illegal wireType ${key & 7}`)
    }
  }
  return fields
}

function bytesOf(value: bigint | Buffer): Buffer {
  if (typeof value === 'bigint') throw new ProtobufError('proto: wrong wireType = 0')
  return value
}

function varintOf(value: bigint | Buffer): bigint {
  if (typeof value === 'bigint') return value
  if (value.length === 0) return 0n
  throw new ProtobufError('proto: wrong wireType = 2')
}
