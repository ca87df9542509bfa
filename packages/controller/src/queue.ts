/**
 * The work queue of one controller. A key runs while the controller reconciles it. A key that is added several times before its run runs
 * once, and each key has at most one run at a time. A key that is added during its run runs again afterwards; changes that a failed run made
 * itself do not add the key. After a run, a key is on hold while the cache does not contain the writes of the run: it does not run before it
 * is released, and then runs again if it was added in the meantime.
 */
import type { Clock, Timer } from '@capstan/kube'
import type { QueueMetrics } from './metrics.ts'

export interface QueueOptions {
  /**
   * Budget of each key for reconciles. A reconcile that fails or changes nothing costs 1; a reconcile that changes something costs
   * `changeCost`. The budget is refilled by 1 per `interval`, up to `burst`. A key whose budget is below 0 waits. Default 100.
   */
  readonly burst?: number
  /** Milliseconds after which the budget of a key is refilled by one. Default 1000: upstream reconciles an object at most once a second. */
  readonly interval?: number
  /**
   * Cost of a reconcile that changes something. Default 0.25: of two controllers that undo each other's changes without end, each makes four
   * reconciles of the object a second, after the first 400.
   */
  readonly changeCost?: number
  /** Called when a key becomes ready to run. */
  readonly onReady: () => void
  readonly metrics?: QueueMetrics
}

/**
 * Returns the delay in milliseconds after a failure: 5 ms, doubled for each of the earlier failures in sequence, at most 1000 s. As in
 * controller-runtime.
 */
const backoff = (earlierFailures: number): number => Math.min(5 * 2 ** earlierFailures, 1_000_000)

/** With fewer entries, the queue does not search for entries that it can drop. */
const MinForgetAt = 1000

/** Maximum number of changes that the entry of a running key keeps; a further change counts as an addition. */
const MaxChanges = 100

/**
 * Pause of a key after a run: `factor` times the time from the start of the run until its end or, if the run wrote, until the cache has its
 * writes; at most `longest` milliseconds. Only additions with `mayWait` wait for the end of the pause. There is no pause if it would be
 * shorter than `shortest` milliseconds, as with an API server in the same process.
 */
const Pause = { factor: 4, longest: 1000, shortest: 20 }

type State = 'idle' | 'delayed' | 'ready' | 'running'

interface AddOptions<Change> {
  /** Whether all ready keys of normal priority run first. For keys from lists of all objects and from periodic reconciles. Default: false. */
  readonly lowPriority?: boolean
  /** The change that adds the key. After a failed run, a change that the run made itself does not add the key. */
  readonly change?: Change
  /** Whether the key waits for the end of the pause after its last run. Default: false. */
  readonly mayWait?: boolean
}

interface Entry<Change> {
  state: State
  /** Whether the key was added again while running or on hold; `later` when only by additions with `mayWait`. */
  addedAgain: 'no' | 'later' | 'now'
  /** Changes that added the key while it was running. Whether they count as additions is known at the end of the run. */
  changes: { readonly change: Change; readonly mayWait: boolean }[]
  /** Set after a failed run: returns whether the run made the change itself. Such changes do not bypass the backoff. */
  ignores: ((change: Change) => boolean) | undefined
  /** Whether the key is on hold. */
  held: boolean
  /** Number of failures since the last success. */
  failures: number
  /** Budget at the time `tokensAt`. Below 0, the key waits. */
  tokens: number
  tokensAt: number
  timer: Timer | undefined
  /** End of the delay. All times of a key are by `Clock.elapsed`, so that a change of the system time has no effect on delays. */
  due: number
  /** Time at which the key became ready; from the start of its run, the time of this start. */
  since: number
}

export class Queue<Change = unknown> {
  readonly #clock: Clock
  readonly #burst: number
  /** Number of entries at which the queue next searches for entries that it can drop. */
  #forgetAt = MinForgetAt
  readonly #interval: number
  readonly #changeCost: number
  readonly #onReady: () => void
  readonly #metrics: QueueMetrics | undefined
  readonly #entries = new Map<string, Entry<Change>>()
  /**
   * By key, the end of the pause after its last run, in the order in which the pauses began. Not stored in the entries, because entries of
   * idle keys are dropped.
   */
  readonly #pauses = new Map<string, number>()
  /** Ready keys of normal priority. */
  readonly #ready: string[] = []
  /** Ready keys of low priority. A set, because a key leaves it when it is added again with normal priority. */
  readonly #lowPriority = new Set<string>()
  #running = 0
  #closed = false

  constructor(clock: Clock, { burst = 100, interval = 1000, changeCost = 0.25, onReady, metrics }: QueueOptions) {
    this.#clock = clock
    this.#burst = burst
    this.#interval = interval
    this.#changeCost = changeCost
    this.#onReady = onReady
    this.#metrics = metrics
  }

  /** Number of keys that are ready to run. */
  get depth(): number {
    return this.#ready.length + this.#lowPriority.size
  }

  /** Number of keys that are ready to run, by priority. */
  get depths(): { readonly normal: number; readonly low: number } {
    return { normal: this.#ready.length, low: this.#lowPriority.size }
  }

  get running(): number {
    return this.#running
  }

  /** Number of keys that have an entry. */
  get size(): number {
    return this.#entries.size
  }

  /** Number of keys with a delay. */
  get delayed(): number {
    let count = 0
    for (const entry of this.#entries.values()) if (entry.state === 'delayed') count++
    return count
  }

  /**
   * Enqueues a key as soon as its rate limit allows; a key that runs or is on hold, only afterwards. Keys of low priority run after all
   * other ready keys. A key has normal priority after a delay, after an addition during its run or hold, and when it is added again with
   * normal priority. With `mayWait`, the key waits until the pause after its last run (see `Pause`) has ended, so that one run handles several
   * changes.
   */
  add(key: string, { lowPriority = false, change, mayWait = false }: AddOptions<Change> = {}): void {
    const entry = this.#entry(key)
    if (change !== undefined && entry.state === 'running' && entry.changes.length < MaxChanges) {
      entry.changes.push({ change, mayWait })
      return
    }
    if (change !== undefined && entry.ignores?.(change)) return
    if (entry.state === 'running' || entry.held) {
      if (!mayWait) entry.addedAgain = 'now'
      else if (entry.addedAgain === 'no') entry.addedAgain = 'later'
      return
    }
    if (entry.state === 'ready') {
      // Upstream: priorityqueue.go, lockedAddWithOpts.
      if (!lowPriority && this.#lowPriority.delete(key)) this.#ready.push(key)
      return
    }
    const wait = Math.max(this.#throttle(entry), mayWait ? this.#pauseOf(key) : 0)
    if (wait > 0) this.#delay(key, entry, wait)
    else this.#enqueue(key, entry, lowPriority)
  }

  /**
   * Enqueues a key after `ms` milliseconds, or later if its rate limit requires; an earlier time that is already set remains. A ready key
   * stays ready. A running key instead runs again after its run.
   */
  addAfter(key: string, ms: number): void {
    if (ms <= 0) return this.add(key)
    const entry = this.#entry(key)
    if (entry.state === 'ready') return
    if (entry.state === 'running') {
      entry.addedAgain = 'now'
      return
    }
    this.#delay(key, entry, Math.max(ms, this.#throttle(entry)))
  }

  /** Takes the next key and marks it as running. Returns `undefined` if no key is ready. */
  take(): string | undefined {
    const [firstOfLowPriority] = this.#lowPriority
    const key = this.#ready.shift() ?? firstOfLowPriority
    if (key === undefined) return undefined
    this.#lowPriority.delete(key)
    const entry = this.#entry(key)
    const now = this.#clock.elapsed()
    this.#metrics?.taken(now - entry.since)
    entry.state = 'running'
    entry.ignores = undefined
    entry.since = now
    this.#running++
    return key
  }

  /** Ends a run. Changes during this run, and until the next run, do not add the key if `ignores` returns true for them. */
  done(
    key: string,
    result: {
      /** Whether the run changed objects. */
      changed: boolean
      failed: boolean
      /** Milliseconds until the next run. Not used if the run failed. */
      after?: number
      /** Whether the key is on hold until `release`. */
      held: boolean
      ignores?: ((change: Change) => boolean) | undefined
    },
  ): void {
    const entry = this.#entry(key)
    this.#running--
    this.#metrics?.done(this.#clock.elapsed() - entry.since)
    entry.state = 'idle'
    entry.held = result.held
    entry.failures = result.failed ? entry.failures + 1 : 0
    this.#spend(entry, result.failed || !result.changed ? 1 : this.#changeCost)
    if (result.failed) this.addAfter(key, backoff(entry.failures - 1))
    else if (result.after !== undefined) this.#delay(key, entry, Math.max(result.after, this.#throttle(entry)))
    for (const { change, mayWait } of entry.changes) {
      if (result.ignores?.(change) || entry.addedAgain === 'now') continue
      entry.addedAgain = mayWait ? 'later' : 'now'
    }
    entry.changes = []
    entry.ignores = result.ignores
    if (!entry.held) this.#ended(key, entry)
    this.#forgetIdle(key, entry)
  }

  /** Releases a key from hold, and enqueues it if it was added again or its delay has ended in the meantime. */
  release(key: string): void {
    const entry = this.#entries.get(key)
    if (!entry?.held) return
    entry.held = false
    // Whether the delay ended while the key was on hold.
    const isDue = entry.state === 'delayed' && !entry.timer
    this.#ended(key, entry)
    if (isDue) this.#promote(key, entry)
    this.#forgetIdle(key, entry)
  }

  /** Begins the pause of a key after its run and hold, and enqueues the key again if it was added during these. */
  #ended(key: string, entry: Entry<Change>): void {
    const now = this.#clock.elapsed()
    this.#pauses.delete(key)
    for (const [pausedKey, until] of this.#pauses) {
      if (until > now) break
      this.#pauses.delete(pausedKey)
    }
    const pause = Math.min(Pause.factor * (now - entry.since), Pause.longest)
    if (pause >= Pause.shortest) this.#pauses.set(key, now + pause)
    const { addedAgain } = entry
    entry.addedAgain = 'no'
    if (addedAgain !== 'no') this.add(key, { mayWait: addedAgain === 'later' })
  }

  /** Returns the remaining milliseconds of the pause of a key. */
  #pauseOf(key: string): number {
    return Math.max(0, (this.#pauses.get(key) ?? 0) - this.#clock.elapsed())
  }

  close(): void {
    this.#closed = true
    for (const entry of this.#entries.values()) entry.timer?.cancel()
    this.#entries.clear()
    this.#pauses.clear()
    this.#ready.length = 0
    this.#lowPriority.clear()
  }

  #entry(key: string): Entry<Change> {
    let entry = this.#entries.get(key)
    if (!entry) {
      this.#forgetAllIdle()
      entry = {
        state: 'idle',
        addedAgain: 'no',
        changes: [],
        ignores: undefined,
        held: false,
        failures: 0,
        tokens: this.#burst,
        tokensAt: this.#clock.elapsed(),
        timer: undefined,
        due: 0,
        since: 0,
      }
      this.#entries.set(key, entry)
    }
    return entry
  }

  #enqueue(key: string, entry: Entry<Change>, lowPriority: boolean): void {
    if (this.#closed) return
    entry.timer?.cancel()
    entry.timer = undefined
    entry.state = 'ready'
    entry.since = this.#clock.elapsed()
    this.#metrics?.added()
    if (lowPriority) this.#lowPriority.add(key)
    else this.#ready.push(key)
    this.#onReady()
  }

  #delay(key: string, entry: Entry<Change>, ms: number): void {
    if (this.#closed) return
    const due = this.#clock.elapsed() + ms
    if (entry.state === 'ready' || (entry.state === 'delayed' && entry.due <= due)) return
    entry.timer?.cancel()
    this.#metrics?.retried()
    entry.state = 'delayed'
    entry.due = due
    entry.timer = this.#clock.schedule(ms, () => {
      entry.timer = undefined
      if (!entry.held) this.#promote(key, entry)
    })
  }

  #promote(key: string, entry: Entry<Change>): void {
    if (entry.state === 'delayed') this.#enqueue(key, entry, false)
  }

  #refill(entry: Entry<Change>): void {
    const now = this.#clock.elapsed()
    entry.tokens = Math.min(this.#burst, entry.tokens + (now - entry.tokensAt) / this.#interval)
    entry.tokensAt = now
  }

  #spend(entry: Entry<Change>, cost: number): void {
    this.#refill(entry)
    entry.tokens -= cost
  }

  /** Returns the delay in milliseconds that the rate limit of the key requires. */
  #throttle(entry: Entry<Change>): number {
    this.#refill(entry)
    return entry.tokens >= 0 ? 0 : Math.ceil(-entry.tokens * this.#interval)
  }

  /** Drops the entry of an idle key whose budget is full: the next addition creates an equal entry. */
  #forgetIdle(key: string, entry: Entry<Change>): void {
    if (entry.state !== 'idle' || entry.held || entry.addedAgain !== 'no') return
    this.#refill(entry)
    if (entry.tokens >= this.#burst) this.#entries.delete(key)
  }

  /** Drops the entries of idle keys whose budgets have become full since their runs. Returns at once while there are few entries. */
  #forgetAllIdle(): void {
    if (this.#entries.size < this.#forgetAt) return
    for (const [key, entry] of this.#entries) this.#forgetIdle(key, entry)
    this.#forgetAt = Math.max(MinForgetAt, 2 * this.#entries.size)
  }
}
