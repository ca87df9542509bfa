/** Timestamps and durations of CEL: conversions from and to text, and functions such as `getHours`. */
import { parseNanoseconds } from '../../duration.ts'
import type { Library } from '../signature.ts'
import { Duration, EvaluationError, Timestamp } from '../value.ts'

const Second = 1_000_000_000n

/** Parses a duration in Go's format, such as `1h30m`. @throws EvaluationError */
export function durationOf(text: string): Duration {
  try {
    return new Duration(parseNanoseconds(text))
  } catch {
    throw new EvaluationError("type conversion error from 'string' to 'google.protobuf.Duration'")
  }
}

/** Formats a duration in seconds, without trailing zeros of the fraction. */
export function durationTextOf({ nanos }: Duration): string {
  const size = nanos < 0n ? -nanos : nanos
  return `${nanos < 0n ? '-' : ''}${size / Second}${fractionText(size % Second)}s`
}

const fractionText = (nanos: bigint): string => (nanos === 0n ? '' : `.${nanos.toString().padStart(9, '0').replace(/0+$/, '')}`)

const Time = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))$/

/** Parses a time in the format of RFC 3339. @throws EvaluationError */
export function timestampOf(text: string): Timestamp {
  const parts = Time.exec(text)
  const conversionError = () => new EvaluationError("type conversion error from 'string' to 'google.protobuf.Timestamp'")
  if (!parts) throw conversionError()
  const [, year, month, day, hour, minute, second, fraction = '', sign, offsetHours = '0', offsetMinutes = '0'] = parts
  const date = `${year}-${month}-${day}`
  const midnight = Date.parse(`${date}T00:00:00Z`)
  if (Number.isNaN(midnight) || new Date(midnight).toISOString().slice(0, 10) !== date) throw conversionError()
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59 || Number(offsetMinutes) > 59) throw conversionError()
  const offset = (Number(offsetHours) * 60 + Number(offsetMinutes)) * (sign === '-' ? -1 : 1)
  const seconds = midnight / 1000 + Number(hour) * 3600 + (Number(minute) - offset) * 60 + Number(second)
  return new Timestamp(BigInt(seconds) * Second + BigInt(fraction.slice(0, 9).padEnd(9, '0')))
}

/** Formats a timestamp as RFC 3339 in UTC, without trailing zeros of the fraction. */
export function timestampText({ nanos }: Timestamp): string {
  const fraction = ((nanos % Second) + Second) % Second
  const milliseconds = Number((nanos - fraction) / Second) * 1000
  return `${new Date(milliseconds).toISOString().slice(0, 19)}${fractionText(fraction)}Z`
}

interface Parts {
  readonly year: number
  readonly month: number
  readonly day: number
  readonly weekday: number
  readonly yearDay: number
  readonly hour: number
  readonly minute: number
  readonly second: number
  readonly millisecond: number
}

function partsOf({ nanos }: Timestamp, zone = 'UTC'): Parts {
  const fraction = ((nanos % Second) + Second) % Second
  const instant = Number((nanos - fraction) / Second) * 1000
  const local = new Date(instant + offsetOf(instant, zone))
  const year = local.getUTCFullYear()
  return {
    year,
    month: local.getUTCMonth(),
    day: local.getUTCDate(),
    weekday: local.getUTCDay(),
    yearDay: Math.floor((local.getTime() - new Date(0).setUTCFullYear(year, 0, 1)) / 86_400_000),
    hour: local.getUTCHours(),
    minute: local.getUTCMinutes(),
    second: local.getUTCSeconds(),
    millisecond: Number(fraction / 1_000_000n),
  }
}

/** Offset of a time zone (`+02:00`, `Europe/Berlin`) from UTC at an instant, in milliseconds. */
function offsetOf(instant: number, zone: string): number {
  if (zone === 'UTC' || zone === 'Z' || zone === '') return 0
  const fixed = /^([+-]?)(\d\d):(\d\d)$/.exec(zone)
  if (fixed) return (Number(fixed[2]) * 60 + Number(fixed[3])) * 60_000 * (fixed[1] === '-' ? -1 : 1)
  let format: Intl.DateTimeFormat
  try {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      era: 'short',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
  } catch {
    throw new EvaluationError(`unknown time zone ${zone}`)
  }
  const part = Object.fromEntries(format.formatToParts(instant).map(({ type, value }) => [type, value]))
  const year = part['era'] === 'BC' ? 1 - Number(part['year']) : Number(part['year'])
  const local = new Date(0)
  local.setUTCFullYear(year, Number(part['month']) - 1, Number(part['day']))
  local.setUTCHours(Number(part['hour']), Number(part['minute']), Number(part['second']))
  return local.getTime() - instant
}

const Getters: { readonly [name: string]: (parts: Parts) => number } = {
  getFullYear: ({ year }) => year,
  getMonth: ({ month }) => month,
  getDate: ({ day }) => day,
  getDayOfMonth: ({ day }) => day - 1,
  getDayOfWeek: ({ weekday }) => weekday,
  getDayOfYear: ({ yearDay }) => yearDay,
  getHours: ({ hour }) => hour,
  getMinutes: ({ minute }) => minute,
  getSeconds: ({ second }) => second,
  getMilliseconds: ({ millisecond }) => millisecond,
}

export const time: Library = {
  ...Object.fromEntries(
    Object.entries(Getters).flatMap(([name, get]) => [
      [`timestamp.${name}(): int`, (at: Timestamp) => BigInt(get(partsOf(at)))],
      [`timestamp.${name}(string): int`, (at: Timestamp, zone: string) => BigInt(get(partsOf(at, zone)))],
    ]),
  ),
  'duration.getHours(): int': ({ nanos }: Duration) => nanos / (3600n * Second),
  'duration.getMinutes(): int': ({ nanos }: Duration) => nanos / (60n * Second),
  'duration.getSeconds(): int': ({ nanos }: Duration) => nanos / Second,
  'duration.getMilliseconds(): int': ({ nanos }: Duration) => nanos / 1_000_000n,
}
