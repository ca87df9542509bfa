/** Durations in Go's format: `1h30m`, `1.5s`, `100ms`. Upstream: time.ParseDuration and Duration.String. */

const Units: { readonly [unit: string]: bigint } = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
}
/** Durations of Go are nanoseconds in 64 bits. */
const Longest = 2n ** 63n
/** Number of digits of 2^63. */
const MaxDigits = 19

/** Parses a duration; returns milliseconds. @throws Error, usually with Go's text, if the text is not a duration or exceeds 64 bits */
export const parseDuration = (text: string): number => Number(parseNanoseconds(text)) / 1e6

/** Formats milliseconds as Go does: hours and minutes with all smaller units (`1h0m0s`), a duration below a second in one unit (`1.5ms`). */
export const durationText = (milliseconds: number): string => formatNanoseconds(BigInt(Math.round(milliseconds * 1e6)))

/** Parses a duration; returns nanoseconds. @throws Error, usually with Go's text, if the text is not a duration or exceeds 64 bits */
export function parseNanoseconds(text: string): bigint {
  const invalid = () => new Error(`time: invalid duration ${JSON.stringify(text)}`)
  const isNegative = text.startsWith('-')
  const rest = text.replace(/^[-+]/, '')
  if (rest === '0') return 0n
  if (rest === '') throw invalid()
  let total = 0n
  let at = 0
  const part = /(\d*)(?:\.(\d*))?([^\d.]*)/y
  while (at < rest.length) {
    part.lastIndex = at
    const [all = '', whole = '', fraction = '', unit = ''] = part.exec(rest) ?? []
    if (whole === '' && fraction === '') throw invalid()
    if (unit === '') throw new Error(`time: missing unit in duration ${JSON.stringify(text)}`)
    const scale = Object.hasOwn(Units, unit) ? Units[unit] : undefined
    if (scale === undefined) throw new Error(`time: unknown unit ${JSON.stringify(unit)} in duration ${JSON.stringify(text)}`)
    const digits = whole.replace(/^0+/, '')
    if (digits.length > MaxDigits) throw invalid()
    // Later digits are less than a nanosecond in each unit.
    const fractionDigits = fraction.slice(0, MaxDigits)
    total += BigInt(digits) * scale + (BigInt(fractionDigits) * scale) / 10n ** BigInt(fractionDigits.length)
    at += all.length
  }
  if (total > Longest || (total === Longest && !isNegative)) throw invalid()
  return isNegative ? -total : total
}

/** Formats nanoseconds as `durationText` formats milliseconds. */
export function formatNanoseconds(duration: bigint): string {
  if (duration === 0n) return '0s'
  const sign = duration < 0n ? '-' : ''
  const nanoseconds = duration < 0n ? -duration : duration
  if (nanoseconds < 1_000n) return `${sign}${nanoseconds}ns`
  if (nanoseconds < 1_000_000n) return `${sign}${decimal(nanoseconds, 3)}µs`
  if (nanoseconds < 1_000_000_000n) return `${sign}${decimal(nanoseconds, 6)}ms`
  const minutes = nanoseconds / 60_000_000_000n
  const seconds = `${decimal(nanoseconds % 60_000_000_000n, 9)}s`
  if (minutes === 0n) return sign + seconds
  if (minutes < 60n) return `${sign}${minutes}m${seconds}`
  return `${sign}${minutes / 60n}h${minutes % 60n}m${seconds}`
}

/** Formats `value` with the decimal point moved left by `places`, without trailing zeros of the fraction. */
function decimal(value: bigint, places: number): string {
  const digits = value.toString().padStart(places + 1, '0')
  const fraction = digits.slice(-places).replace(/0+$/, '')
  return fraction === '' ? digits.slice(0, -places) : `${digits.slice(0, -places)}.${fraction}`
}
