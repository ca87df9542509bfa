/** Parses and formats durations as Go does, such as `1h30m0s`, `1.5s` or `300ms`. Upstream: time.ParseDuration and Duration.String. */

const units: { readonly [unit: string]: bigint } = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
}
const Longest = 2n ** 63n

/** Returns a duration in nanoseconds. @throws Error with Go's text when `text` is not a duration */
export function parseDuration(text: string): bigint {
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
    const scale = units[unit]
    if (scale === undefined) throw new Error(`time: unknown unit ${JSON.stringify(unit)} in duration ${JSON.stringify(text)}`)
    total += BigInt(whole === '' ? 0 : whole) * scale
    if (fraction !== '') total += (BigInt(fraction) * scale) / 10n ** BigInt(fraction.length)
    at += all.length
  }
  if (total > Longest || (total === Longest && !isNegative)) throw invalid()
  return isNegative ? -total : total
}

export function formatDuration(nanoseconds: bigint): string {
  if (nanoseconds < 0n) return `-${formatDuration(-nanoseconds)}`
  if (nanoseconds === 0n) return '0s'
  for (const [unit, scale] of [
    ['ns', 1n],
    ['µs', 1_000n],
    ['ms', 1_000_000n],
  ] as const) {
    if (nanoseconds < scale * 1000n && nanoseconds < 1_000_000_000n) return `${decimal(nanoseconds, scale)}${unit}`
  }
  const hours = nanoseconds / units.h!
  const minutes = (nanoseconds / units.m!) % 60n
  const seconds = `${decimal(nanoseconds % units.m!, units.s!)}s`
  if (hours > 0n) return `${hours}h${minutes}m${seconds}`
  return minutes > 0n ? `${minutes}m${seconds}` : seconds
}

function decimal(value: bigint, scale: bigint): string {
  const whole = value / scale
  const rest = value % scale
  if (rest === 0n) return String(whole)
  const digits = String(scale).length - 1
  return `${whole}.${String(rest).padStart(digits, '0').replace(/0+$/, '')}`
}

const MaxSeconds = 2 ** 31 - 1

/** Converts a duration to whole seconds, truncated, and at most the largest signed 32-bit integer. Upstream: ConvertToSeconds. */
export function secondsOf(duration: string): number {
  const seconds = Number(parseDuration(duration) / units.s!)
  return Math.min(seconds, MaxSeconds)
}

/** Converts seconds to a duration. Upstream: ConvertFromSeconds. */
export const durationOf = (seconds: number): string => formatDuration(BigInt(seconds) * units.s!)
