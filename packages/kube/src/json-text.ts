/**
 * JSON as text, with integers as exact as a real API server keeps them: from -2^63 to 2^63-1. An integer of this range beyond
 * JavaScript's safe integers is a `bigint`, every other number a `number`, so that each integer has one representation and `===` compares
 * them. Upstream: sigs.k8s.io/json, which decodes integers of this range as int64, and every other number as float64.
 */

/** Like `JSON.parse`, with exact integers. @throws SyntaxError */
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

/** Returns a 64-bit integer as a number if that is safe, otherwise as a bigint. */
export const exactInteger = (value: bigint): number | bigint => (isSafe(value) ? Number(value) : value)

export const isNumeric = (value: unknown): value is number | bigint => typeof value === 'number' || typeof value === 'bigint'

/** Reports whether Go decodes the value as int64: true for bigints and safe integers. Every other number is a float64. */
export const isInt64 = (value: unknown): value is number | bigint => typeof value === 'bigint' || Number.isSafeInteger(value)

const isSafe = (value: bigint): boolean => value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER

/** Number of digits of the smallest integer that is not safe. */
const LongIntegerDigits = 16

/**
 * Reports whether the text may contain an integer that a double cannot represent. Checking every sixteenth character finds any run of that
 * many digits; the character before the digits excludes most strings and fractions.
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
 * Matches at most 19 digits, as a 64-bit integer has. Longer text is not converted to a BigInt, because a million digits take half a
 * second.
 */
const Int64Text = /^-?\d{1,19}$/

const reviveExactly: Reviver = (_key, value, { source }) => {
  if (typeof value !== 'number' || Number.isSafeInteger(value) || source === undefined || !Int64Text.test(source)) return value
  const integer = BigInt(source)
  return BigInt.asIntN(64, integer) === integer ? integer : value
}

const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown }

const writeBigint = (_key: string, value: unknown): unknown => (typeof value === 'bigint' ? rawJSON(value.toString()) : value)
