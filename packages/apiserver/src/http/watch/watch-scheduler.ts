/**
 * Schedules when watchers on the network are notified. Notifying two hundred watchers takes longer than a write; if each change were sent
 * by itself, watchers would use nearly all CPU time and writes would starve. So watchers are notified in batches. After a batch that took
 * long, other requests run first, and their changes are sent together in the next batch. With few watchers or no other requests, nothing
 * waits.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Clock, Timer } from '@capstan/kube'

/** Pause after a batch, as a multiple of its duration. */
const Share = 3
/** Maximum pause in milliseconds. */
export const LongestRest = 50
/** Milliseconds without a request after which the pause ends early. */
const Quiet = 2
/** Watchers notified in one turn of the event loop. A request waits for that many, not for a whole batch. */
export const Together = 32

export class WatchScheduler {
  readonly #clock: Clock
  readonly #waiting: (() => void)[] = []
  #inRound = false
  /** Watchers notified in this turn of the event loop. */
  #told = 0
  #rest: { end(): void } | undefined
  #asking = 0
  #quiet: Timer | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Called when a request other than a watch arrives; `answered` must follow. */
  asked(): void {
    this.#asking++
    this.#quiet?.cancel()
  }

  answered(): void {
    if (--this.#asking === 0) this.#untilQuiet()
  }

  /** Returns what a watcher must wait for before it is notified; `undefined` when it may proceed. */
  turn(): Promise<void> | undefined {
    if (this.#rest || this.#told === Together) return new Promise((resolve) => this.#waiting.push(resolve))
    this.#told++
    if (!this.#inRound) void this.#round()
    return undefined
  }

  /** Runs until no watcher waits. Lets the event loop turn after each batch, so that its output is written. */
  async #round(): Promise<void> {
    this.#inRound = true
    const began = this.#clock.now()
    do {
      await nextTurn()
      this.#told = 0
      for (const tell of this.#waiting.splice(0, Together)) {
        this.#told++
        tell()
      }
    } while (this.#told > 0)
    this.#inRound = false
    const took = this.#clock.now() - began
    // The clock counts whole milliseconds: a duration of 1 may be close to none.
    if (took > 1) this.#restFor(Math.min(Share * took, LongestRest))
  }

  #restFor(time: number): void {
    const end = () => {
      timer.cancel()
      this.#quiet?.cancel()
      this.#rest = undefined
      if (this.#waiting.length > 0) void this.#round()
    }
    const timer = this.#clock.schedule(time, end)
    this.#rest = { end }
    if (this.#asking === 0) this.#untilQuiet()
  }

  #untilQuiet(): void {
    if (this.#rest) this.#quiet = this.#clock.schedule(Quiet, this.#rest.end)
  }
}
