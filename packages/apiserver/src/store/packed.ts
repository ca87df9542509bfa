/**
 * Two encodings of stored objects. Plain objects, frozen and shared, suit a server whose controllers run in the same process. Packed
 * objects are stored as JSON, which takes a third of the memory. They suit a server whose clients all use sockets, and mostly request
 * JSON.
 *
 * All readers share one packed object as long as it is stored. It has the same members as a plain object. When a member is read, the JSON
 * is parsed unless the parsed members are in a cache. Reading apiVersion or kind never parses the JSON.
 */
import { freeze, hasLongInteger, type KubeObject, readJSON, writeJSON } from '@capstan/kube'

/** Turns a draft into the stored object, deeply frozen. */
export type ObjectEncoding = (object: KubeObject) => KubeObject

export const plainObjects: ObjectEncoding = freeze

/**
 * Returns an encoding that packs objects. Up to `unpacked` objects that are read repeatedly stay unpacked. Objects that were just written,
 * or were unpacked only once since, are in smaller caches, which release the unpacked members sooner: members that lived longer would be
 * moved to the old generation of V8's garbage collector.
 */
export function packedObjects(unpacked = 512): ObjectEncoding {
  const smallSize = Math.min(unpacked, 64)
  const newest = new UnpackedCache(smallSize, new UnpackedCache(smallSize, new UnpackedCache(unpacked)))
  return (object) => {
    const text = writeJSON(object)
    const members = membersOf(object)
    if (!members) return freeze(object)
    const packed = Object.freeze(new Packed(members, text, freeze(object), newest) as object as KubeObject)
    if (hasLongInteger(text)) withLongIntegers.add(packed)
    return packed
  }
}

/** Packed objects that may contain integers beyond the precision of doubles. Other objects are parsed without a search for such integers. */
const withLongIntegers = new WeakSet<object>()

/** Returns the object as JSON. A packed object is not encoded again. */
export const jsonOf = (object: object): string => Packed.textOf(object) ?? writeJSON(object)

/** Reports whether the object is packed: `jsonOf` then returns its JSON without encoding it. */
export const isPacked = (object: object): boolean => Packed.textOf(object) !== undefined

/**
 * Key for caches of data derived from the object: the object itself. For a packed object: its unpacked members, so that the data is
 * released with them, or `undefined` when it is not unpacked.
 */
export const cacheKey = (object: object): object | undefined => (isPacked(object) ? Packed.unpackedOf(object) : object)

/** Base class whose constructor returns an existing object, so that a subclass adds its private fields to that object. */
const ExistingObject = function ExistingObject(object: object) {
  return object
} as unknown as new (
  object: object,
) => object

type Members = Readonly<Record<string, unknown>>

/**
 * State of a packed object. The object looks like a plain object: its members are getters, except apiVersion and kind. The state has only two
 * fields, because a server has tens of thousands of packed objects.
 */
class Packed extends ExistingObject {
  readonly #text: string
  /** The unpacked members; when they have been released, the cache that the object enters at the next read of a member. */
  #unpackedOrCache: Members | UnpackedCache

  constructor(members: object, text: string, unpacked: object, cache: UnpackedCache) {
    super(members)
    this.#text = text
    this.#unpackedOrCache = unpacked as Members
    cache.add(this)
  }

  static textOf(object: object): string | undefined {
    return #text in object ? object.#text : undefined
  }

  static unpackedOf(object: object): object | undefined {
    return #text in object && !(object.#unpackedOrCache instanceof UnpackedCache) ? object.#unpackedOrCache : undefined
  }

  static member(object: object, key: string): unknown {
    if (!(#text in object)) return undefined
    if (object.#unpackedOrCache instanceof UnpackedCache) {
      const cache = object.#unpackedOrCache
      object.#unpackedOrCache = freeze(
        (withLongIntegers.has(object) ? readJSON(object.#text) : JSON.parse(object.#text)) as Members,
      )
      cache.add(object)
    }
    return object.#unpackedOrCache[key]
  }

  static evict(object: object, next: UnpackedCache): void {
    if (#text in object) object.#unpackedOrCache = next
  }
}

/** A ring of unpacked objects. When it is full, a new entry evicts the oldest one, which enters the cache `next` when it is read again. */
class UnpackedCache {
  readonly #ring: (object | undefined)[]
  readonly #next: UnpackedCache
  #oldestIndex = 0

  constructor(size: number, next?: UnpackedCache) {
    this.#ring = Array.from<undefined>({ length: size })
    this.#next = next ?? this
  }

  add(packed: object): void {
    const oldest = this.#ring[this.#oldestIndex]
    if (oldest) Packed.evict(oldest, this.#next)
    this.#ring[this.#oldestIndex] = packed
    this.#oldestIndex = (this.#oldestIndex + 1) % this.#ring.length
  }
}

/** An object with more top-level members is not packed: an Event that sets all its 17 members, or such a custom resource. */
const MaxMembers = 16

/**
 * Returns an object with the members of `object`: getters that unpack them, except apiVersion and kind. `undefined` for too many
 * members, or if they need more getters than the limit allows.
 */
function membersOf(object: object): object | undefined {
  const keys = Object.keys(object).filter((key) => (object as Members)[key] !== undefined)
  if (keys.length > MaxMembers) return undefined
  const members: Record<string, unknown> = {}
  for (const key of keys) {
    // Plain values: these two members are read often, and a getter would unpack the whole object.
    if (key === 'apiVersion' || key === 'kind') {
      members[key] = sharedType((object as Members)[key])
      continue
    }
    const getter = getterOf(key)
    if (!getter) return undefined
    Object.defineProperty(members, key, getter)
  }
  return members
}

/** Returns one shared string for all objects with the same apiVersion or kind, for at most `MaxTypes` different strings. */
function sharedType(type: unknown): unknown {
  const shared = types.get(type)
  if (shared !== undefined || typeof type !== 'string') return shared ?? type
  if (types.size < MaxTypes) types.set(type, type)
  return type
}
/** Bounded, like `getters`. */
const types = new Map<unknown, string>()
const MaxTypes = 1000

/**
 * Returns the getter that all objects share for a key, so that objects with the same keys have the same hidden class in V8. `undefined` for
 * a key without a getter when there are already `MaxGetters`.
 */
function getterOf(key: string): PropertyDescriptor | undefined {
  let getter = getters.get(key)
  if (getter || getters.size === MaxGetters) return getter
  getter = {
    get(this: object) {
      return Packed.member(this, key)
    },
    enumerable: true,
  }
  getters.set(key, getter)
  return getter
}
/** Bounded, because names of members come from clients. The limit is enough for all built-in kinds. */
const getters = new Map<string, PropertyDescriptor>()
const MaxGetters = 500
