/** The recent past of a store: what watches resume from and what lists of an older revision are computed from. */
import type { Change, Since } from './store.ts'

export interface HistoryLimits {
  /** Changes kept at most. */
  readonly changes: number
  /** Approximate size of the objects that they hold on to, in characters. */
  readonly size: number
}

const defaultHistory: HistoryLimits = { changes: 20_000, size: 64 * 1024 * 1024 }

/** Old changes leave when there are too many, or when they hold on to too much. */
export class ChangeWindow {
  readonly #limits: HistoryLimits
  readonly #all = new Queue<{ change: Change; size: number }>()
  readonly #byResource = new Map<string, Queue<Change>>()
  #size = 0
  /** Every change after this revision is known. */
  #floor: number

  constructor(limits: Partial<HistoryLimits> | undefined, floor: number) {
    this.#limits = { ...defaultHistory, ...limits }
    this.#floor = floor
  }

  /** Adds the newest change, and gives the revisions of those that had to go for it. */
  push(change: Change): number[] {
    const size = sizeOf(change.previous) + 200
    this.#all.push({ change, size })
    this.#size += size
    let queue = this.#byResource.get(change.key.resource)
    if (!queue) this.#byResource.set(change.key.resource, (queue = new Queue()))
    queue.push(change)

    const gone: number[] = []
    while (this.#all.length > this.#limits.changes || this.#size > this.#limits.size) {
      const oldest = this.#all.shift()
      if (!oldest) break
      this.#byResource.get(oldest.change.key.resource)?.shift()
      this.#size -= oldest.size
      this.#floor = oldest.change.revision
      gone.push(this.#floor)
    }
    return gone
  }

  since(revision: number, resource: string): Since {
    if (revision < this.#floor) return { kind: 'expired', oldest: this.#floor + 1 }
    return { kind: 'changes', changes: this.#byResource.get(resource)?.after(revision, (change) => change.revision) ?? [] }
  }
}

/** First in, first out, without moving what stays at every step. */
class Queue<T> {
  #items: T[] = []
  #head = 0

  get length(): number {
    return this.#items.length - this.#head
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

  /** Items whose place, as `placeOf` tells it, is beyond `place`; places ascend. */
  after(place: number, placeOf: (item: T) => number): T[] {
    let low = this.#head
    let high = this.#items.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (placeOf(this.#items[middle]!) <= place) low = middle + 1
      else high = middle
    }
    return this.#items.slice(low)
  }
}

/** Roughly how many characters of JSON a value is: good enough to bound memory, and cheap. */
function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length + 2
  if (typeof value !== 'object' || value === null) return 4
  let size = 2
  if (Array.isArray(value)) for (const item of value) size += sizeOf(item) + 1
  else for (const key of Object.keys(value)) size += key.length + 4 + sizeOf((value as Record<string, unknown>)[key])
  return size
}
