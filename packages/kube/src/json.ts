/** JSON values, and the basic operations on them: copy, freeze, compare. */
import { asWork, each, PieceSize, type RemainingWork, type Work } from './clock.ts'

export type Json = string | number | bigint | boolean | null | Json[] | { [key: string]: Json }
export type JsonObject = { [key: string]: Json }

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns a deep, mutable copy. Omits members that are `undefined`, as JSON does. */
export function draft<T>(value: T): T {
  if (Array.isArray(value)) return value.map((item) => draft(item)) as T
  if (!isRecord(value)) return value
  const copy: Record<string, unknown> = {}
  for (const key of Object.keys(value)) {
    const member = value[key]
    if (member !== undefined) setMember(copy, key, typeof member === 'object' ? draft(member) : member)
  }
  return copy as T
}

/** Copies like `draft`, as work that yields between its pieces. A value with few nested values is copied in one piece. */
export function* drafting<T>(value: T): Work<T> {
  if (valuesLeft(value, 4 * PieceSize) >= 0) return draft(value)
  const copy = emptyLike(value)
  yield* asWork(() => copyMembers(copy, value))
  return copy as T
}

/** Reports whether a JSON value contains so many values that work on all of them should run in pieces. */
export const isLong = (value: unknown): boolean => valuesLeft(value, LongValues) < 0
const LongValues = 10_000

/** Returns `limit` minus the number of values: `value` itself and all nested values. Stops counting when the result is negative. */
function valuesLeft(value: unknown, limit: number): number {
  let remaining = limit - 1
  if (typeof value !== 'object' || value === null) return remaining
  // `Object.values` is several times as fast as `for...in`.
  for (const member of Array.isArray(value) ? value : Object.values(value)) {
    if (remaining < 0) return remaining
    remaining = typeof member === 'object' ? valuesLeft(member, remaining) : remaining - 1
  }
  return remaining
}

/** Returns an empty list for a list, an empty object for an object, and any other value unchanged. */
export const emptyLike = (value: unknown): unknown => (Array.isArray(value) ? [] : isRecord(value) ? {} : value)

function copyMembers(to: unknown, from: unknown): RemainingWork {
  if (typeof from !== 'object' || from === null) return undefined
  const copies = to as Record<string | number, unknown>
  const members = from as Readonly<Record<string, unknown>>
  return each(Object.keys(members), (key) => {
    const member = members[key]
    if (member === undefined) return undefined
    const copy = emptyLike(member)
    setMember(copies, key, copy)
    return copyMembers(copy, member)
  })
}

/** Returns an own member of the object. Inherited members, such as `constructor`, are not data. */
export const getMember = (object: Readonly<Record<string, unknown>>, key: string): unknown =>
  Object.hasOwn(object, key) ? object[key] : undefined

/** Sets a member whose name is untrusted input: `__proto__` is an ordinary name, too. */
export function setMember(object: Record<string, unknown>, key: string, value: unknown): void {
  if (key === '__proto__') Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true })
  else object[key] = value
}

/** Freezes a JSON value and all values inside it. Skips frozen parts, so that sharing them costs little. */
export function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const key of Object.keys(value)) freeze((value as Record<string, unknown>)[key])
  return Object.freeze(value)
}

/** Deep equality of JSON values. A member that is `undefined` counts as absent. */
export function equal(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return sameInteger(a, b)
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => equal(item, b[index]))
  }
  if (Array.isArray(b)) return false
  const left = a as Record<string, unknown>
  const right = b as Record<string, unknown>
  let members = 0
  for (const key of Object.keys(left)) {
    if (left[key] === undefined) continue
    members++
    // Without an own member of this name, `right.__proto__` is an inherited value.
    if (key === '__proto__' && !Object.hasOwn(right, key)) return false
    if (!equal(left[key], right[key])) return false
  }
  let otherMembers = 0
  for (const key of Object.keys(right)) if (right[key] !== undefined && ++otherMembers > members) return false
  return members === otherMembers
}

/** Returns a key for Maps and Sets: two values have the same key exactly when they are `equal`. */
export function valueKey(value: unknown): string | number | bigint | boolean | null | undefined {
  if (typeof value === 'bigint') return integerKey(value)
  if (typeof value === 'string') return `"${value}`
  if (typeof value !== 'object' || value === null) return value as number | boolean | null | undefined
  return textOf(value)
}

/** Returns the key of a bigint: the equal number if there is one, otherwise the bigint. */
const integerKey = (value: bigint): number | bigint => (BigInt(Number(value)) === value ? Number(value) : value)

function textOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(textOf).join(',')}]`
  if (isRecord(value)) {
    const names = Object.keys(value).filter((name) => value[name] !== undefined)
    return `{${names
      .sort()
      .map((name) => `${JSON.stringify(name)}:${textOf(value[name])}`)
      .join(',')}}`
  }
  return typeof value === 'string' ? JSON.stringify(value) : String(typeof value === 'bigint' ? integerKey(value) : value)
}

/** Reports whether a bigint and a number are equal, such as 10n ** 18n and 1e18. */
function sameInteger(a: unknown, b: unknown): boolean {
  if (typeof a === 'bigint') return Number.isInteger(b) && a === BigInt(b as number)
  return typeof b === 'bigint' && sameInteger(b, a)
}
