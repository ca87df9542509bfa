/** Limits the concurrent calls of an extension server and the memory of request bodies. */

export interface CallLimits {
  /** Maximum number of concurrent calls. */
  readonly inFlight: number
  /** Maximum total length of the bodies of all requests in progress, in bytes. */
  readonly bytes: number
}

export class CallLimiter {
  readonly #limits: CallLimits
  readonly #waiting = new Set<() => void>()
  #running = 0
  #bytes = 0

  constructor(limits: CallLimits) {
    this.#limits = limits
  }

  /** Waits until a call may start. Returns a function that ends the call; `undefined` if the signal aborts first. */
  async enter(signal: AbortSignal): Promise<(() => void) | undefined> {
    if (signal.aborted) return undefined
    if (this.#running < this.#limits.inFlight) this.#running++
    else if (!(await this.#next(signal))) return undefined
    return () => {
      const [first] = this.#waiting
      // The next waiting call starts, so `#running` does not change.
      if (first) first()
      else this.#running--
    }
  }

  /**
   * Counts the body of one request. `take` adds bytes that have arrived, and returns false if the bodies of all requests then exceed the
   * limit. `done` subtracts all bytes of the request.
   */
  countBody(): { take(bytes: number): boolean; done(): void } {
    let requestBytes = 0
    return {
      take: (bytes) => {
        requestBytes += bytes
        this.#bytes += bytes
        return this.#bytes <= this.#limits.bytes
      },
      done: () => {
        this.#bytes -= requestBytes
        requestBytes = 0
      },
    }
  }

  /** Waits until another call ends and no call has waited longer. Returns false if the signal aborts first. */
  #next(signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const settle = (entered: boolean) => {
        this.#waiting.delete(enter)
        signal.removeEventListener('abort', giveUp)
        resolve(entered)
      }
      const enter = () => settle(true)
      const giveUp = () => settle(false)
      signal.addEventListener('abort', giveUp, { once: true })
      this.#waiting.add(enter)
    })
  }
}
