/** Computes the progress of simulated steps from their start times. No state is kept in memory, so that a restart has no effect. */
import { type Outcome, requeue, wait } from '@capstan/controller'
import { parseDuration, seconds } from '@capstan/kube'

/** A simulated failure, as in `spec.simulated.failure`. */
export interface ScriptedFailure {
  readonly message: string
  /** Number of attempts that fail before an attempt succeeds. When absent, the first attempt fails and is not retried. */
  readonly times?: number
  /** Present for a terminal failure. */
  readonly reason?: string
}

/**
 * Reports a terminal failure on the draft of a status, in the fields that contract v1beta2 deprecates. Does nothing for other failures.
 */
export function reportTerminal(
  status: { failureReason?: string; failureMessage?: string },
  failure: ScriptedFailure | undefined,
): void {
  if (failure?.reason === undefined) return
  status.failureReason = failure.reason
  status.failureMessage = failure.message
}

/** Progress of a simulated step. Times are in milliseconds since the Unix epoch. */
export type Progress =
  | { readonly state: 'running'; readonly until: number }
  /** `retryAt` is absent when there is no retry until the spec changes. */
  | { readonly state: 'failed'; readonly message: string; readonly retryAt?: number }
  | { readonly state: 'done'; readonly at: number }

/** Time between a failed attempt and the next attempt. */
const RetryDelay = seconds(5)

/**
 * Returns the progress of a step that began at `started`. Each attempt takes `delay`, by default no time; a failed attempt is retried after
 * `RetryDelay`, unless the failure has no `times`. If `started` is further in the future than the step lasts, the clock was set back after
 * the start: the duration then counts as over.
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
  const failedAttempts = failure === undefined ? 0 : (failure.times ?? Number.POSITIVE_INFINITY)
  const duration = (Number.isFinite(failedAttempts) ? failedAttempts : 0) * (delay + RetryDelay) + delay
  const effectiveStart = started - now > duration ? now - duration : started
  // A failure without `times` is not retried, so that an idle system does no work.
  const attempt =
    failedAttempts === Number.POSITIVE_INFINITY ? 0 : Math.max(0, Math.floor((now - effectiveStart) / (delay + RetryDelay)))
  if (attempt >= failedAttempts) {
    const end = effectiveStart + failedAttempts * (delay + RetryDelay) + delay
    return now >= end ? { state: 'done', at: end } : { state: 'running', until: end }
  }
  const attemptEnd = effectiveStart + attempt * (delay + RetryDelay) + delay
  if (now < attemptEnd) return { state: 'running', until: attemptEnd }
  const { message } = failure!
  return failure!.times === undefined
    ? { state: 'failed', message }
    : { state: 'failed', message, retryAt: attemptEnd + RetryDelay }
}

/** Returns the failure if it is for this stage. */
export const failureAt = <Stage extends string>(
  failure: (ScriptedFailure & { readonly at: Stage }) | undefined,
  stage: NoInfer<Stage>,
): ScriptedFailure | undefined => (failure?.at === stage ? failure : undefined)

/** Formats a time for `status.timeline`, with milliseconds, because delays may be shorter than a second. */
export const timeText = (ms: number): string => new Date(ms).toISOString()

/** Requeues at the retry time of a simulated failure. Without a retry time, waits for a change of the spec. */
export const retryOutcome = (retryAt: number | undefined, now: number, subject: string): Outcome =>
  retryAt === undefined ? wait(`${subject}: the spec to change`) : requeue(retryAt - now, `${subject}: the next attempt`)
