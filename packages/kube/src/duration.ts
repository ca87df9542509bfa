/** Durations in Go's format: `1h30m`, `1.5s`, `100ms`. Values are milliseconds. */

/** Parses a duration. @throws Error with Go's text when the text is not a duration */
export function parseDuration(text: string): number {
  const quoted = JSON.stringify(text)
  const sign = text.startsWith('-') ? -1 : 1
  let remaining = text.replace(/^[-+]/, '')
  if (remaining === '0') return 0
  if (remaining === '') throw new Error(`time: invalid duration ${quoted}`)
  let total = 0
  while (remaining !== '') {
    const [match, number = '', unit = ''] = /^(\d*\.?\d*)([^\d.]*)/.exec(remaining)!
    if (!/\d/.test(number)) throw new Error(`time: invalid duration ${quoted}`)
    if (unit === '') throw new Error(`time: missing unit in duration ${quoted}`)
    const milliseconds = Object.hasOwn(Units, unit) ? Units[unit as keyof typeof Units] : undefined
    if (milliseconds === undefined) throw new Error(`time: unknown unit ${JSON.stringify(unit)} in duration ${quoted}`)
    total += Number(number) * milliseconds
    remaining = remaining.slice(match.length)
  }
  if (total > MaxMilliseconds) throw new Error(`time: invalid duration ${quoted}`)
  return sign * total
}

/** Formats a duration as Go does: hours and minutes with all smaller units (`1h0m0s`), a duration below a second in one unit (`1.5ms`). */
export function durationText(milliseconds: number): string {
  const nanoseconds = BigInt(Math.round(Math.abs(milliseconds) * 1e6))
  if (nanoseconds === 0n) return '0s'
  const sign = milliseconds < 0 ? '-' : ''
  if (nanoseconds < 1_000n) return `${sign}${nanoseconds}ns`
  if (nanoseconds < 1_000_000n) return `${sign}${decimal(nanoseconds, 3)}µs`
  if (nanoseconds < 1_000_000_000n) return `${sign}${decimal(nanoseconds, 6)}ms`
  const minutes = nanoseconds / 60_000_000_000n
  const seconds = `${decimal(nanoseconds % 60_000_000_000n, 9)}s`
  if (minutes === 0n) return sign + seconds
  if (minutes < 60n) return `${sign}${minutes}m${seconds}`
  return `${sign}${minutes / 60n}h${minutes % 60n}m${seconds}`
}

const Units = { ns: 1e-6, us: 1e-3, µs: 1e-3, μs: 1e-3, ms: 1, s: 1e3, m: 60e3, h: 3600e3 }
/** Go's durations are nanoseconds in 64 bits. */
const MaxMilliseconds = 2 ** 63 / 1e6

/** Formats `value` with the decimal point moved left by `places`, without trailing zeros. */
function decimal(value: bigint, places: number): string {
  const digits = value.toString().padStart(places + 1, '0')
  const fraction = digits.slice(-places).replace(/0+$/, '')
  return fraction === '' ? digits.slice(0, -places) : `${digits.slice(0, -places)}.${fraction}`
}
