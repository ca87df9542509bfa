/** Functions that create and read optional values. */
import type { Library } from '../signature.ts'
import { CelList, CelMap, Duration, EvaluationError, none, Optional, Timestamp, Uint, type Value } from '../value.ts'

function valueOf({ value }: Optional): Value {
  if (value === undefined) throw new EvaluationError('optional.none() dereference')
  return value
}

/** Reports whether a value is the zero value of its type, such as 0, an empty string or an empty list. */
function isZero(value: Value): boolean {
  if (value === null || value === false || value === 0 || value === 0n || value === '') return true
  if (value instanceof CelList || value instanceof CelMap) return value.size === 0
  if (value instanceof Uint) return value.value === 0n
  if (value instanceof Duration) return value.nanos === 0n
  if (value instanceof Timestamp) return value.nanos === ZeroTime
  return value instanceof Uint8Array && value.length === 0
}

/** Go's zero time, 0001-01-01T00:00:00Z, in nanoseconds since the Unix epoch. */
const ZeroTime = -62_135_596_800_000_000_000n

const unwrapped = (list: CelList): CelList =>
  new CelList((list.values() as readonly Optional[]).flatMap(({ value }) => (value === undefined ? [] : [value])))

export const optionals: Library = {
  'optional.none(): optional<T>': () => none,
  'optional.of(T): optional<T>': (value: Value) => new Optional(value),
  'optional.ofNonZeroValue(T): optional<T>': (value: Value) => (isZero(value) ? none : new Optional(value)),
  'optional.unwrap(list<optional<T>>): list<T>': unwrapped,
  'list<optional<T>>.unwrapOpt(): list<T>': unwrapped,
  'optional<T>.hasValue(): bool': ({ value }: Optional) => value !== undefined,
  'optional<T>.value(): T': valueOf,
  'optional<T>.or(optional<T>): optional<T>': (first: Optional, second: Optional) => (first.value === undefined ? second : first),
  'optional<T>.orValue(T): T': ({ value }: Optional, fallback: Value) => (value === undefined ? fallback : value),
}
