/** Sprig's duration functions, except those that read the clock. Upstream: sprig v3, date.go. */
import { formatNanoseconds, parseNanoseconds } from '@capstan/kube'
import type { TemplateFunction, Value } from '../value.ts'
import { goFunction, toInt } from '../value.ts'
import { clampedInt } from './convert.ts'

const Second = 1_000_000_000n
const Day = 86_400n * Second

const Units: readonly (readonly [name: string, nanoseconds: bigint])[] = [
  ['y', 365n * Day],
  ['mo', 30n * Day],
  ['d', Day],
  ['h', 3600n * Second],
  ['m', 60n * Second],
  ['s', Second],
]

export const durationFunctions: Readonly<Record<string, TemplateFunction>> = {
  duration: goFunction(['any'], (seconds) => formatNanoseconds(toInt(secondsOf(seconds) * Second))),
  durationRound: goFunction(['any'], (duration) => {
    const nanoseconds = nanosecondsOf(duration)
    const size = nanoseconds < 0n ? -nanoseconds : nanoseconds
    // A duration of exactly one unit is shown in the next smaller unit: one hour is `60m`. One second has none, and is `0s`.
    const [name, unit] = Units.find(([, candidate]) => size > candidate) ?? []
    return unit === undefined ? '0s' : `${size / unit}${name}`
  }),
}

// Upstream supports int64 values and strings, and shows values of Go's type int as `0s`. Here, int and int64 are one type.

const secondsOf = (value: Value): bigint =>
  typeof value === 'bigint' ? value : typeof value === 'string' ? clampedInt(value) : 0n

function nanosecondsOf(value: Value): bigint {
  if (typeof value !== 'string') return typeof value === 'bigint' ? value : 0n
  try {
    return parseNanoseconds(value)
  } catch {
    return 0n
  }
}
