/**
 * Reads and writes JSON with 64-bit integers as exact as on a real API server. An integer from -2^63 to 2^63-1, written without fraction
 * and exponent, becomes a `number` if it is a safe integer of JavaScript, otherwise a `bigint`. Every other number becomes a `number`.
 * Upstream: sigs.k8s.io/json, which decodes integers of this range as int64, and every other number as float64.
 */

/** Like `JSON.parse`, with exact 64-bit integers. @throws SyntaxError */
export const readJSON = (text: string): unknown =>
  hasLongInteger(text) ? parseWithSource(text, reviveExactly) : JSON.parse(text)

/** Like `JSON.stringify`, but bigints are written with all their digits. */
export function writeJSON(value: unknown, space?: number): string {
  try {
    return JSON.stringify(value, undefined, space)
  } catch (err) {
    // Values with a bigint are rare, so they are detected by this error instead of a search.
    if (!(err instanceof TypeError)) throw err
    return JSON.stringify(value, writeBigint, space)
  }
}

/** Returns a 64-bit integer as a number if it is a safe integer, otherwise as a bigint. */
export const exactInteger = (value: bigint): number | bigint => (isSafe(value) ? Number(value) : value)

export const isNumeric = (value: unknown): value is number | bigint => typeof value === 'number' || typeof value === 'bigint'

/**
 * Reports whether the value counts as Go's int64: true for bigints and safe integers. Every other number counts as float64. Go decodes `1.0`
 * as float64, but here it counts as int64, because `readJSON` returns the same number as for `1`.
 */
export const isInt64 = (value: unknown): value is number | bigint => typeof value === 'bigint' || Number.isSafeInteger(value)

const isSafe = (value: bigint): boolean => value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER

/** Number of digits of the smallest positive integer that is not safe. */
const LongIntegerDigits = 16

/**
 * Reports whether the text may contain an integer beyond JavaScript's safe integers. Checking every sixteenth character finds every run of
 * 16 or more digits; the character before the run excludes most strings and fractions.
 */
export function hasLongInteger(text: string): boolean {
  for (let at = LongIntegerDigits - 1; at < text.length; at += LongIntegerDigits) {
    if (!isDigit(text, at)) continue
    let start = at
    while (isDigit(text, start - 1)) start--
    while (isDigit(text, at + 1)) at++
    if (at - start + 1 >= LongIntegerDigits && PrecedingCharacters.includes(text.charAt(start - 1))) return true
  }
  return false
}

const isDigit = (text: string, at: number): boolean => {
  const code = text.charCodeAt(at)
  return code >= 0x30 && code <= 0x39
}

/** Characters that may precede an integer, besides the beginning of the text. */
const PrecedingCharacters = ' :,[-\n\r\t'

type Reviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown

const parseWithSource = JSON.parse as (text: string, reviver: Reviver) => unknown

/**
 * Matches integers of at most 19 digits, the maximum of a 64-bit integer. Longer text is not converted to a BigInt, because converting a
 * million digits takes hundreds of milliseconds.
 */
const Int64Text = /^-?\d{1,19}$/

const reviveExactly: Reviver = (_key, value, { source }) => {
  if (typeof value !== 'number' || Number.isSafeInteger(value) || source === undefined || !Int64Text.test(source)) return value
  const integer = BigInt(source)
  return BigInt.asIntN(64, integer) === integer ? integer : value
}

const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown }

const writeBigint = (_key: string, value: unknown): unknown => (typeof value === 'bigint' ? rawJSON(value.toString()) : value)
