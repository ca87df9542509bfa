/** Recent changes of a store: watches resume from them, and lists at an older revision are computed from them. */
import type { Clock } from '@capstan/kube'
import type { TimedChange } from './snapshot.ts'
import { isPacked, jsonOf } from './packed.ts'
import type { Change, Since } from './store.ts'

export interface HistoryLimits {
  /** Maximum number of changes. */
  readonly changes: number
  /** Maximum size, in characters, of the previous versions of objects that the changes keep in memory; approximate. */
  readonly size: number
  /** Maximum age of a change in milliseconds; needs a clock. Upstream: --etcd-compaction-interval. */
  readonly age: number
}

const defaultHistory: HistoryLimits = { changes: 20_000, size: 64 * 1024 * 1024, age: Infinity }

interface WindowEntry extends TimedChange {
  readonly size: number
  /** Monotonic time of the change: see `#now`. */
  readonly changedAt: number
}

/** Keeps the latest changes of a store. Removes the oldest changes beyond limits of number, size and age. */
export class ChangeWindow {
  readonly #limits: HistoryLimits
  readonly #clock: Clock | undefined
  readonly #changes = new Queue<WindowEntry>()
  readonly #byResource = new Map<string, Queue<Change>>()
  #size = 0
  /** All changes after this revision are in the window. */
  #floor: number
  #elapsed = 0
  #lastTime: number

  constructor(limits: Partial<HistoryLimits> | undefined, floor: number, clock: Clock | undefined) {
    this.#limits = { ...defaultHistory, ...limits }
    this.#clock = clock
    this.#lastTime = clock?.now() ?? 0
    this.#floor = floor
  }

  /** Adds the newest change; `time` is the clock's time of the change. */
  push(change: Change, time: number): void {
    const { previous } = change
    const size = (previous && isPacked(previous) ? jsonOf(previous).length : sizeOf(previous)) + 200
    const now = this.#now()
    this.#changes.push({ change, time, size, changedAt: now - Math.max(0, this.#lastTime - time) })
    this.#size += size
    let queue = this.#byResource.get(change.key.resource)
    if (!queue) this.#byResource.set(change.key.resource, (queue = new Queue()))
    queue.push(change)

    this.#removeOld(now)
  }

  /** Returns all changes in the window, oldest first. */
  all(): TimedChange[] {
    return this.#changes.after(-1, () => 0).map(({ change, time }) => ({ change, time }))
  }

  /** Removes changes beyond the limits, always the oldest revision first. */
  #removeOld(now: number): void {
    const { changes, size, age } = this.#limits
    for (let oldest = this.#changes.first; oldest; oldest = this.#changes.first) {
      if (this.#changes.length <= changes && this.#size <= size && now - oldest.changedAt <= age) break
      this.#changes.shift()
      this.#byResource.get(oldest.change.key.resource)?.shift()
      this.#size -= oldest.size
      this.#floor = oldest.change.revision
    }
  }

  /** Monotonic time in milliseconds: does not decrease when the clock is set back; a clock that is set forward ages all changes. */
  #now(): number {
    if (!this.#clock) return 0
    const now = this.#clock.now()
    this.#elapsed += Math.max(0, now - this.#lastTime)
    this.#lastTime = now
    return this.#elapsed
  }

  /**
   * Returns changes of a resource after `revision`, oldest first, at most `limit`; `expired` when a change after `revision`, of any
   * resource, has left the window.
   */
  since(revision: number, resource: string, limit?: number): Since {
    this.#removeOld(this.#now())
    if (revision < this.#floor) return { kind: 'expired', oldest: this.#floor + 1 }
    return { kind: 'changes', changes: this.#byResource.get(resource)?.after(revision, revisionOf, limit) ?? [] }
  }
}

/** A queue whose `shift` does not move the remaining items each time. */
class Queue<T> {
  #items: T[] = []
  #head = 0

  get length(): number {
    return this.#items.length - this.#head
  }

  get first(): T | undefined {
    return this.#items[this.#head]
  }

  push(item: T): void {
    this.#items.push(item)
  }

  shift(): T | undefined {
    const item = this.#items[this.#head]
    if (item === undefined) return undefined
    this.#head++
    if (this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return item
  }

  /** Returns the first `limit` items whose key is higher than `lastKey`. `keyOf` returns the key by which the items are sorted. */
  after(lastKey: number, keyOf: (item: T) => number, limit = Infinity): T[] {
    let low = this.#head
    let high = this.#items.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (keyOf(this.#items[middle]!) <= lastKey) low = middle + 1
      else high = middle
    }
    return this.#items.slice(low, low + limit)
  }
}

const revisionOf = ({ revision }: Change): number => revision

/** Returns the approximate length of a value's JSON. It is cheap to compute, and sufficient to limit memory. */
function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length + 2
  if (typeof value !== 'object' || value === null) return 4
  let size = 2
  if (Array.isArray(value)) for (const item of value) size += sizeOf(item) + 1
  else for (const key of Object.keys(value)) size += key.length + 4 + sizeOf((value as Record<string, unknown>)[key])
  return size
}
