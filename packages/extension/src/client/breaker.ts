/**
 * A circuit breaker for one handler. After some consecutive failed calls it rejects calls for a delay, then allows one trial call.
 * Each further failed call, such as the trial call, doubles the delay, up to a limit. Upstream has no circuit breaker; its
 * proposal of the lifecycle hooks names one as future work.
 */
import type { Clock } from '@capstan/kube'
import { minutes, seconds } from '@capstan/kube'
import { HookFailed } from './hook-failed.ts'

export interface BreakerLimits {
  /** Number of consecutive failed calls that opens the breaker. Only errors for which `isOutage` returns true are counted. */
  readonly failures: number
  /** Initial time for which the breaker is open, in milliseconds. Each further failed call doubles the time. */
  readonly shortest: number
  /** Maximum time for which the breaker is open, in milliseconds. */
  readonly longest: number
  /** Maximum number of concurrent calls. Additional calls wait, at most for their `maxWait`. */
  readonly inFlight: number
}

export const defaultBreakerLimits: BreakerLimits = {
  failures: 5,
  shortest: seconds(1),
  longest: minutes(1),
  inFlight: 64,
}

export interface BreakerRunOptions {
  /** Time limit for waiting while too many calls are in progress, in milliseconds. */
  readonly maxWait: number
  readonly signal?: AbortSignal | undefined
  /**
   * Whether to make the call even while the breaker is open. Set for handlers with failure policy Ignore: a failure may be
   * ignored only after the handler was called for the same object.
   */
  readonly callWhenOpen?: boolean
}

/** `half-open`: the delay has passed, and a trial call is allowed or in progress. */
export type BreakerState = 'closed' | 'open' | 'half-open'

export class Breaker {
  readonly #clock: Clock
  readonly #limits: BreakerLimits
  readonly #waiting: (() => void)[] = []
  #inFlight = 0
  #failures = 0
  #openUntil = 0
  #isTrying = false
  #last = ''

  constructor(clock: Clock, limits: BreakerLimits = defaultBreakerLimits) {
    this.#clock = clock
    this.#limits = limits
  }

  get state(): BreakerState {
    if (this.#failures < this.#limits.failures) return 'closed'
    return this.#isTrying || this.#clock.elapsed() >= this.#openUntil ? 'half-open' : 'open'
  }

  /** Milliseconds until a trial call is allowed; 0 unless the breaker is open. */
  get retryAfter(): number {
    return this.state === 'open' ? this.#openUntil - this.#clock.elapsed() : 0
  }

  /**
   * Makes the call unless the breaker rejects it. `isOutage`: whether an error is a failure of the server rather than of the request.
   * A success, and an error of the request unless `signal` has aborted, reset the number of consecutive failures.
   *
   * @throws HookFailed `unavailable`, if too many calls were in progress for `maxWait` milliseconds; without `callWhenOpen`, also
   *   if the breaker is open or a trial call is in progress; the error of the call; the signal's reason if it aborts while the
   *   call waits
   */
  async run<T>(call: () => Promise<T>, isOutage: (err: unknown) => boolean, options: BreakerRunOptions): Promise<T> {
    const { maxWait, signal, callWhenOpen = false } = options
    if (!callWhenOpen) this.#assertCallable()
    await this.#enter(maxWait, signal)
    try {
      // Other calls may have opened the breaker while this call waited.
      if (!callWhenOpen) this.#assertCallable()
      const isTrial = this.state === 'half-open' && !this.#isTrying
      if (isTrial) this.#isTrying = true
      try {
        const result = await call()
        this.#failures = 0
        return result
      } catch (err) {
        if (isOutage(err)) this.#recordFailure(err)
        else if (!signal?.aborted) this.#failures = 0
        throw err
      } finally {
        if (isTrial) this.#isTrying = false
      }
    } finally {
      this.#inFlight--
      this.#waiting.shift()?.()
    }
  }

  /**
   * Throws if calls are rejected. The message contains the last failure but no times, so that it does not change with every call.
   */
  #assertCallable(): void {
    const { state } = this
    if (state === 'closed' || (state === 'half-open' && !this.#isTrying)) return
    throw new HookFailed('unavailable', `not called, because the last ${this.#limits.failures} calls failed: ${this.#last}`)
  }

  #recordFailure(err: unknown): void {
    this.#failures++
    this.#last = (err as Error).message
    const over = this.#failures - this.#limits.failures
    if (over < 0) return
    this.#openUntil = this.#clock.elapsed() + Math.min(this.#limits.longest, this.#limits.shortest * 2 ** Math.min(over, 30))
  }

  async #enter(maxWait: number, signal: AbortSignal | undefined): Promise<void> {
    if (this.#inFlight < this.#limits.inFlight) {
      this.#inFlight++
      return
    }
    signal?.throwIfAborted()
    await new Promise<void>((resolve, reject) => {
      const leave = (settle: () => void) => () => {
        const index = this.#waiting.indexOf(enter)
        if (index >= 0) this.#waiting.splice(index, 1)
        timer.cancel()
        signal?.removeEventListener('abort', aborted)
        settle()
      }
      const enter = leave(() => {
        this.#inFlight++
        resolve()
      })
      const aborted = leave(() => reject(signal!.reason))
      const full = `not called, because ${this.#limits.inFlight} calls are in progress`
      const timer = this.#clock.schedule(
        maxWait,
        leave(() => reject(new HookFailed('unavailable', full))),
      )
      signal?.addEventListener('abort', aborted, { once: true })
      this.#waiting.push(enter)
    })
  }
}
