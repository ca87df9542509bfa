/**
 * Two ways to hold what is stored. As objects, frozen and shared: what a plane wants whose controllers live in its process. Or packed,
 * as their JSON: a third of the room, for a server whose clients are all on the other side of a socket, and mostly want JSON.
 *
 * A packed object is the same object for everybody, as long as it is stored, and has the same members. They are read from the text when
 * somebody asks for one, and kept for as long as there is demand.
 */
import { freeze, hasLongInteger, type KubeObject, readJSON, writeJSON } from '@capstan/kube'

/** Makes of a draft what is stored and handed out: frozen, all the way down. */
export type Hold = (object: KubeObject) => KubeObject

export const holdObjects: Hold = freeze

/**
 * Packs; what is read again and again stays unpacked, up to so many objects. What has just been written, or is read for the first time,
 * stays so only for as long as whoever is busy with it: longer, and the collector of garbage would take it for something that lasts.
 */
export function holdPacked(unpacked = 512): Hold {
  const few = Math.min(unpacked, 64)
  const written = new Warm(few, new Warm(few, new Warm(unpacked)))
  return (object) => {
    const text = writeJSON(object)
    const members = membersOf(object)
    if (!members) return freeze(object)
    const packed = Object.freeze(new Packed(members, text, freeze(object), written) as object as KubeObject)
    if (hasLongInteger(text)) exact.add(packed)
    return packed
  }
}

/** Packed objects that may hold integers which doubles do not: hardly any, and the others need not be looked through at each reading. */
const exact = new WeakSet<object>()

/** The object as JSON, without making it anew where that is how it is held. */
export const jsonOf = (object: object): string => Packed.textOf(object) ?? writeJSON(object)

/** Whether `jsonOf` costs nothing. */
export const isPacked = (object: object): boolean => Packed.textOf(object) !== undefined

/**
 * What to remember things by that are made from the object: the object itself; of a packed one what is unpacked at the moment, if
 * anything, so that they go when that goes.
 */
export const inMemory = (object: object): object | undefined => (isPacked(object) ? Packed.unpackedOf(object) : object)

/** Lets a class add its private fields to an object that is there already. */
const Given = function Given(object: object) {
  return object
} as unknown as new (
  object: object,
) => object

type Members = Readonly<Record<string, unknown>>

/**
 * What a packed object has beside its members, which are getters: nothing about it tells that it is one. There are tens of thousands:
 * each further field would be felt.
 */
class Packed extends Given {
  readonly #text: string
  /** The members while they are unpacked; else who has them unpacked for a while when somebody reads them. */
  #inside: Members | Warm

  constructor(members: object, text: string, unpacked: object, warm: Warm) {
    super(members)
    this.#text = text
    this.#inside = unpacked as Members
    warm.add(this)
  }

  static textOf(object: object): string | undefined {
    return #text in object ? object.#text : undefined
  }

  static unpackedOf(object: object): object | undefined {
    return #text in object && !(object.#inside instanceof Warm) ? object.#inside : undefined
  }

  static member(object: object, key: string): unknown {
    if (!(#text in object)) return undefined
    if (object.#inside instanceof Warm) {
      const warm = object.#inside
      object.#inside = freeze((exact.has(object) ? readJSON(object.#text) : JSON.parse(object.#text)) as Members)
      warm.add(object)
    }
    return object.#inside[key]
  }

  static cool(object: object, next: Warm): void {
    if (#text in object) object.#inside = next
  }
}

/** Those that are unpacked: the oldest makes room for the newest, and is among those of `next` when it is read again. */
class Warm {
  readonly #ring: (object | undefined)[]
  readonly #next: Warm
  #at = 0

  constructor(size: number, next?: Warm) {
    this.#ring = Array.from<undefined>({ length: size })
    this.#next = next ?? this
  }

  add(packed: object): void {
    const oldest = this.#ring[this.#at]
    if (oldest) Packed.cool(oldest, this.#next)
    this.#ring[this.#at] = packed
    this.#at = (this.#at + 1) % this.#ring.length
  }
}

/** More members at the top of an object than any kind has: such a one is not packed. */
const MostMembers = 16

/** An object with the members of another one, each of which but for its type is unpacked when it is read. */
function membersOf(object: object): object | undefined {
  const keys = Object.keys(object).filter((key) => (object as Members)[key] !== undefined)
  if (keys.length > MostMembers) return undefined
  const members: Record<string, unknown> = {}
  for (const key of keys) {
    // Every request looks at these.
    if (key === 'apiVersion' || key === 'kind') {
      members[key] = theSame((object as Members)[key])
      continue
    }
    const getter = getterOf(key)
    if (!getter) return undefined
    Object.defineProperty(members, key, getter)
  }
  return members
}

/** One string for all objects of a type, where each would have one of its own. */
function theSame(type: unknown): unknown {
  const known = types.get(type)
  if (known !== undefined || typeof type !== 'string') return known ?? type
  if (types.size < MostTypes) types.set(type, type)
  return type
}
/** Memory, not state, as `getters`. */
const types = new Map<unknown, string>()
const MostTypes = 1000

/** The same getter for all objects lets them share what the engine knows of their form. */
function getterOf(key: string): PropertyDescriptor | undefined {
  let getter = getters.get(key)
  if (getter || getters.size === MostGetters) return getter
  getter = {
    get(this: object) {
      return Packed.member(this, key)
    },
    enumerable: true,
  }
  getters.set(key, getter)
  return getter
}
/** Memory, not state. Names come from clients: the first so many are enough for every kind there is. */
const getters = new Map<string, PropertyDescriptor>()
const MostGetters = 500
