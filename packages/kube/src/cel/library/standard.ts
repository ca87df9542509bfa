/** Operators, conversions, sizes and text matching of CEL's standard library. */
import { compilePattern } from '../../structural/pattern.ts'
import type { Library } from '../signature.ts'
import {
  CelList,
  type CelMap,
  compareValues,
  contains,
  Duration,
  EvaluationError,
  sameKeys,
  Timestamp,
  TypeValue,
  typeName,
  Uint,
  type Value,
} from '../value.ts'
import { codePoints, concatBytes } from './text.ts'
import { durationOf, durationTextOf, timestampOf, timestampText } from './time.ts'

const checkInt64 = (value: bigint): bigint => {
  if (BigInt.asIntN(64, value) !== value) throw new EvaluationError('integer overflow')
  return value
}
const nonZero = <T>(value: T, isZero: boolean, message: string): T => {
  if (isZero) throw new EvaluationError(message)
  return value
}
const orderings = (type: string, other = type): Library => ({
  [`_<_(${type}, ${other}): bool`]: (a: Value, b: Value) => (compareValues(a, b) ?? 1) < 0,
  [`_<=_(${type}, ${other}): bool`]: (a: Value, b: Value) => (compareValues(a, b) ?? 1) <= 0,
  [`_>_(${type}, ${other}): bool`]: (a: Value, b: Value) => (compareValues(a, b) ?? -1) > 0,
  [`_>=_(${type}, ${other}): bool`]: (a: Value, b: Value) => (compareValues(a, b) ?? -1) >= 0,
})

export const operators: Library = {
  // The compiler evaluates these operators itself; the entries only declare their types.
  '_==_(T, T): bool': () => false,
  '_!=_(T, T): bool': () => false,
  '@in(T, list<T>): bool': () => false,
  '@in(K, map<K, V>): bool': () => false,
  '_[_](list<T>, int): T': () => null,
  '_[_](map<K, V>, K): V': () => null,
  '_[_](optional<list<T>>, int): optional<T>': () => null,
  '_[_](optional<map<K, V>>, K): optional<V>': () => null,
  '_[?_](list<T>, int): optional<T>': () => null,
  '_[?_](map<K, V>, K): optional<V>': () => null,
  '_[?_](optional<list<T>>, int): optional<T>': () => null,
  '_[?_](optional<map<K, V>>, K): optional<V>': () => null,

  '!_(bool): bool': (a: boolean) => !a,
  '-_(int): int': (a: bigint) => checkInt64(-a),
  '-_(double): double': (a: number) => -a,
  '_+_(int, int): int': (a: bigint, b: bigint) => checkInt64(a + b),
  '_-_(int, int): int': (a: bigint, b: bigint) => checkInt64(a - b),
  '_*_(int, int): int': (a: bigint, b: bigint) => checkInt64(a * b),
  '_/_(int, int): int': (a: bigint, b: bigint) => checkInt64(a / nonZero(b, b === 0n, 'division by zero')),
  '_%_(int, int): int': (a: bigint, b: bigint) => checkInt64(a % nonZero(b, b === 0n, 'modulus by zero')),
  '_+_(uint, uint): uint': (a: Uint, b: Uint) => new Uint(a.value + b.value),
  '_-_(uint, uint): uint': (a: Uint, b: Uint) => new Uint(a.value - b.value),
  '_*_(uint, uint): uint': (a: Uint, b: Uint) => new Uint(a.value * b.value),
  '_/_(uint, uint): uint': (a: Uint, b: Uint) => new Uint(a.value / nonZero(b, b.value === 0n, 'division by zero').value),
  '_%_(uint, uint): uint': (a: Uint, b: Uint) => new Uint(a.value % nonZero(b, b.value === 0n, 'modulus by zero').value),
  '_+_(double, double): double': (a: number, b: number) => a + b,
  '_-_(double, double): double': (a: number, b: number) => a - b,
  '_*_(double, double): double': (a: number, b: number) => a * b,
  '_/_(double, double): double': (a: number, b: number) => a / b,
  '_+_(string, string): string': (a: string, b: string) => concatText(a, b),
  '_+_(bytes, bytes): bytes': concatBytes,
  '_+_(list<T>, list<T>): list<T>': concatLists,
  '_+_(timestamp, duration): timestamp': (a: Timestamp, b: Duration) => new Timestamp(a.nanos + b.nanos),
  '_+_(duration, timestamp): timestamp': (a: Duration, b: Timestamp) => new Timestamp(a.nanos + b.nanos),
  '_+_(duration, duration): duration': (a: Duration, b: Duration) => new Duration(a.nanos + b.nanos),
  '_-_(timestamp, timestamp): duration': (a: Timestamp, b: Timestamp) => new Duration(a.nanos - b.nanos),
  '_-_(timestamp, duration): timestamp': (a: Timestamp, b: Duration) => new Timestamp(a.nanos - b.nanos),
  '_-_(duration, duration): duration': (a: Duration, b: Duration) => new Duration(a.nanos - b.nanos),
  ...['bool', 'int', 'uint', 'double', 'string', 'bytes', 'timestamp', 'duration'].reduce(
    (library, type) => ({ ...library, ...orderings(type) }),
    {} as Library,
  ),
  ...orderings('int', 'uint'),
  ...orderings('int', 'double'),
  ...orderings('uint', 'int'),
  ...orderings('uint', 'double'),
  ...orderings('double', 'int'),
  ...orderings('double', 'uint'),
}

/** Limit of the length of a string that `+` returns, in UTF-16 code units: well above the size limit of an object. */
const MaxText = 16 * 1024 * 1024

function concatText(a: string, b: string): string {
  if (a.length + b.length > MaxText) throw new EvaluationError('string is too long')
  return a + b
}

/** Concatenates lists. Upstream: sets are united, and lists of type map are merged by key. */
function concatLists(a: CelList, b: CelList): CelList {
  const [left, right] = [a.values(), b.values()]
  const { kind } = a
  if (kind === 'set') return new CelList([...left, ...right.filter((value) => !contains(a, value))], undefined, kind)
  if (kind === 'atomic') return new CelList([...left, ...right])
  const replaced = left.map((value) => right.find((other) => sameKeys(value, other, kind.keys)) ?? value)
  const added = right.filter((other) => !left.some((value) => sameKeys(value, other, kind.keys)))
  return new CelList([...replaced, ...added], undefined, kind)
}

const conversionError = (type: string): EvaluationError => new EvaluationError(`type conversion error from 'string' to '${type}'`)

function integerOf(text: string): bigint {
  if (!/^[+-]?\d+$/.test(text)) throw conversionError('int')
  const value = BigInt(text.replace(/^\+/, ''))
  if (BigInt.asIntN(64, value) !== value) throw conversionError('int')
  return value
}

/** As upstream, -2^63 is an error, although an int can have this value. */
function truncateToInt(value: number): bigint {
  if (Number.isNaN(value) || value <= -(2 ** 63) || value >= 2 ** 63) throw new EvaluationError('integer overflow')
  return BigInt(Math.trunc(value))
}

function truncateToUint(value: number): Uint {
  if (Number.isNaN(value) || value < 0 || value >= 2 ** 64) throw new EvaluationError('unsigned integer overflow')
  return new Uint(BigInt(Math.trunc(value)))
}

/**
 * Formats a double with the fewest digits, as Go's %g. The text of a finite value has an exponent if the absolute value is at least 1e+06, or
 * below 1e-04 and not 0.
 */
export function doubleText(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf'
  if (Object.is(value, -0)) return '-0'
  const [mantissa = '', exponent = ''] = value.toExponential().split('e')
  const power = Number(exponent)
  if (power >= -4 && power < 6) return value.toString()
  return `${mantissa}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`
}

function doubleOf(text: string): number {
  const special = /^[+-]?(?:inf|infinity|nan)$/i.exec(text)
  if (special) return /nan/i.test(text) ? Number.NaN : text.startsWith('-') ? -Infinity : Infinity
  if (!/^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/.test(text)) throw conversionError('double')
  return Number(text)
}

function booleanOf(text: string): boolean {
  if (['1', 't', 'T', 'true', 'TRUE', 'True'].includes(text)) return true
  if (['0', 'f', 'F', 'false', 'FALSE', 'False'].includes(text)) return false
  throw conversionError('bool')
}

function decodeUTF8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new EvaluationError('invalid UTF-8 in bytes, cannot convert to string')
  }
}

export const conversions: Library = {
  'int(int): int': (a: bigint) => a,
  'int(uint): int': (a: Uint) => checkInt64(a.value),
  'int(double): int': truncateToInt,
  'int(string): int': integerOf,
  'int(timestamp): int': (a: Timestamp) => (a.nanos - (((a.nanos % Second) + Second) % Second)) / Second,
  'int(duration): int': (a: Duration) => a.nanos,
  'uint(uint): uint': (a: Uint) => a,
  'uint(int): uint': (a: bigint) => new Uint(a),
  'uint(double): uint': truncateToUint,
  'uint(string): uint': (a: string) => {
    if (!/^\+?\d+$/.test(a) || BigInt(a) >= 2n ** 64n) throw conversionError('uint')
    return new Uint(BigInt(a))
  },
  'double(double): double': (a: number) => a,
  'double(int): double': (a: bigint) => Number(a),
  'double(uint): double': (a: Uint) => Number(a.value),
  'double(string): double': doubleOf,
  'string(string): string': (a: string) => a,
  'string(int): string': (a: bigint) => a.toString(),
  'string(uint): string': (a: Uint) => a.value.toString(),
  'string(double): string': doubleText,
  'string(bool): string': (a: boolean) => String(a),
  'string(bytes): string': decodeUTF8,
  'string(timestamp): string': timestampText,
  'string(duration): string': durationTextOf,
  'bool(bool): bool': (a: boolean) => a,
  'bool(string): bool': booleanOf,
  'bytes(bytes): bytes': (a: Uint8Array) => a,
  'bytes(string): bytes': (a: string) => new TextEncoder().encode(a),
  'duration(duration): duration': (a: Duration) => a,
  'duration(int): duration': (nanos: bigint) => new Duration(nanos),
  'duration(string): duration': durationOf,
  'timestamp(timestamp): timestamp': (a: Timestamp) => a,
  'timestamp(int): timestamp': (a: bigint) => new Timestamp(a * Second),
  'timestamp(string): timestamp': timestampOf,
  'dyn(T): dyn': (a: Value) => a,
  'type(T): type': (a: Value) => new TypeValue(typeName(a)),
}
const Second = 1_000_000_000n

const sizes: Library = Object.fromEntries(
  [
    ['string', (a: string) => BigInt(codePoints(a))] as const,
    ['bytes', (a: Uint8Array) => BigInt(a.length)] as const,
    ['list<T>', (a: CelList) => BigInt(a.size)] as const,
    ['map<K, V>', (a: CelMap) => BigInt(a.size)] as const,
  ].flatMap(([type, run]) => [
    [`size(${type}): int`, run],
    [`${type}.size(): int`, run],
  ]),
)

const matches = (text: string, pattern: string): boolean => {
  const compiled = compilePattern(pattern)
  if (compiled.error !== undefined) throw new EvaluationError(`error parsing regexp: ${compiled.error}`)
  return compiled.test(text)
}

export const basics: Library = {
  ...sizes,
  'string.startsWith(string): bool': (a: string, b: string) => a.startsWith(b),
  'string.endsWith(string): bool': (a: string, b: string) => a.endsWith(b),
  'string.contains(string): bool': (a: string, b: string) => a.includes(b),
  'string.matches(string): bool': matches,
  'matches(string, string): bool': matches,
}
