import { type Machine, onlyHandler, UpdateMachine } from '@capstan/api'
import type { CallInput, RuntimeClient } from '@capstan/extension'
import { hours, seconds } from '@capstan/kube'
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

/**
 * Calls UpdateMachine, and keeps a blocking answer until its time is over: passes that come earlier get the same answer and nobody
 * is called. Upstream: callUpdateMachineHook and its cache, v1.14, with one difference: an answer holds for one Machine (by uid) and
 * one wish, so that a Machine whose desired state has changed is asked about at once.
 */
export class UpdateCalls {
  readonly #runtime: RuntimeClient | undefined
  readonly #blocked = new Map<string, { readonly question: string; readonly until: number; readonly message: string }>()

  /** Without a runtime client there are no handlers. */
  constructor(runtime: RuntimeClient | undefined) {
    this.#runtime = runtime
  }

  /** False until it is known which extensions there are. */
  get ready(): boolean {
    return this.#runtime?.ready ?? true
  }

  /** @throws Error when not exactly one handler is registered, and whatever the runtime client throws when it fails */
  async call(machine: Machine, { desired, retried, now }: UpdateQuestion, signal: AbortSignal): Promise<UpdateAnswer> {
    const handlers = (await this.#runtime?.handlersFor(UpdateMachine, machine)) ?? []
    const handler = onlyHandler(UpdateMachine, handlers)
    if (handler === undefined) throw new Error('no extensions registered for UpdateMachine hook')
    const blocked = ({ until, message }: { until: number; message: string }, called: boolean): UpdateAnswer => ({
      kind: 'blocked',
      waiting: { hook: UpdateMachine.name, handlers: [handler], until, message, called },
      retryAfter: until - now,
    })

    const { uid } = machine.metadata
    // Labels and annotations reach living objects without any update, and some change all the time.
    const specs = Object.values(desired).map((object) => (object as { readonly spec?: unknown }).spec)
    const question = JSON.stringify([retried, ...specs])
    const earlier = this.#blocked.get(uid)
    if (earlier?.question === question && earlier.until > now) return blocked(earlier, false)
    this.#blocked.delete(uid)
    const { retryAfterSeconds, message = '' } = await this.#runtime!.callAll(UpdateMachine, machine, { desired }, { signal })
    if (retryAfterSeconds <= 0) return { kind: 'done' }
    for (const [old, { until }] of this.#blocked) if (until + hours(24) < now) this.#blocked.delete(old)
    const answer = { question, until: now + seconds(retryAfterSeconds), message }
    this.#blocked.set(uid, answer)
    return blocked(answer, true)
  }

  /** For a Machine that is updated no more. */
  forget(uid: string): void {
    this.#blocked.delete(uid)
  }
}
