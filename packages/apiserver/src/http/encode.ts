/**
 * JSON bytes of objects. A stored object is frozen and shared, and so are its bytes: they are made at most once, however many
 * lists and watchers show them. Where it is held as JSON, that is what they are made of, and they are not kept beside it.
 */
import { writeJSON } from '@capstan/kube'
import type { KubeObject, ObjectList, Status, WatchEvent } from '@capstan/kube'
import { isPacked, jsonOf } from '../store/packed.ts'

export function objectBytes(object: object): Buffer {
  return cached(whole, object, () => jsonOf(object))
}

/** The object as a line: as text where nobody keeps its bytes. */
export const objectLine = (object: object): Buffer | string =>
  isPacked(object) || !Object.isFrozen(object) ? `${jsonOf(object)}\n` : Buffer.concat([objectBytes(object), lineEnd])

/** A list as a line, put together from the bytes of its items. Upstream leaves the type out of the items of built-in lists. */
export const listBytes = (list: ObjectList, options?: { typedItems?: boolean }): Buffer =>
  Buffer.concat([...listParts(list, options)])

/** The same in parts of some size, each made when it is asked for: a long list is never there as a whole. */
export function* listParts({ items, ...list }: ObjectList, { typedItems = true } = {}): Generator<Buffer, void> {
  let parts: (Buffer | string)[] = [`${JSON.stringify(list).slice(0, -1)},"items":[`]
  let size = 0
  for (const [index, item] of items.entries()) {
    if (index > 0) parts.push(',')
    const part = isPacked(item) ? packedItem(item, typedItems) : typedItems ? objectBytes(item) : untypedBytes(item)
    parts.push(part)
    size += part.length
    if (size < PartSize) continue
    yield joined(parts)
    parts = []
    size = 0
  }
  parts.push(']}\n')
  yield joined(parts)
}

/** Small enough that the room of one is used again for the next. */
const PartSize = 64 * 1024

const joined = (parts: readonly (Buffer | string)[]): Buffer =>
  parts.every((part) => typeof part === 'string')
    ? Buffer.from(parts.join(''))
    : Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)))

/** One line of a watch. From then on the object's own bytes are a part of it, so that both take their room once. */
export function eventBytes(type: WatchEvent['type'], object: object): Buffer {
  if (isPacked(object)) return Buffer.from(`{"type":"${type}","object":${jsonOf(object)}}\n`)
  let lines = events.get(object)
  if (!lines) events.set(object, (lines = {}))
  let line = lines[type]
  if (!line) {
    const start = eventStarts[type]
    lines[type] = line = Buffer.concat([start, objectBytes(object), eventEnd])
    if (Object.isFrozen(object)) whole.set(object, line.subarray(start.length, line.length - eventEnd.length))
  }
  return line
}

/** The line that ends a watch which cannot go on. */
export const errorEventBytes = (status: Status): Buffer => Buffer.from(`${JSON.stringify({ type: 'ERROR', object: status })}\n`)

const untypedBytes = (item: KubeObject): Buffer => cached(untyped, item, () => untypedJSON(item))

const untypedJSON = (item: KubeObject): string => writeJSON({ ...item, apiVersion: undefined, kind: undefined })

function packedItem(item: KubeObject, isTyped: boolean): string {
  const json = jsonOf(item)
  if (isTyped) return json
  const type = typeAtStart.exec(json)
  return type ? `{${json.slice(type[0].length)}` : untypedJSON(item)
}

/** Both members of a type, and not the end of the object. */
const typeAtStart = /^\{(?:"apiVersion":"[^"\\]*","kind":"[^"\\]*"|"kind":"[^"\\]*","apiVersion":"[^"\\]*"),/

/** Memory, not state: what is here can be made again from its key at any time, and goes when the key goes. */
const whole = new WeakMap<object, Buffer>()
const untyped = new WeakMap<object, Buffer>()
const events = new WeakMap<object, { [type in WatchEvent['type']]?: Buffer }>()

function cached(cache: WeakMap<object, Buffer>, object: object, make: () => string): Buffer {
  let bytes = cache.get(object)
  if (!bytes) {
    bytes = Buffer.from(make())
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
