/**
 * Schedules when watchers on the network are notified: a notified watcher reads and sends its unread changes. For two hundred watchers this
 * takes longer than a write; if each change were sent separately, watchers would use nearly all CPU time and writes would starve. So one run
 * notifies all waiting watchers, in batches. After a long run, watchers pause so that other requests run first: three times as long as the run
 * took, at most 50 ms. The pause ends early after 2 ms without a request in progress. The next run sends the changes of these requests together.
 * After a short run, watchers do not pause.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Clock, Timer } from '@capstan/kube'

/** Pause after a run, as a multiple of its duration. */
const PauseFactor = 3
/** Maximum pause in milliseconds. */
export const MaxPause = 50
/** Milliseconds without a request in progress after which the pause ends early. */
const QuietTime = 2
/** Maximum number of watchers notified in one turn of the event loop. A request waits for at most these watchers, not for all. */
export const BatchSize = 32

export class WatchScheduler {
  readonly #clock: Clock
  readonly #waiting: (() => void)[] = []
  #isNotifying = false
  /** Number of watchers notified in this turn of the event loop. */
  #notified = 0
  #pause: { end(): void } | undefined
  #requests = 0
  #quietTimer: Timer | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Called when a request arrives. `requestEnded` must be called when its response is ready; for a watch, when the watch has started. */
  requestStarted(): void {
    this.#requests++
    this.#quietTimer?.cancel()
  }

  requestEnded(): void {
    if (--this.#requests === 0) this.#endPauseWhenQuiet()
  }

  /** Called by a watcher before it reads changes. Returns a promise that the watcher must await; `undefined` when it can read at once. */
  turn(): Promise<void> | undefined {
    if (this.#pause || this.#notified === BatchSize) return new Promise((resolve) => this.#waiting.push(resolve))
    this.#notified++
    if (!this.#isNotifying) void this.#notifyAll()
    return undefined
  }

  /** One run: notifies waiting watchers in batches until none is left. Yields to the event loop after each batch, to send its output. */
  async #notifyAll(): Promise<void> {
    this.#isNotifying = true
    const start = this.#clock.now()
    do {
      await nextTurn()
      this.#notified = 0
      for (const notify of this.#waiting.splice(0, BatchSize)) {
        this.#notified++
        notify()
      }
    } while (this.#notified > 0)
    this.#isNotifying = false
    const duration = this.#clock.now() - start
    // The clock counts whole milliseconds: a duration of 1 may be nearly zero.
    if (duration > 1) this.#pauseFor(Math.min(PauseFactor * duration, MaxPause))
  }

  #pauseFor(time: number): void {
    const end = () => {
      timer.cancel()
      this.#quietTimer?.cancel()
      this.#pause = undefined
      if (this.#waiting.length > 0) void this.#notifyAll()
    }
    const timer = this.#clock.schedule(time, end)
    this.#pause = { end }
    if (this.#requests === 0) this.#endPauseWhenQuiet()
  }

  #endPauseWhenQuiet(): void {
    if (this.#pause) this.#quietTimer = this.#clock.schedule(QuietTime, this.#pause.end)
  }
}
