/** Progress of simulated steps, derived from their start times rather than kept in memory, so that a restart changes nothing. */
import { type Outcome, requeue, wait } from '@capstan/controller'
import { parseDuration, seconds } from '@capstan/kube'

/** A scripted failure, as in `spec.simulated.failure`. */
export interface ScriptedFailure {
  readonly message: string
  /** Attempts that fail before one succeeds; all of them when absent. */
  readonly times?: number
}

export type Progress =
  | { readonly state: 'running'; readonly until: number }
  /** `retryAt` is absent when nothing will be tried again until the spec changes. */
  | { readonly state: 'failed'; readonly message: string; readonly retryAt?: number }
  | { readonly state: 'done'; readonly at: number }

/** How long a failed attempt rests before the next one. */
const RetryDelay = seconds(5)

/**
 * Where a step that began at `started` stands now. Each attempt takes `delay`; failed ones rest for `RetryDelay` before the next.
 *
 * @example progress(started, clock.now(), { delay: '2s', failure: { message: 'no capacity', times: 1 } })
 */
export function progress(
  started: number,
  now: number,
  script: { readonly delay?: string | undefined; readonly failure?: ScriptedFailure | undefined },
): Progress {
  const delay = script.delay === undefined ? 0 : parseDuration(script.delay)
  const { failure } = script
  const failing = failure === undefined ? 0 : (failure.times ?? Number.POSITIVE_INFINITY)
  // A failure without an end is not tried again: at rest nothing happens.
  const attempt = failing === Number.POSITIVE_INFINITY ? 0 : Math.max(0, Math.floor((now - started) / (delay + RetryDelay)))
  if (attempt >= failing) {
    const end = started + failing * (delay + RetryDelay) + delay
    return now >= end ? { state: 'done', at: end } : { state: 'running', until: end }
  }
  const ends = started + attempt * (delay + RetryDelay) + delay
  if (now < ends) return { state: 'running', until: ends }
  const { message } = failure!
  return failure!.times === undefined ? { state: 'failed', message } : { state: 'failed', message, retryAt: ends + RetryDelay }
}

/** The failure scripted for this stage, if it is this stage that fails. */
export const failureAt = <Stage extends string>(
  failure: (ScriptedFailure & { readonly at: Stage }) | undefined,
  stage: NoInfer<Stage>,
): ScriptedFailure | undefined => (failure?.at === stage ? failure : undefined)

/** A time to the millisecond, as `status.timeline` keeps it: delays shorter than a second count too. */
export const instant = (ms: number): string => new Date(ms).toISOString()

/** A scripted failure is tried again at its time, or waits for a change of the spec. */
export const again = (retryAt: number | undefined, now: number, what: string): Outcome =>
  retryAt === undefined ? wait(`${what}: the spec to change`) : requeue(retryAt - now, `${what}: the next attempt`)
