/**
 * Notices handlers that say something else at every call, such as the time of day: conditions that show it never come to rest, and
 * whoever waits cannot tell news from noise. Promised by nobody; upstream only asks authors not to.
 */

/** A queue that moves may say something new a few times in a row. */
export const Suspicious = 5
/** Conversations that are remembered; those of before are forgotten first. */
const Remembered = 10_000

export class UnstableMessages {
  /** By handler and object: what was said last, and how many times in a row it was something new. */
  readonly #said = new Map<string, { readonly message: string; readonly changes: number }>()
  readonly #counts = new Map<string, number>()

  /** How often each handler has been noticed, by registered name. */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts
  }

  /** Takes in what a handler has said of an object. True when that is the first time that it is noticed. */
  hears(handler: string, uid: string, message: string): boolean {
    const conversation = `${handler} ${uid}`
    const last = this.#said.get(conversation)
    const changes = last === undefined || last.message === message ? 1 : last.changes + 1
    this.#said.delete(conversation)
    this.#said.set(conversation, { message, changes })
    if (this.#said.size > Remembered) this.#said.delete(this.#said.keys().next().value!)
    if (changes < Suspicious) return false
    const count = (this.#counts.get(handler) ?? 0) + 1
    this.#counts.set(handler, count)
    return count === 1
  }

  /** A handler that is registered anew is another one. */
  forget(isGone: (handler: string) => boolean): void {
    for (const handler of this.#counts.keys()) if (isGone(handler)) this.#counts.delete(handler)
    for (const conversation of this.#said.keys()) {
      if (isGone(conversation.slice(0, conversation.indexOf(' ')))) this.#said.delete(conversation)
    }
  }
}
