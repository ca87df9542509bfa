/**
 * Encodes objects as JSON bytes. The bytes of a frozen object, such as a stored object, are cached: all lists and watches that send the
 * object share them. Bytes without apiVersion and kind, for built-in lists, are cached separately. The bytes of packed objects, which
 * the store keeps as JSON text, are not cached.
 */
import { inPieces, isLong, writeJSON, writingJSON } from '@capstan/kube'
import type { Clock, KubeObject, ObjectList, Status, WatchEvent } from '@capstan/kube'
import { isPacked, jsonOf } from '../store/packed.ts'

/** Encodes an object; caches the bytes of a frozen object that is not packed. */
export function objectBytes(object: object): Buffer {
  return cachedBytes(typed, object, () => jsonOf(object))
}

/** Encodes an object as a line. Returns a string for an object that is packed or not frozen, because `objectBytes` does not cache its bytes. */
export const objectLine = (object: object): Buffer | string =>
  isPacked(object) || !Object.isFrozen(object) ? `${jsonOf(object)}\n` : Buffer.concat([objectBytes(object), lineEnd])

/**
 * Encodes an object as a line, in pieces; returns `undefined` for an object of few values, and for a packed object, which already is JSON.
 */
export const longLine = (clock: Clock, object: object): Promise<string> | undefined =>
  isPacked(object) || !isLong(object) ? undefined : lineInPieces(clock, object)

const lineInPieces = async (clock: Clock, object: object): Promise<string> => `${await inPieces(clock, writingJSON(object))}\n`

/** Joins the bytes of the items to a list. `typedItems: false` omits apiVersion and kind of the items, as upstream in built-in lists. */
export const listBytes = (list: ObjectList, options?: { typedItems?: boolean }): Buffer =>
  Buffer.concat([...listParts(list, options)])

/** Like `listBytes`, in parts that are encoded on demand, so that no buffer contains all bytes of a long list. */
export function* listParts({ items, ...list }: ObjectList, { typedItems = true } = {}): Generator<Buffer, void> {
  let parts: (Buffer | string)[] = [`${JSON.stringify(list).slice(0, -1)},"items":[`]
  let size = 0
  for (const [index, item] of items.entries()) {
    if (index > 0) parts.push(',')
    const part = isPacked(item) ? packedItem(item, typedItems) : typedItems ? objectBytes(item) : untypedBytes(item)
    parts.push(part)
    size += part.length
    if (size < PartSize) continue
    yield joinParts(parts)
    parts = []
    size = 0
  }
  parts.push(']}\n')
  yield joinParts(parts)
}

/**
 * Size at which a part ends, in bytes (of packed objects: in UTF-16 code units). Small enough that the allocator reuses the memory of one
 * part for the next.
 */
const PartSize = 64 * 1024

const joinParts = (parts: readonly (Buffer | string)[]): Buffer =>
  parts.every((part) => typeof part === 'string')
    ? Buffer.from(parts.join(''))
    : Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)))

/**
 * Encodes one event of a watch as a line. Caches the line, unless the object is packed. The cached bytes of a frozen object become a slice
 * of the line, so that both use the same memory.
 */
export function eventBytes(type: WatchEvent['type'], object: object): Buffer {
  if (isPacked(object)) return Buffer.from(`{"type":"${type}","object":${jsonOf(object)}}\n`)
  let lines = events.get(object)
  if (!lines) events.set(object, (lines = {}))
  let line = lines[type]
  if (!line) {
    const start = eventStarts[type]
    lines[type] = line = Buffer.concat([start, objectBytes(object), eventEnd])
    if (Object.isFrozen(object)) typed.set(object, line.subarray(start.length, line.length - eventEnd.length))
  }
  return line
}

/** Encodes the last event of a watch that ends with an error. */
export const errorEventBytes = (status: Status): Buffer => Buffer.from(`${JSON.stringify({ type: 'ERROR', object: status })}\n`)

const untypedBytes = (item: KubeObject): Buffer => cachedBytes(untyped, item, () => untypedJSON(item))

const untypedJSON = (item: KubeObject): string => writeJSON({ ...item, apiVersion: undefined, kind: undefined })

function packedItem(item: KubeObject, isTyped: boolean): string {
  const json = jsonOf(item)
  if (isTyped) return json
  const type = typeAtStart.exec(json)
  return type ? `{${json.slice(type[0].length)}` : untypedJSON(item)
}

/** Matches apiVersion and kind at the start of an object that has further members. */
const typeAtStart = /^\{(?:"apiVersion":"[^"\\]*","kind":"[^"\\]*"|"kind":"[^"\\]*","apiVersion":"[^"\\]*"),/

/** Caches of encoded bytes by object: V8's garbage collector releases an entry together with its object. */
const typed = new WeakMap<object, Buffer>()
const untyped = new WeakMap<object, Buffer>()
const events = new WeakMap<object, { [type in WatchEvent['type']]?: Buffer }>()

function cachedBytes(cache: WeakMap<object, Buffer>, object: object, encode: () => string): Buffer {
  let bytes = cache.get(object)
  if (!bytes) {
    bytes = Buffer.from(encode())
    if (Object.isFrozen(object) && !isPacked(object)) cache.set(object, bytes)
  }
  return bytes
}

const lineEnd = Buffer.from('\n')
const eventEnd = Buffer.from('}\n')
const eventStarts = {
  ADDED: Buffer.from('{"type":"ADDED","object":'),
  MODIFIED: Buffer.from('{"type":"MODIFIED","object":'),
  DELETED: Buffer.from('{"type":"DELETED","object":'),
  BOOKMARK: Buffer.from('{"type":"BOOKMARK","object":'),
}
