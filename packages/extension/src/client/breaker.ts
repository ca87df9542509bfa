/**
 * A circuit breaker for one handler. After some consecutive failed calls, calls are rejected for a while, then one call is tried; each
 * failure doubles the delay. The Runtime SDK proposal promises it; upstream has not implemented it.
 */
import type { Clock } from '@capstan/kube'
import { minutes, seconds } from '@capstan/kube'
import { HookFailed } from './hook-failed.ts'

export interface BreakerLimits {
  /** Consecutive failed calls that open the breaker. */
  readonly failures: number
  /** First and longest time, in milliseconds, for which the breaker stays open. */
  readonly shortest: number
  readonly longest: number
  /** Most concurrent calls. Further ones wait, at most for their timeout. */
  readonly inFlight: number
}

export const defaultBreakerLimits: BreakerLimits = {
  failures: 5,
  shortest: seconds(1),
  longest: minutes(1),
  inFlight: 64,
}

export interface BreakerRunOptions {
  /** Most milliseconds to wait while too many calls are in progress. */
  readonly patience: number
  readonly signal?: AbortSignal | undefined
  /** Makes the call even while the breaker is open, for callers that would treat the rejection as a response. */
  readonly evenWhenOpen?: boolean
}

/** `half-open`: the delay has passed and one call is being tried. */
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

  /** Milliseconds until a call is allowed; 0 when it is allowed now. */
  get retryAfter(): number {
    return this.state === 'open' ? this.#openUntil - this.#clock.elapsed() : 0
  }

  /**
   * Makes the call unless the breaker is open. `isOutage` returns whether a failure concerns the server rather than the request.
   *
   * @throws HookFailed unavailable, at once, while calls are rejected
   */
  async run<T>(call: () => Promise<T>, isOutage: (err: unknown) => boolean, options: BreakerRunOptions): Promise<T> {
    const { patience, signal, evenWhenOpen = false } = options
    if (!evenWhenOpen) this.#assertCallable()
    await this.#enter(patience, signal)
    try {
      // Other calls may have opened the breaker while this one waited.
      if (!evenWhenOpen) this.#assertCallable()
      const isTrial = this.state === 'half-open'
      if (isTrial) this.#isTrying = true
      try {
        const result = await call()
        this.#failures = 0
        return result
      } catch (err) {
        if (isOutage(err)) this.#noteFailure(err)
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

  /** The message contains the last failure but no times, so that it does not change with every call. */
  #assertCallable(): void {
    const { state } = this
    if (state === 'closed' || (state === 'half-open' && !this.#isTrying)) return
    throw new HookFailed('unavailable', `not called, because the last ${this.#limits.failures} calls failed: ${this.#last}`)
  }

  #noteFailure(err: unknown): void {
    this.#failures++
    this.#last = (err as Error).message
    const over = this.#failures - this.#limits.failures
    if (over < 0) return
    this.#openUntil = this.#clock.elapsed() + Math.min(this.#limits.longest, this.#limits.shortest * 2 ** Math.min(over, 30))
  }

  async #enter(patience: number, signal: AbortSignal | undefined): Promise<void> {
    if (this.#inFlight < this.#limits.inFlight) {
      this.#inFlight++
      return
    }
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
        patience,
        leave(() => reject(new HookFailed('unavailable', full))),
      )
      signal?.addEventListener('abort', aborted, { once: true })
      this.#waiting.push(enter)
    })
  }
}
