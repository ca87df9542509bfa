/** Converts values to strings, numbers and lists as sprig's functions do. Upstream: Masterminds/sprig v3, spf13/cast. */
import { text } from '../format.ts'
import { parseFloat64, parseInteger } from '../number-literals.ts'
import type { Value } from '../value.ts'
import { isMap, kindName, toInt } from '../value.ts'

export const isNil = (value: Value): value is null | undefined => value === null || value === undefined

export const stringOf = (value: Value): string => (typeof value === 'string' ? value : text(value))

/** Converts the items of a list to strings, without nils. Any other value counts as a list with one item. */
export const stringsOf = (value: Value): string[] => {
  if (isNil(value)) return []
  return Array.isArray(value) ? value.filter((item) => !isNil(item)).map(stringOf) : [stringOf(value)]
}

const MinInt = -(2n ** 63n)
const isInt64 = (value: bigint): boolean => value === toInt(value)

/**
 * Converts to an int64. A number loses its fraction, `true` becomes 1, and the text of an int64 is parsed; a decimal fraction in it is
 * ignored. Returns 0 for any other value. A float64 that is NaN or outside the range becomes the smallest int64, as in Go on amd64.
 */
export function intOf(value: Value): bigint {
  if (typeof value === 'bigint') return value
  if (typeof value === 'boolean') return value ? 1n : 0n
  if (typeof value === 'number') {
    const integer = Number.isFinite(value) ? BigInt(Math.trunc(value)) : MinInt
    return isInt64(integer) ? integer : MinInt
  }
  if (typeof value !== 'string') return 0n
  const [, whole = value] = /^([+-]?[0-9]*)\.[0-9]*$/.exec(value) ?? []
  const integer = parseInteger(whole) ?? 0n
  return isInt64(integer) ? integer : 0n
}

/** Parses a decimal int64. Returns 0 for other texts, and the nearest int64 for a number outside the range. */
export function clampedInt(text: string): bigint {
  const [, sign, digits] = /^([+-]?)0*([0-9]+)$/.exec(text) ?? []
  if (digits === undefined) return 0n
  const isNegative = sign === '-'
  const limit = isNegative ? 2n ** 63n : 2n ** 63n - 1n
  const size = digits.length > 19 || BigInt(digits) > limit ? limit : BigInt(digits)
  return isNegative ? -size : size
}

/** Converts a number, a boolean (true is 1) or the text of a number to a float64; any other value, and a text whose number is too large, to 0. */
export function floatOf(value: Value): number {
  if (typeof value === 'number') return value
  if (typeof value === 'bigint') return Number(value)
  if (typeof value === 'boolean') return value ? 1 : 0
  return typeof value === 'string' ? (parseFloat64(value) ?? 0) : 0
}

/** Whether sprig's function `default` replaces the value: nil, false, zero, and an empty text, list or map. */
export function isEmpty(value: Value): boolean {
  if (isNil(value) || value === '' || value === false || value === 0 || value === 0n) return true
  return Array.isArray(value) ? value.length === 0 : isMap(value) && Object.keys(value).length === 0
}

/** Returns `value`, which must be a list. @throws Error `<prefix> <kind of the value><suffix>` for another value, and Go's error for nil */
export function listOf(value: Value, prefix: string, suffix = ''): Value[] {
  if (Array.isArray(value)) return value
  if (isNil(value)) throw nilPointerError()
  throw new Error(`${prefix} ${kindName(value)}${suffix}`)
}

/** The error with which a Go function fails that uses a nil value. */
export const nilPointerError = (): Error => new Error('runtime error: invalid memory address or nil pointer dereference')
