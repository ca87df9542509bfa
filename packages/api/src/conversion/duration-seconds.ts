/** Converts between durations in Go's format, as in v1beta1, and the seconds of v1beta2. */
import { formatNanoseconds, parseNanoseconds } from '@capstan/kube'

const Second = 1_000_000_000n
const MaxSeconds = 2 ** 31 - 1

/** Converts a duration to whole seconds, truncated, and at most the largest signed 32-bit integer. Upstream: ConvertToSeconds. */
export function secondsOf(duration: string): number {
  const seconds = Number(parseNanoseconds(duration) / Second)
  return Math.min(seconds, MaxSeconds)
}

/** Converts seconds to a duration. Upstream: ConvertFromSeconds. */
export const durationOf = (seconds: number): string => formatNanoseconds(BigInt(seconds) * Second)
