/** Until when the caller waits. */
import type { Clock } from '@capstan/kube'
import { durationText, parseDuration, seconds } from '@capstan/kube'

export interface Deadline {
  /** Aborts when the time is over, or when the caller goes away. */
  readonly signal: AbortSignal
  /** The time is over. */
  readonly passed: boolean
  cancel(): void
}

/** Core's longest timeout. */
const longest = seconds(30)

/** @param timeout as the caller has put it, a duration of Go such as `10s`; half a minute when it says nothing that makes sense */
export function deadlineOf(gone: AbortSignal, timeout: string | null, clock: Clock): Deadline {
  const limit = durationOf(timeout) ?? longest
  const expired = new AbortController()
  const timer = clock.schedule(limit, () =>
    expired.abort(new DOMException(`the caller waits ${durationText(limit)} and no longer`, 'TimeoutError')),
  )
  return {
    signal: AbortSignal.any([gone, expired.signal]),
    get passed() {
      return expired.signal.aborted
    },
    cancel: () => timer.cancel(),
  }
}

function durationOf(text: string | null): number | undefined {
  if (text === null) return undefined
  try {
    const milliseconds = parseDuration(text)
    return milliseconds > 0 ? milliseconds : undefined
  } catch {
    return undefined
  }
}
