/** Converts values to strings, numbers and lists as sprig's functions do. Upstream: Masterminds/sprig v3, spf13/cast. */
import { text } from '../format.ts'
import type { Value } from '../value.ts'
import { isMap, toInt, typeName } from '../value.ts'

export const isNil = (value: Value): value is null | undefined => value === null || value === undefined

export const stringOf = (value: Value): string => (typeof value === 'string' ? value : text(value))

/** Converts the items of a list to strings, without nils. A single value becomes a list. */
export const stringsOf = (value: Value): string[] => {
  if (isNil(value)) return []
  return Array.isArray(value) ? value.filter((item) => !isNil(item)).map(stringOf) : [stringOf(value)]
}

/** Converts a number (without its fraction), a boolean (true is 1) or the text of an integer to an int64; any other value to 0. */
export function intOf(value: Value): bigint {
  if (typeof value === 'bigint') return value
  if (typeof value === 'number') return Number.isFinite(value) ? toInt(Math.trunc(value)) : 0n
  if (typeof value === 'boolean') return value ? 1n : 0n
  if (typeof value !== 'string') return 0n
  const [, sign = '', digits] =
    /^([+-]?)(0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO]?[0-7_]+|0|[1-9][0-9_]*)(?:\.0*)?$/.exec(value) ?? []
  if (digits === undefined) return 0n
  const number = BigInt(digits.replaceAll('_', '').replace(/^0(?=[0-7])/, '0o'))
  return toInt(sign === '-' ? -number : number)
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

/** Converts a number, a boolean (true is 1) or the text of a number to a float64; any other value to 0. */
export function floatOf(value: Value): number {
  if (typeof value === 'number') return value
  if (typeof value === 'bigint') return Number(value)
  if (typeof value === 'boolean') return value ? 1 : 0
  return typeof value === 'string' && value.trim() === value && value !== '' && !Number.isNaN(Number(value)) ? Number(value) : 0
}

/** Whether sprig's function `default` replaces the value: nil, false, zero, and an empty text, list or map. */
export function isEmpty(value: Value): boolean {
  if (isNil(value) || value === '' || value === false || value === 0 || value === 0n) return true
  return Array.isArray(value) ? value.length === 0 : isMap(value) && Object.keys(value).length === 0
}

/** Returns `value`, which must be a list. @throws Error `<prefix> type <kind of the value>` otherwise */
export function listOf(value: Value, prefix: string): Value[] {
  if (Array.isArray(value)) return value
  throw new Error(`${prefix} type ${kindOf(value)}`)
}

const kindOf = (value: Value): string => (isNil(value) ? 'invalid' : isMap(value) ? 'map' : typeName(value))
