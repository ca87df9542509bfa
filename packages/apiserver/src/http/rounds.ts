/**
 * When watchers on the network are told. Telling two hundred of them takes longer than a write: told of each one by itself they would get
 * nearly all of the time, and whoever writes next to none. So they are told in rounds. After one that took long, those who ask for something
 * else have their turn, and what they change is told together. Where few watch, or nobody asks, there is nothing to wait for.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Clock, Timer } from '@capstan/kube'

/** How many times as long as a round others have their turn. */
const Share = 3
/** Milliseconds that watchers wait at most once their turn is over. */
export const LongestRest = 50
/** Milliseconds without a request after which nobody else is waited for. */
const Quiet = 2
/** Watchers who are told before sockets and timers have a turn: a request waits for so many, and not for a whole round. */
export const Together = 32

export class Rounds {
  readonly #clock: Clock
  readonly #waiting: (() => void)[] = []
  #inRound = false
  /** In this turn of the event loop. */
  #told = 0
  #rest: { end(): void } | undefined
  #asking = 0
  #quiet: Timer | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Somebody asks for something else than a watch; `answered` has to follow. */
  asked(): void {
    this.#asking++
    this.#quiet?.cancel()
  }

  answered(): void {
    if (--this.#asking === 0) this.#untilQuiet()
  }

  /** What to wait for before telling a watcher; `undefined` when it is the watcher's turn. */
  turn(): Promise<void> | undefined {
    if (this.#rest || this.#told === Together) return new Promise((resolve) => this.#waiting.push(resolve))
    this.#told++
    if (!this.#inRound) void this.#round()
    return undefined
  }

  /** Lasts until nobody waits. Who is told is written to before the event loop turns. */
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
    // Whole milliseconds: one of them may have passed in no time.
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
