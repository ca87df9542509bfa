/**
 * Detects handlers whose message differs at every call, such as by the time of day: conditions that show it change endlessly. Upstream only
 * asks authors to avoid this.
 */

/** Consecutive changes after which a message counts as unstable: a position in a queue may change a few times. */
export const UnstableAfter = 5
/** Most histories that are kept; the oldest is dropped first. */
const MaxHistories = 10_000

export class UnstableMessages {
  /** By handler and object: the last message, and the number of consecutive changes. */
  readonly #lastMessages = new Map<string, { readonly message: string; readonly changes: number }>()
  readonly #counts = new Map<string, number>()

  /** Number of detections by registered handler name. */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts
  }

  /** Records a handler's message for an object. Returns true when a changing message is detected for the first time. */
  record(handler: string, uid: string, message: string): boolean {
    const historyKey = `${handler} ${uid}`
    const last = this.#lastMessages.get(historyKey)
    const changes = last === undefined || last.message === message ? 1 : last.changes + 1
    this.#lastMessages.delete(historyKey)
    this.#lastMessages.set(historyKey, { message, changes })
    if (this.#lastMessages.size > MaxHistories) this.#lastMessages.delete(this.#lastMessages.keys().next().value!)
    if (changes < UnstableAfter) return false
    const count = (this.#counts.get(handler) ?? 0) + 1
    this.#counts.set(handler, count)
    return count === 1
  }

  /** A handler that is registered again starts without history. */
  forget(isGone: (handler: string) => boolean): void {
    for (const handler of this.#counts.keys()) if (isGone(handler)) this.#counts.delete(handler)
    for (const historyKey of this.#lastMessages.keys()) {
      if (isGone(historyKey.slice(0, historyKey.indexOf(' ')))) this.#lastMessages.delete(historyKey)
    }
  }
}
