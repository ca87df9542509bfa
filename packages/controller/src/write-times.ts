/** Measures how long the writes of a process take, and computes from these durations how long a write may be postponed. */
import type { Clock } from '@capstan/kube'

/**
 * A write is postponed for a multiple of the average duration of writes. `longest` and `shortest` are in milliseconds. A write is not
 * postponed if the time would be shorter than `shortest`, as with an API server in the same process.
 */
const Pause = { factor: 10, longest: 2000, shortest: 20 }
/** Weight of a new duration in the average. */
const Weight = 1 / 8

export class WriteTimes {
  readonly #clock: Pick<Clock, 'elapsed'>
  #average: number | undefined

  constructor(clock: Pick<Clock, 'elapsed'>) {
    this.#clock = clock
  }

  /** Runs a write and includes its duration in the average. */
  async measure<Result>(write: () => Promise<Result>): Promise<Result> {
    const started = this.#clock.elapsed()
    try {
      return await write()
    } finally {
      const duration = this.#clock.elapsed() - started
      this.#average = this.#average === undefined ? duration : this.#average + (duration - this.#average) * Weight
    }
  }

  /** Milliseconds for which a write may be postponed. */
  get pause(): number {
    const pause = Math.min(Pause.factor * (this.#average ?? 0), Pause.longest)
    return pause < Pause.shortest ? 0 : pause
  }
}
