const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour
const year = 365 * day

/**
 * Formats milliseconds as `kubectl get` shows ages: at most two units, coarser for longer durations; `<invalid>` from -2 s downwards.
 * Upstream: k8s.io/apimachinery/pkg/util/duration, HumanDuration.
 */
export function humanDuration(ms: number): string {
  if (ms <= -2 * second) return '<invalid>'
  if (ms < 0) return '0s'
  if (ms < 2 * minute) return `${Math.floor(ms / second)}s`
  if (ms < 10 * minute) return twoUnits(ms, minute, 'm', second, 's')
  if (ms < 3 * hour) return `${Math.floor(ms / minute)}m`
  if (ms < 8 * hour) return twoUnits(ms, hour, 'h', minute, 'm')
  if (ms < 2 * day) return `${Math.floor(ms / hour)}h`
  if (ms < 8 * day) return twoUnits(ms, day, 'd', hour, 'h')
  if (ms < 2 * year) return `${Math.floor(ms / day)}d`
  if (ms < 8 * year) return twoUnits(ms, year, 'y', day, 'd')
  return `${Math.floor(ms / year)}y`
}

function twoUnits(ms: number, unit: number, name: string, smaller: number, smallerName: string): string {
  const remainder = Math.floor((ms % unit) / smaller)
  return `${Math.floor(ms / unit)}${name}${remainder === 0 ? '' : `${remainder}${smallerName}`}`
}

/** Formats the time from a timestamp to `now` (milliseconds since the epoch); `<invalid>` for an invalid or absent timestamp. */
export function ageText(time: unknown, now: number): string {
  const then = typeof time === 'string' ? Date.parse(time) : Number.NaN
  return Number.isNaN(then) ? '<invalid>' : humanDuration(now - then)
}
