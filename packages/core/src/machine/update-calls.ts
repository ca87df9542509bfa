import { type Machine, onlyHandler, UpdateMachine } from '@capstan/api'
import type { CallInput, RuntimeClient } from '@capstan/extension'
import { hours, keyOf, type ObjectKey, seconds, stableText } from '@capstan/kube'
import type { WaitingFor } from '../waiting-records.ts'

export type UpdateAnswer =
  /** The extension is at it: ask again in so many milliseconds. */
  { readonly kind: 'blocked'; readonly waiting: WaitingFor; readonly retryAfter: number } | { readonly kind: 'done' }

export interface UpdateQuestion {
  readonly desired: CallInput<typeof UpdateMachine>['desired']
  /** When somebody last wished that hooks be asked again at once. */
  readonly retried: string | undefined
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** An answer that was not "done". */
interface Answer {
  readonly machine: ObjectKey
  /** Absent when the call failed: then any extension that changes may be what was missing. */
  readonly handler?: string
  readonly question: string
  /** Until when it holds; one that failed does not hold. */
  readonly until: number
  readonly message: string
}

/**
 * Calls UpdateMachine, and keeps a blocking answer until its time is over: passes that come earlier get the same answer and nobody
 * is called. Upstream: callUpdateMachineHook and its cache, v1.14. What is different: an answer holds for one Machine (by uid) and one
 * wish, so that a Machine whose desired state has changed is asked about at once; so it is when the extension has changed or is gone.
 */
export class UpdateCalls {
  readonly #runtime: RuntimeClient | undefined
  /** By uid of the Machine. */
  readonly #answers = new Map<string, Answer>()

  /** Without a runtime client there are no handlers. */
  constructor(runtime: RuntimeClient | undefined) {
    this.#runtime = runtime
  }

  /** False until it is known which extensions there are. */
  get ready(): boolean {
    return this.#runtime?.ready ?? true
  }

  /** Calls `again` for each Machine that an extension keeps waiting whenever that one has changed or is gone, and for those that failed. */
  whenExtensionsChange(again: (machine: ObjectKey) => void): void {
    this.#runtime?.onChanged?.((extensionConfig) => {
      for (const [uid, { machine, handler }] of this.#answers) {
        if (handler !== undefined && !handler.endsWith(`.${extensionConfig}`)) continue
        this.#answers.delete(uid)
        again(machine)
      }
    })
  }

  /** @throws Error when not exactly one handler is registered, and whatever the runtime client throws when it fails */
  async call(machine: Machine, { desired, retried, now }: UpdateQuestion, signal: AbortSignal): Promise<UpdateAnswer> {
    const { uid } = machine.metadata
    // Labels and annotations reach living objects without any update, and some change all the time.
    const specs = Object.values(desired).map((object) => (object as { readonly spec?: unknown }).spec)
    const question = stableText([retried, ...specs])
    const about = { machine: keyOf(machine), question }
    const earlier = this.#answers.get(uid)
    this.#answers.set(uid, { ...about, until: 0, message: '' })
    const handlers = (await this.#runtime?.handlersFor(UpdateMachine, machine)) ?? []
    const handler = onlyHandler(UpdateMachine, handlers)
    if (handler === undefined) throw new Error('no extensions registered for UpdateMachine hook')

    const holds = earlier?.question === question && earlier.until > now
    const answer = holds ? earlier : await this.#ask(machine, { desired }, { ...about, handler }, now, signal)
    if (!answer) {
      this.#answers.delete(uid)
      return { kind: 'done' }
    }
    this.#answers.set(uid, answer)
    const { until, message } = answer
    const waiting = { hook: UpdateMachine.name, handlers: [handler], until, message, called: !holds }
    return { kind: 'blocked', waiting, retryAfter: until - now }
  }

  async #ask(
    machine: Machine,
    request: CallInput<typeof UpdateMachine>,
    about: Pick<Answer, 'machine' | 'handler' | 'question'>,
    now: number,
    signal: AbortSignal,
  ): Promise<Answer | undefined> {
    const { retryAfterSeconds, message = '' } = await this.#runtime!.callAll(UpdateMachine, machine, request, { signal })
    if (retryAfterSeconds <= 0) return undefined
    // Of Machines that went without a word.
    for (const [old, { until }] of this.#answers) if (until > 0 && until + hours(24) < now) this.#answers.delete(old)
    return { ...about, until: now + seconds(retryAfterSeconds), message }
  }

  /** For a Machine that is updated no more. */
  forget(uid: string): void {
    this.#answers.delete(uid)
  }
}
