/**
 * Detects handlers whose message differs at every call, such as by the time of day: conditions that show it change endlessly. Upstream only
 * asks authors to avoid this.
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

  /** Records a handler's message for an object. Returns true when a changing message is detected for the first time. */
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

  /** A handler that is registered again starts without history. */
  forget(isGone: (handler: string) => boolean): void {
    for (const handler of this.#counts.keys()) if (isGone(handler)) this.#counts.delete(handler)
    for (const conversation of this.#said.keys()) {
      if (isGone(conversation.slice(0, conversation.indexOf(' ')))) this.#said.delete(conversation)
    }
  }
}
