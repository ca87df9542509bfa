/**
 * JSON bytes of objects. A stored object is frozen and shared, and so are its bytes: they are made at most once, however many
 * lists and watchers show them.
 */
import type { KubeObject, ObjectList, Status, WatchEvent } from '@capstan/kube'

export function objectBytes(object: object): Buffer {
  return cached(whole, object, () => JSON.stringify(object))
}

/** A list as a line, put together from the bytes of its items. Upstream leaves the type out of the items of built-in lists. */
export const listBytes = (list: ObjectList, options?: { typedItems?: boolean }): Buffer =>
  Buffer.concat([...listParts(list, options)])

/** The same in parts of some size, each made when it is asked for: a long list is never there as a whole. */
export function* listParts({ items, ...list }: ObjectList, { typedItems = true } = {}): Generator<Buffer, void> {
  let parts: Buffer[] = [Buffer.from(`${JSON.stringify(list).slice(0, -1)},"items":[`)]
  let size = 0
  for (const [index, item] of items.entries()) {
    if (index > 0) parts.push(comma)
    const bytes = typedItems ? objectBytes(item) : untypedBytes(item)
    parts.push(bytes)
    size += bytes.length
    if (size < PartSize) continue
    yield Buffer.concat(parts)
    parts = []
    size = 0
  }
  parts.push(listEnd)
  yield Buffer.concat(parts)
}

const PartSize = 256 * 1024

/** One line of a watch. From then on the object's own bytes are a part of it, so that both take their room once. */
export function eventBytes(type: WatchEvent['type'], object: object): Buffer {
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

const untypedBytes = (item: KubeObject): Buffer =>
  cached(untyped, item, () => JSON.stringify({ ...item, apiVersion: undefined, kind: undefined }))

/** Memory, not state: what is here can be made again from its key at any time, and goes when the key goes. */
const whole = new WeakMap<object, Buffer>()
const untyped = new WeakMap<object, Buffer>()
const events = new WeakMap<object, { [type in WatchEvent['type']]?: Buffer }>()

function cached(cache: WeakMap<object, Buffer>, object: object, make: () => string): Buffer {
  let bytes = cache.get(object)
  if (!bytes) {
    bytes = Buffer.from(make())
    if (Object.isFrozen(object)) cache.set(object, bytes)
  }
  return bytes
}

const comma = Buffer.from(',')
const listEnd = Buffer.from(']}\n')
const eventEnd = Buffer.from('}\n')
const eventStarts = {
  ADDED: Buffer.from('{"type":"ADDED","object":'),
  MODIFIED: Buffer.from('{"type":"MODIFIED","object":'),
  DELETED: Buffer.from('{"type":"DELETED","object":'),
  BOOKMARK: Buffer.from('{"type":"BOOKMARK","object":'),
}
