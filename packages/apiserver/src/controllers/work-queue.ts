/**
 * Work queue of the server's controllers: keys are deduplicated, at most 16 run concurrently, and failed keys are retried with backoff.
 */
import { type Clock, type Logger, seconds, type Timer } from '@capstan/kube'

export interface WorkQueueOptions {
  readonly name: string
  readonly clock: Clock
  readonly log: Logger
  run(key: string): Promise<void>
}

const Concurrency = 16
const FirstRetryDelay = seconds(1)
const MaxRetryDelay = seconds(60)

export class WorkQueue {
  readonly #options: WorkQueueOptions
  readonly #waiting = new Set<string>()
  readonly #running = new Set<string>()
  /** Keys that were added while they ran: they run again afterwards. */
  readonly #rerun = new Set<string>()
  readonly #timers = new Map<string, Timer>()
  readonly #failures = new Map<string, { count: number; timer: Timer }>()
  #closed = false

  constructor(options: WorkQueueOptions) {
    this.#options = options
  }

  add(key: string): void {
    if (this.#closed) return
    if (this.#running.has(key)) this.#rerun.add(key)
    else {
      this.#waiting.add(key)
      this.#start()
    }
  }

  /** Adds a key after a delay in milliseconds. Has no effect during an earlier delay of the same key. */
  addAfter(key: string, delay: number): void {
    if (this.#closed || this.#timers.has(key)) return
    const timer = this.#options.clock.schedule(delay, () => {
      this.#timers.delete(key)
      this.add(key)
    })
    this.#timers.set(key, timer)
  }

  close(): void {
    this.#closed = true
    this.#waiting.clear()
    for (const timer of this.#timers.values()) timer.cancel()
    for (const { timer } of this.#failures.values()) timer.cancel()
  }

  #start(): void {
    for (const key of this.#waiting) {
      if (this.#running.size >= Concurrency) return
      this.#waiting.delete(key)
      this.#running.add(key)
      void this.#run(key)
    }
  }

  async #run(key: string): Promise<void> {
    try {
      await this.#options.run(key)
      this.#failures.get(key)?.timer.cancel()
      this.#failures.delete(key)
    } catch (err) {
      this.#retry(key, err)
    }
    this.#running.delete(key)
    if (this.#closed) return
    if (this.#rerun.delete(key)) this.#waiting.add(key)
    this.#start()
  }

  #retry(key: string, err: unknown): void {
    if (this.#closed) return
    const { clock, log, name } = this.#options
    const before = this.#failures.get(key)
    before?.timer.cancel()
    const count = (before?.count ?? 0) + 1
    const delay = Math.min(MaxRetryDelay, FirstRetryDelay * 2 ** (count - 1))
    log.error('Controller of the API server failed', { controller: name, key, retryAfterSeconds: delay / 1000, err })
    this.#failures.set(key, { count, timer: clock.schedule(delay, () => this.add(key)) })
  }
}
