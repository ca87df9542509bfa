/** The deadline of a call. */
import type { Clock } from '@capstan/kube'
import { durationText, parseDuration, seconds } from '@capstan/kube'

export interface Deadline {
  /** Aborts at the deadline, or when the caller disconnects. */
  readonly signal: AbortSignal
  /** Whether the deadline has passed. */
  readonly passed: boolean
  cancel(): void
}

/** The maximum timeout that core sends. Used if the request has no valid timeout. */
const defaultTimeout = seconds(30)

/**
 * Creates a deadline.
 *
 * @param timeout the caller's timeout as Go duration, such as `10s`; 30 seconds if it is missing, invalid or not positive
 */
export function deadlineOf(callerSignal: AbortSignal, timeout: string | null, clock: Clock): Deadline {
  const limit = durationOf(timeout) ?? defaultTimeout
  const expired = new AbortController()
  const timer = clock.schedule(limit, () =>
    expired.abort(new DOMException(`the caller's timeout of ${durationText(limit)} has expired`, 'TimeoutError')),
  )
  return {
    signal: AbortSignal.any([callerSignal, expired.signal]),
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
