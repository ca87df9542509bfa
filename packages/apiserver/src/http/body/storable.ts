/** Limits for bodies of every kind: the maximum nesting depth, and values that can be parsed but not stored. */
import { badRequest, isRecord, type StatusError } from '@capstan/kube'

/** Maximum nesting depth: deeper than any real object, and shallow enough that recursion does not exhaust the stack. */
export const maxDepth = 1000

/**
 * Returns `value`, which was parsed from `text`. `reject` makes the error for a number that is infinite or NaN.
 * @throws StatusError for a value that cannot be stored
 */
export function rejectUnstorable(value: unknown, text: string, reject: (error: string) => StatusError): unknown {
  // Code that copies an object with `copy[key] = value` would set the prototype of the copy. The copy functions of `kube` avoid this, and no
  // API has such a field.
  if (mayBeProto.test(text) && anyPart(value, (part) => isRecord(part) && Object.hasOwn(part, '__proto__')))
    throw badRequest('the key "__proto__" is not allowed in any object')
  // JSON would write infinite numbers and NaN as null.
  if (mayBeInfinite(text) && anyPart(value, (part) => typeof part === 'number' && !Number.isFinite(part))) {
    const number = text.match(numbers)?.find((candidate) => !Number.isFinite(Number(candidate))) ?? ''
    throw reject(`json: cannot unmarshal number ${number} into Go value of type float64`)
  }
  return value
}

/** Matches texts that may contain the key `__proto__`, also with escaped characters or an escaped line break. */
const mayBeProto = /__proto__|\\[uUx\r\n]/

/**
 * Reports whether a text may contain a number that is infinite or NaN as a double. Each test is cheap for a text without such
 * numbers.
 */
const mayBeInfinite = (text: string): boolean =>
  /[\d._][eE]\+?\d{3}/.test(text) || hasDigits(text, 200) || /\.(?:inf|nan)/i.test(text)

/**
 * Reports whether the text contains `count` characters of decimal or hexadecimal numbers in sequence. Looks only around every `count`-th character, because any such sequence
 * contains one of these characters.
 */
function hasDigits(text: string, count: number): boolean {
  for (let at = count - 1; at < text.length; at += count) {
    let [start, end] = [at, at]
    while (end - start < count && isDigit(text.charCodeAt(end))) end++
    while (end - start < count && isDigit(text.charCodeAt(start - 1))) start--
    if (end - start === count) return true
  }
  return false
}

/** Reports whether a character is a hexadecimal digit, or an underscore, which YAML allows between digits. */
const isDigit = (code: number): boolean =>
  (code >= 0x30 && code <= 0x39) || (code >= 0x41 && code <= 0x46) || (code >= 0x61 && code <= 0x66) || code === 0x5f

const numbers = /[-+]?(?:\.(?:inf|nan)|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)/gi

const anyPart = (value: unknown, test: (part: unknown) => boolean): boolean =>
  test(value) || (typeof value === 'object' && value !== null && Object.values(value).some((part) => anyPart(part, test)))
