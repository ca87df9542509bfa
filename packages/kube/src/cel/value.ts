/**
 * Values of CEL expressions. Null, booleans, strings and bytes are JavaScript values; `int` is a bigint, `double` a number. API objects are
 * read through views (`schema-view.ts`), which convert a member when an expression reads it.
 */

export type Value =
  | null
  | boolean
  | bigint
  | number
  | string
  | Uint8Array
  | Uint
  | Timestamp
  | Duration
  | CelList
  | CelMap
  | Optional
  | TypeValue
  | Opaque

/** Evaluation error with upstream's text. `&&` and `||` ignore it when another operand determines the result. */
export class EvaluationError extends Error {
  override readonly name = 'EvaluationError'
}

/** Error of an evaluation that exceeds its cost limit. `&&` and `||` never ignore it. */
export class OutOfBudget extends Error {
  override readonly name = 'OutOfBudget'
}

export class Uint {
  readonly value: bigint
  constructor(value: bigint) {
    if (value < 0n || value >= 2n ** 64n) throw new EvaluationError('unsigned integer overflow')
    this.value = value
  }
}

/** Nanoseconds since 1970. */
export class Timestamp {
  readonly nanos: bigint
  constructor(nanos: bigint) {
    if (nanos < MinTime || nanos > MaxTime) throw new EvaluationError('timestamp overflow')
    this.nanos = nanos
  }
}
const MinTime = -62_135_596_800_000_000_000n
const MaxTime = 253_402_300_799_999_999_999n

/** Nanoseconds. */
export class Duration {
  readonly nanos: bigint
  constructor(nanos: bigint) {
    if (BigInt.asIntN(64, nanos) !== nanos) throw new EvaluationError('duration overflow')
    this.nanos = nanos
  }
}

/** A type as a value: `int`, `string`, `type(self)`. */
export class TypeValue {
  readonly type: string
  constructor(type: string) {
    this.type = type
  }
}

export class Optional {
  readonly value: Value | undefined
  constructor(value?: Value) {
    this.value = value
  }
}
export const none = new Optional()

/** A value whose content only functions of a library can read. */
export abstract class Opaque {
  abstract readonly type: string
  abstract equals(other: Opaque): boolean
}

/** Comparison and concatenation of lists in API objects: in order, as sets, or by the keys of the items. */
export type ListKind = 'atomic' | 'set' | { readonly keys: readonly string[] }

/** A list of values, or of raw items that a view converts to values. */
export class CelList {
  readonly raw: readonly unknown[]
  readonly kind: ListKind
  readonly #view: ((raw: unknown) => Value) | undefined

  constructor(raw: readonly unknown[], view?: (raw: unknown) => Value, kind: ListKind = 'atomic') {
    this.raw = raw
    this.#view = view
    this.kind = kind
  }

  get size(): number {
    return this.raw.length
  }

  /** Returns an item. The caller has checked the index. */
  at(index: number): Value {
    const item = this.raw[index]
    return this.#view ? this.#view(item) : (item as Value)
  }

  values(): readonly Value[] {
    return this.#view ? this.raw.map(this.#view) : (this.raw as readonly Value[])
  }
}

export abstract class CelMap {
  abstract readonly size: number
  abstract get(key: Value): Value | undefined
  abstract keys(): readonly Value[]
}

/** A map that an expression created. */
export class LiteralMap extends CelMap {
  readonly #entries = new Map<string, { readonly key: Value; readonly value: Value }>()

  constructor(entries: Iterable<readonly [Value, Value]>) {
    super()
    for (const [key, value] of entries) {
      const id = keyId(key)
      if (id === undefined) throw new EvaluationError('unsupported key type')
      if (this.#entries.has(id))
        throw new EvaluationError(`Failed with repeated key: ${String(key instanceof Uint ? key.value : (key as string))}`)
      this.#entries.set(id, { key, value })
    }
  }

  get size(): number {
    return this.#entries.size
  }
  get(key: Value): Value | undefined {
    const id = keyId(key)
    return id === undefined ? undefined : this.#entries.get(id)?.value
  }
  keys(): readonly Value[] {
    return [...this.#entries.values()].map(({ key }) => key)
  }
}

/** Returns a text that is the same for equal keys: 1, 1u and 1.0 are equal. `undefined` for a value that cannot be a key. */
function keyId(key: Value): string | undefined {
  if (typeof key === 'string') return `s${key}`
  if (typeof key === 'bigint') return `n${key}`
  if (key instanceof Uint) return `n${key.value}`
  if (typeof key === 'boolean') return `b${key}`
  if (typeof key === 'number') return Number.isInteger(key) ? `n${BigInt(key)}` : `d${key}`
  return undefined
}

/** Returns the number of a value of any numeric type; `undefined` for other values. */
const numberOf = (value: Value): bigint | number | undefined =>
  typeof value === 'bigint' || typeof value === 'number' ? value : value instanceof Uint ? value.value : undefined

/** Compares two numbers; `undefined` if one is NaN. As upstream, an integer compared with a double is first rounded to a double. */
function compareNumbers(a: bigint | number, b: bigint | number): number | undefined {
  const [left, right] = typeof a === typeof b ? [a, b] : [Number(a), Number(b)]
  return left < right ? -1 : left > right ? 1 : left === right ? 0 : undefined
}

/** Receives the cost of each step of a comparison. */
export type Step = (cost: number) => void

/** Compares two values as `==` does in CEL, and reports the costs to `step`. */
export function equalValues(a: Value, b: Value, step?: Step): boolean {
  if (a === b) {
    if (typeof a === 'string') step?.(a.length / 10)
    return true
  }
  step?.(1)
  if (a === null || b === null) return false
  const left = numberOf(a)
  if (left !== undefined) {
    const right = numberOf(b)
    return right !== undefined && compareNumbers(left, right) === 0
  }
  if (typeof a !== 'object' || typeof b !== 'object') return false
  if (a instanceof CelList) return b instanceof CelList && equalLists(a, b, step)
  if (a instanceof CelMap) return b instanceof CelMap && equalMaps(a, b, step)
  if (a instanceof Timestamp) return b instanceof Timestamp && a.nanos === b.nanos
  if (a instanceof Duration) return b instanceof Duration && a.nanos === b.nanos
  if (a instanceof Uint8Array) return b instanceof Uint8Array && compareBytes(a, b) === 0
  if (a instanceof TypeValue) return b instanceof TypeValue && a.type === b.type
  if (a instanceof Optional) {
    if (!(b instanceof Optional)) return false
    return a.value === undefined || b.value === undefined ? a.value === b.value : equalValues(a.value, b.value, step)
  }
  return a instanceof Opaque && b instanceof Opaque && a.type === b.type && a.equals(b)
}

function equalLists(a: CelList, b: CelList, step?: Step): boolean {
  if (a.size !== b.size) return false
  if (a.raw === b.raw) return true
  if (a.kind === 'set') return a.values().every((item) => contains(b, item, step))
  if (a.kind !== 'atomic') {
    const { keys } = a.kind
    return a
      .values()
      .every((item) => b.values().some((other) => sameKeys(item, other, keys, step) && equalValues(item, other, step)))
  }
  for (let index = 0; index < a.size; index++) if (!equalValues(a.at(index), b.at(index), step)) return false
  return true
}

function equalMaps(a: CelMap, b: CelMap, step?: Step): boolean {
  // Saves a comparison of the content, because most compared values are unchanged.
  if ('raw' in a && 'raw' in b && a.raw === b.raw) return true
  if (a.size !== b.size) return false
  for (const key of a.keys()) {
    const other = b.get(key)
    if (other === undefined || !equalValues(a.get(key)!, other, step)) return false
  }
  return true
}

export function contains(list: CelList, value: Value, step?: Step): boolean {
  for (let index = 0; index < list.size; index++) if (equalValues(list.at(index), value, step)) return true
  return false
}

export const sameKeys = (a: Value, b: Value, keys: readonly string[], step?: Step): boolean =>
  a instanceof CelMap &&
  b instanceof CelMap &&
  keys.every((key) => {
    const left = a.get(key)
    const right = b.get(key)
    return left === undefined || right === undefined ? left === right : equalValues(left, right, step)
  })

/**
 * Returns a negative number, zero or a positive number; `undefined` if a value is NaN.
 *
 * @throws EvaluationError for values of types that CEL does not order, or does not compare with each other
 */
export function compareValues(a: Value, b: Value): number | undefined {
  const left = numberOf(a)
  const right = numberOf(b)
  if (left !== undefined && right !== undefined) return compareNumbers(left, right)
  if (typeof a === 'string' && typeof b === 'string') return compareText(a, b)
  if (typeof a === 'boolean' && typeof b === 'boolean') return Number(a) - Number(b)
  if (a instanceof Timestamp && b instanceof Timestamp) return a.nanos < b.nanos ? -1 : a.nanos > b.nanos ? 1 : 0
  if (a instanceof Duration && b instanceof Duration) return a.nanos < b.nanos ? -1 : a.nanos > b.nanos ? 1 : 0
  if (a instanceof Uint8Array && b instanceof Uint8Array) return compareBytes(a, b)
  throw new EvaluationError('no such overload')
}

/** Compares by code points; JavaScript's own comparison is by UTF-16 code units. */
function compareText(a: string, b: string): number {
  if (a === b) return 0
  const size = Math.min(a.length, b.length)
  let index = 0
  while (index < size && a.charCodeAt(index) === b.charCodeAt(index)) index++
  if (index === size) return a.length - b.length
  const isHigh = index > 0 && a.charCodeAt(index - 1) >= 0xd800 && a.charCodeAt(index - 1) < 0xdc00
  const start = isHigh ? index - 1 : index
  return a.codePointAt(start)! - b.codePointAt(start)!
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const size = Math.min(a.length, b.length)
  for (let index = 0; index < size; index++) if (a[index] !== b[index]) return a[index]! - b[index]!
  return a.length - b.length
}

/** Name of a value's type, as `type()` returns it. */
export function typeName(value: Value): string {
  if (value === null) return 'null_type'
  if (typeof value === 'bigint') return 'int'
  if (typeof value === 'number') return 'double'
  if (typeof value === 'boolean') return 'bool'
  if (typeof value === 'string') return 'string'
  if (value instanceof Uint8Array) return 'bytes'
  if (value instanceof Uint) return 'uint'
  if (value instanceof CelList) return 'list'
  if (value instanceof CelMap) return 'map'
  if (value instanceof Timestamp) return 'google.protobuf.Timestamp'
  if (value instanceof Duration) return 'google.protobuf.Duration'
  if (value instanceof Optional) return 'optional_type'
  return value instanceof TypeValue ? 'type' : value.type
}
