/** The string function `format`: `'%s: %d'.format([…])`. */
import { CelList, CelMap, Duration, EvaluationError, Timestamp, TypeValue, typeName, Uint, type Value } from '../value.ts'
import { doubleText } from './standard.ts'
import { durationTextOf, timestampText } from './time.ts'

const MaxPrecision = 1000

/** Replaces the clauses of a pattern, such as `%s`, by the formatted values. @throws EvaluationError */
export function formatted(pattern: string, values: readonly Value[]): string {
  let used = 0
  return pattern.replaceAll(/%(?:%|(?:\.(\d*))?([^]?))/g, (all, precision: string | undefined, verb: string | undefined) => {
    if (all === '%%') return '%'
    if (!verb) throw new EvaluationError('could not parse formatting clause: unexpected end of string')
    if (used >= values.length) throw new EvaluationError(`index ${used} out of range`)
    const digits = precision === undefined ? undefined : Number(precision || '0')
    if (digits !== undefined && digits > MaxPrecision) throw new EvaluationError(`precision ${digits} is too large`)
    return formatClause(verb, values[used++]!, digits)
  })
}

function formatClause(verb: string, value: Value, precision: number | undefined): string {
  const clauseError = (problem: string) =>
    new EvaluationError(`error during formatting: ${problem}, was given ${typeName(value)}`)
  const integer = typeof value === 'bigint' ? value : value instanceof Uint ? value.value : undefined
  const number = typeof value === 'number' ? value : integer === undefined ? undefined : Number(integer)
  switch (verb) {
    case 's':
      return formatValue(value)
    case 'd':
      if (typeof value === 'number' && !Number.isFinite(value)) return nonFiniteText(value)
      if (integer === undefined) throw clauseError('decimal clause can only be used on integers')
      return integer.toString()
    case 'f':
      if (number === undefined) throw clauseError('fixed-point clause can only be used on doubles')
      return Number.isFinite(number) ? fixedText(number, precision ?? 6) : nonFiniteText(number)
    case 'e': {
      if (number === undefined) throw clauseError('scientific clause can only be used on doubles')
      if (!Number.isFinite(number)) return nonFiniteText(number)
      const text = number.toExponential(Math.min(precision ?? 6, 100))
      // Go's exponents have at least two digits.
      return text.replace(/e(?<sign>[+-])(?=\d$)/, 'e$<sign>0')
    }
    case 'b':
      if (typeof value === 'boolean') return value ? '1' : '0'
      if (integer === undefined) throw clauseError('only integers and bools can be formatted as binary')
      return integer.toString(2)
    case 'o':
      if (integer === undefined) throw clauseError('octal clause can only be used on integers')
      return integer.toString(8)
    case 'x':
    case 'X': {
      const text = integer?.toString(16) ?? hex(value)
      if (text === undefined) throw clauseError('only integers, byte buffers, and strings can be formatted as hex')
      return verb === 'X' ? text.toUpperCase() : text
    }
    default:
      throw new EvaluationError(`could not parse formatting clause: unrecognized formatting clause "${verb}"`)
  }
}

const nonFiniteText = (value: number): string => (Number.isNaN(value) ? 'NaN' : value > 0 ? 'Infinity' : '-Infinity')

function hex(value: Value): string | undefined {
  const bytes = typeof value === 'string' ? new TextEncoder().encode(value) : value
  if (!(bytes instanceof Uint8Array)) return undefined
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Formats a double with `digits` decimals and with commas between thousands. Rounds halves to the even neighbour, as Go does. */
function fixedText(value: number, digits: number): string {
  // A double is a binary fraction: repeated multiplication by two makes it an integer without loss.
  let numerator = Math.abs(value)
  let denominator = 1n
  while (!Number.isInteger(numerator)) {
    numerator *= 2
    denominator *= 2n
  }
  const scaled = BigInt(numerator) * 10n ** BigInt(digits)
  const remainder = (scaled % denominator) * 2n
  const lower = scaled / denominator
  const isUp = remainder > denominator || (remainder === denominator && lower % 2n === 1n)
  const text = (isUp ? lower + 1n : lower).toString().padStart(digits + 1, '0')
  const whole = text.slice(0, text.length - digits).replaceAll(/\B(?=(?:\d{3})+$)/g, ',')
  return `${value < 0 ? '-' : ''}${whole}${digits > 0 ? `.${text.slice(-digits)}` : ''}`
}

function formatValue(value: Value): string {
  if (value === null) return 'null'
  if (typeof value === 'string') return value
  if (typeof value === 'number') return Number.isFinite(value) ? doubleText(value) : nonFiniteText(value)
  if (typeof value === 'bigint' || typeof value === 'boolean') return String(value)
  if (value instanceof Uint) return value.value.toString()
  if (value instanceof Uint8Array) return new TextDecoder().decode(value)
  if (value instanceof Timestamp) return timestampText(value)
  if (value instanceof Duration) return durationTextOf(value)
  if (value instanceof TypeValue) return value.type
  if (value instanceof CelList) return `[${value.values().map(formatValue).join(', ')}]`
  if (value instanceof CelMap) {
    const members = value.keys().map((key) => `${formatValue(key)}: ${formatValue(value.get(key)!)}`)
    return `{${members.sort().join(', ')}}`
  }
  throw new EvaluationError(`error during formatting: string clause can only be used on strings, was given ${typeName(value)}`)
}
