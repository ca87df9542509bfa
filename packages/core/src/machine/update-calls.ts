import { type Machine, onlyHandler, UpdateMachine } from '@capstan/api'
import type { CallInput, RuntimeClient } from '@capstan/extension'
import { type Clock, keyOf, type ObjectKey, seconds, stableText } from '@capstan/kube'
import { dropExpiredResponses } from '../response-lifetime.ts'
import { RetryRequests } from '../retry-requests.ts'
import type { WaitingFor } from '../waiting-records.ts'

/** Result of a call of UpdateMachine. */
export type UpdateResult =
  /** The update is in progress: call the hook again after `retryAfter` milliseconds. */
  { readonly kind: 'blocked'; readonly waiting: WaitingFor; readonly retryAfter: number } | { readonly kind: 'done' }

/** Inputs of `UpdateCalls.call`, beside the Machine and the signal. */
export interface UpdateRequest {
  /** Desired Machine, infrastructure machine and bootstrap config. */
  readonly desired: CallInput<typeof UpdateMachine>['desired']
  /** Number of times that a user has requested an immediate retry of the Cluster's hooks. */
  readonly retries: number
  readonly clock: Clock
}

/** A call in progress, a blocking response, or a failed call. */
interface PendingCall {
  readonly machine: ObjectKey
  /** Name of the handler that responded. Absent during the call and after it failed, so that a change of any extension triggers a retry. */
  readonly handler?: string
  readonly cacheKey: string
  /** Expiry of the response by `Clock.elapsed`; 0 during the call and after a failed one. */
  readonly expires: number
  /** Expiry of the response in milliseconds since the epoch, as recorded on the Machine; 0 during the call and after a failed one. */
  readonly until: number
  readonly message: string
}

/**
 * Calls UpdateMachine and caches a blocking response until its retry time: reconciles before that time get the response without a call.
 * Upstream: callUpdateMachineHook and its cache, v1.14. Differences: a response is valid for one Machine (by uid) and its desired specs. It
 * expires at once when these specs change, when a user requests a retry, or when the extension changes or is removed.
 */
export class UpdateCalls {
  readonly #runtime: RuntimeClient | undefined
  /** Counts the retry requests of each Cluster. The predicate of the controller's watch on Clusters updates the counts. */
  readonly retries = new RetryRequests()
  /** By uid of the Machine. */
  readonly #pendingCalls = new Map<string, PendingCall>()

  /** Without a runtime client there are no handlers. */
  constructor(runtime: RuntimeClient | undefined) {
    this.#runtime = runtime
  }

  /** False until the registered extensions are known; always true without a runtime client. */
  get ready(): boolean {
    return this.#runtime?.ready ?? true
  }

  /**
   * Subscribes to changes of extensions. When one is added, changed or removed, calls `enqueue` for each Machine that this extension blocks,
   * and for all Machines whose call is in progress or has failed.
   */
  whenExtensionsChange(enqueue: (machine: ObjectKey) => void): void {
    this.#runtime?.onChanged?.((extensionConfig) => {
      for (const [uid, { machine, handler }] of this.#pendingCalls) {
        if (handler !== undefined && !handler.endsWith(`.${extensionConfig}`)) continue
        this.#pendingCalls.delete(uid)
        enqueue(machine)
      }
    })
  }

  /**
   * Calls the hook, unless a cached response is still valid.
   * @throws Error when no handler or several handlers are registered; the runtime client's error when the handlers are unknown, or the call
   *   fails and the failure policy of the handler does not ignore the failure
   */
  async call(machine: Machine, { desired, retries, clock }: UpdateRequest, signal: AbortSignal): Promise<UpdateResult> {
    const { uid } = machine.metadata
    // `cacheKey` contains no labels or annotations: these change without an in-place update, some of them continuously.
    const specs = Object.values(desired).map((object) => (object as { readonly spec?: unknown }).spec)
    const cacheKey = stableText([retries, ...specs])
    const identity = { machine: keyOf(machine), cacheKey }
    const earlier = this.#pendingCalls.get(uid)
    const callInProgress: PendingCall = { ...identity, expires: 0, until: 0, message: '' }
    this.#pendingCalls.set(uid, callInProgress)
    const handlers = (await this.#runtime?.handlersFor(UpdateMachine, machine)) ?? []
    const handler = onlyHandler(UpdateMachine, handlers)
    if (handler === undefined) throw new Error('no extensions registered for UpdateMachine hook')

    const calledAt = clock.elapsed()
    const isCached = earlier?.cacheKey === cacheKey && earlier.expires > calledAt
    const pendingCall = isCached
      ? earlier
      : await this.#callExtension(machine, { desired }, { ...identity, handler }, clock, signal)
    if (!pendingCall) {
      this.#pendingCalls.delete(uid)
      return { kind: 'done' }
    }
    const { expires, until, message } = pendingCall
    // If any extension has changed during the call, `whenExtensionsChange` has queued the Machine again: the response expires at once.
    const isOutdated = this.#pendingCalls.get(uid) !== callInProgress
    this.#pendingCalls.set(uid, isOutdated ? { ...pendingCall, expires: calledAt } : pendingCall)
    const waiting = { hook: UpdateMachine.name, handlers: [handler], until, message, called: !isCached }
    return { kind: 'blocked', waiting, retryAfter: expires - calledAt }
  }

  async #callExtension(
    machine: Machine,
    request: CallInput<typeof UpdateMachine>,
    identity: Pick<PendingCall, 'machine' | 'cacheKey'> & { readonly handler: string },
    clock: Clock,
    signal: AbortSignal,
  ): Promise<PendingCall | undefined> {
    const calledAt = clock.elapsed()
    const now = clock.now()
    // `callAll` is not used: if the handler was removed meanwhile, `callAll` would call no handler, and the update would count as done.
    const response = await this.#runtime!.call(UpdateMachine, machine, identity.handler, request, { signal })
    const { retryAfterSeconds, message = '' } = response
    if (retryAfterSeconds <= 0) return undefined
    dropExpiredResponses(this.#pendingCalls, calledAt)
    const retryAfter = seconds(retryAfterSeconds)
    return { ...identity, expires: calledAt + retryAfter, until: now + retryAfter, message }
  }

  /** Drops the pending call of a Machine whose update has ended or was canceled. */
  forget(uid: string): void {
    this.#pendingCalls.delete(uid)
  }
}
