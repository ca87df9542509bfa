/**
 * Detects handlers whose message differs at every call, for example because it contains the time: a condition with such a
 * message changes endlessly. Upstream only asks authors to avoid this.
 */

/**
 * A message counts as unstable after this number of consecutive calls if each message differed from the one before (five messages are
 * four changes). Fewer changes are normal, for example of a position in a queue.
 */
export const UnstableAfter = 5
/** Maximum number of histories; the history that was not updated for the longest time is removed first. */
const MaxHistories = 10_000

export class UnstableMessages {
  /** By handler and object: the last message, and the length of the series of calls in which each message differed from the one before. */
  readonly #histories = new Map<string, { readonly message: string; readonly calls: number }>()
  readonly #counts = new Map<string, number>()

  /** Number of calls at which an unstable message was detected, by registered handler name. */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts
  }

  /** Records a handler's message for an object. Returns true when an unstable message of the handler is detected for the first time. */
  record(handler: string, uid: string, message: string): boolean {
    const historyKey = `${handler} ${uid}`
    const history = this.#histories.get(historyKey)
    const calls = history === undefined || history.message === message ? 1 : history.calls + 1
    this.#histories.delete(historyKey)
    this.#histories.set(historyKey, { message, calls })
    if (this.#histories.size > MaxHistories) this.#histories.delete(this.#histories.keys().next().value!)
    if (calls < UnstableAfter) return false
    const count = (this.#counts.get(handler) ?? 0) + 1
    this.#counts.set(handler, count)
    return count === 1
  }

  /** Removes counts and histories of the handlers for which `isGone` returns true. */
  forget(isGone: (handler: string) => boolean): void {
    for (const handler of this.#counts.keys()) if (isGone(handler)) this.#counts.delete(handler)
    for (const historyKey of this.#histories.keys()) {
      if (isGone(historyKey.slice(0, historyKey.indexOf(' ')))) this.#histories.delete(historyKey)
    }
  }
}
