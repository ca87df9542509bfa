/** Calls the lifecycle hooks of Clusters and GenerateUpgradePlan, and caches blocking responses and upgrade plans. */
import type { Hook } from '@capstan/api'
import {
  BeforeClusterUpgradeHookAnnotationPrefix,
  type Cluster,
  clusterOnTheWire,
  ClusterTopologyUpgradeStepAnnotation,
  GenerateUpgradePlan,
  PendingHooksAnnotation,
  waitingHooks,
} from '@capstan/api'
import type { ReconcileContext } from '@capstan/controller'
import { type CallAllOptions, type CallInput, HookFailed, type RuntimeClient } from '@capstan/extension'
import { type Clock, keyOf, keyText, messageOf, minutes, type ObjectKey, seconds, stableText } from '@capstan/kube'
import { retryRequestOf } from '../../retry-requests.ts'
import type { WaitingFor } from '../../waiting-records.ts'
import { digest } from '../digest.ts'
import { lowestVersion, type UpgradeDue, type UpgradePlan } from '../upgrade/upgrade-plan.ts'

/** A hook that blocks the creation, an upgrade or the deletion of a Cluster, or the annotations that block an upgrade. */
export interface BlockingHook extends WaitingFor {
  /** Milliseconds until the next call. */
  readonly retryAfter: number
}

/** A hook whose call failed, or whose extension was never discovered. It also blocks; its message is the error message. */
export type FailedHook = Omit<WaitingFor, 'until'>

export type HookResult =
  /** The upgrade, creation or deletion may proceed. `called` is false when no handler selects the Cluster, or a cached plan was used. */
  | { readonly kind: 'proceed'; readonly hook: string; readonly called: boolean }
  | ({ readonly kind: 'blocked' } & BlockingHook)
  | ({ readonly kind: 'failed'; readonly error: unknown } & FailedHook)

/** Result of GenerateUpgradePlan: `proceed` with the plan, or `failed`. */
type PlanResult =
  | (Extract<HookResult, { kind: 'proceed' }> & { readonly plan: UpgradePlan })
  | Extract<HookResult, { kind: 'failed' }>

/** Members of the reconcile context that calling a hook needs. */
export type CallContext = Pick<ReconcileContext, 'signal' | 'withoutWorker'>

/** A blocking response or a failed call, with a hash of its request. */
interface CachedResponse {
  /** Hash of the parts of the request on which the response may depend. */
  readonly requestKey: string
  /** Time of the call by `Clock.elapsed`. For a response of an earlier process: the time at which its record was read. */
  readonly calledAt: number
  /** Expiry by `Clock.elapsed`; a failed call expires at once. */
  readonly expires: number
  /** Expiry in milliseconds since the epoch, as recorded on the Cluster. */
  readonly until: number
  /** Number of consecutive calls that a changed request caused before the previous response expired. */
  readonly changes: number
  readonly message: string
  readonly handlers: readonly string[]
}

/** An upgrade plan from an extension, with a hash of its request. */
interface CachedPlan {
  /** Hash of the parts of the request on which the plan may depend. */
  readonly requestKey: string
  /** Expiry by `Clock.elapsed`. */
  readonly expires: number
  readonly handler: string
  readonly plan: UpgradePlan
}

/** State of one Cluster, kept until the Cluster is deleted. */
interface ClusterState {
  readonly key: ObjectKey
  readonly uid: string
  /** By hook. */
  readonly responses: Map<string, CachedResponse>
  /** Hooks that were already looked up in the records of an earlier process, whether or not they have a record. */
  readonly lookedUp: Set<string>
  /** Whether the handlers of a hook are being determined, or could not be determined. */
  handlersUnknown: boolean
  /** The call in progress. Its blocking response, or its plan, is not cached when the extension of a handler changes during the call. */
  call?: { readonly handlers: readonly string[]; isOutdated: boolean }
  plan?: CachedPlan
  /** The retry request that was handled last; absent once its annotation is removed. */
  retried?: string
  /** Whether records of an earlier process are ignored, because they are older than a retry request. */
  ignoresRecords: boolean
}

/**
 * Calls hooks and caches a blocking response until its retry time: until then, reconciles get the same response without a call. Upstream:
 * internal/hooks and the cache of core/reconcilers/topology/cluster, v1.14. Differences: a response is valid for one Cluster (by uid) and
 * one request, so that another version, or a recreated Cluster of the same name, leads to a new call before the retry time. A user's retry
 * request, and a change or removal of the extension, also lead to a new call.
 */
export class LifecycleHooks {
  readonly #runtime: RuntimeClient | undefined
  readonly #clock: Clock
  /** By namespace and name. */
  readonly #clusters = new Map<string, ClusterState>()

  /** Creates an empty cache. Without a runtime client, no hook has handlers. */
  constructor(runtime: RuntimeClient | undefined, clock: Clock) {
    this.#runtime = runtime
    this.#clock = clock
  }

  /** Whether the registered extensions are known. Before that, a hook could seem to have no handlers. */
  get ready(): boolean {
    return this.#runtime?.ready ?? true
  }

  /** Number of Clusters with state. */
  get size(): number {
    return this.#clusters.size
  }

  /**
   * Drops the cached responses and plans of an extension when it is changed or removed. Then calls `enqueue` for each Cluster whose response,
   * failed call or call in progress involves this extension, and for each Cluster whose handlers are not determined.
   */
  whenExtensionsChange(enqueue: (cluster: ObjectKey) => void): void {
    this.#runtime?.onChanged?.((extensionConfig) => {
      const isHandlerOf = (handler: string) => handler.endsWith(`.${extensionConfig}`)
      for (const state of this.#clusters.values()) {
        if (state.plan && isHandlerOf(state.plan.handler)) delete state.plan
        // The change may allow the handlers of this Cluster to be determined.
        if (state.handlersUnknown) enqueue(state.key)
        state.handlersUnknown = false
        if (state.call?.handlers.some(isHandlerOf)) {
          state.call.isOutdated = true
          enqueue(state.key)
        }
        for (const [hook, { handlers }] of state.responses) {
          if (!handlers.some(isHandlerOf)) continue
          state.responses.delete(hook)
          enqueue(state.key)
        }
      }
    })
  }

  /**
   * Returns the Clusters of the namespace that wait for a hook, or whose handlers are not determined. They are reconciled when labels of the
   * namespace change, because other extensions may then select it.
   */
  waitingIn(namespace: string): ObjectKey[] {
    const isWaiting = ({ handlersUnknown, call, responses }: ClusterState) =>
      handlersUnknown || call !== undefined || responses.size > 0
    return [...this.#clusters.values()]
      .filter((state) => state.key.namespace === namespace && isWaiting(state))
      .map(({ key }) => key)
  }

  /** Drops the cached responses and the plan of a Cluster when its retry annotation has a new value. Does not remove the annotation. */
  handleRetryRequest(cluster: Cluster): void {
    const request = retryRequestOf(cluster)
    if (request === undefined && !this.#clusters.has(keyText(keyOf(cluster)))) return
    const state = this.#stateOf(cluster)
    if (request === state.retried) return
    if (request === undefined) return this.retryRequestRemoved(cluster)
    state.retried = request
    state.ignoresRecords = true
    state.responses.clear()
    delete state.plan
  }

  /** Records that the retry annotation was removed: from then on, an equal value is a new request. */
  retryRequestRemoved(cluster: Cluster): void {
    delete this.#stateOf(cluster).retried
  }

  /** Drops the state of a deleted Cluster. */
  forget(cluster: ObjectKey): void {
    this.#clusters.delete(keyText(cluster))
  }

  /**
   * Calls the handlers of a hook, unless a cached response is still valid.
   * Returns `failed` when a call fails, and for an extension that was never discovered.
   * @throws the error of an aborted call, and an error of the runtime client's `handlersFor` that names no ExtensionConfig
   */
  async call<H extends Hook>(
    hook: H,
    cluster: Cluster,
    input: Omit<CallInput<H>, 'cluster'>,
    { signal, withoutWorker }: CallContext,
  ): Promise<HookResult> {
    const { name } = hook
    const state = this.#stateOf(cluster)
    // Set before the handlers are determined, because an extension may change at the same time.
    state.handlersUnknown = true
    const lookup = (await this.#runtime?.handlersFor(hook, cluster).catch((error: unknown) => ({ error }))) ?? []
    if ('error' in lookup) {
      const { error } = lookup
      if (signal.aborted) throw error
      const { extensionConfig } = error instanceof HookFailed ? error : {}
      if (extensionConfig === undefined) throw error
      return { kind: 'failed', hook: name, message: messageOf(error), handlers: [], extensionConfig, error, called: false }
    }
    const handlers = lookup
    state.handlersUnknown = false
    if (handlers.length === 0) {
      state.responses.delete(name)
      return { kind: 'proceed', hook: name, called: false }
    }

    const requestKey = keyOfRequest([input, handlers, relevantParts(cluster)])
    const calledAt = this.#clock.elapsed()
    const now = this.#clock.now()
    const earlierResponse = state.responses.get(name) ?? this.#restored(state, name, cluster, requestKey)
    const wait = earlierResponse ? expiryFor(earlierResponse, requestKey) - calledAt : 0
    if (earlierResponse && wait > 0) {
      const { message, until } = earlierResponse
      const retryAfter = Math.max(seconds(1), Math.round(wait / 1000) * 1000)
      const cached = { message, handlers: earlierResponse.handlers, until, requestKey: earlierResponse.requestKey }
      return { kind: 'blocked', hook: name, ...cached, retryAfter, called: false }
    }

    const isEarly = earlierResponse !== undefined && earlierResponse.expires > calledAt
    const cacheResponse = (retryAfter: number, outcome: Pick<CachedResponse, 'message' | 'handlers'>) => {
      const changes = isEarly ? earlierResponse.changes + 1 : 0
      const validity = { expires: calledAt + retryAfter, until: now + retryAfter }
      state.responses.set(name, { requestKey, calledAt, ...validity, changes, ...outcome })
    }
    const request = { ...input, cluster: clusterOnTheWire(cluster) } as unknown as CallInput<H>
    const blocking: string[] = []
    let lastHandler: string | undefined
    const call: ClusterState['call'] = { handlers, isOutdated: false }
    state.call = call
    try {
      const options: CallAllOptions = {
        signal,
        onCall(handler) {
          lastHandler = handler
        },
        onAnswer(handler, { retryAfterSeconds = 0 }) {
          if (retryAfterSeconds > 0) blocking.push(handler)
        },
      }
      const response = (await withoutWorker(() => this.#runtime!.callAll(hook, cluster, request, options))) as {
        message?: string
        retryAfterSeconds?: number
      }
      const retryAfter = hook.blocking ? seconds(response.retryAfterSeconds ?? 0) : 0
      state.responses.delete(name)
      if (retryAfter <= 0) return { kind: 'proceed', hook: name, called: true }
      const blocked = { message: response.message ?? '', handlers: blocking }
      if (!call.isOutdated) cacheResponse(retryAfter, blocked)
      return { kind: 'blocked', hook: name, ...blocked, until: now + retryAfter, requestKey, retryAfter, called: true }
    } catch (error) {
      if (signal.aborted) throw error
      const failed = { message: messageOf(error), handlers: lastHandler === undefined ? handlers : [lastHandler] }
      cacheResponse(0, failed)
      return { kind: 'failed', hook: name, ...failed, error, called: wasCalled(error) }
    } finally {
      delete state.call
    }
  }

  /**
   * Returns the steps of an upgrade that the extension plans. Needs a runtime client. The plan is cached for ten minutes, unless the
   * failure policy ignored a failed call, or the extension changed during the call. Upstream: exp/topology/desiredstate,
   * GetUpgradePlanFromExtension, v1.14.
   */
  async upgradePlan(
    cluster: Cluster,
    handler: string,
    { desired, controlPlane, workers }: UpgradeDue,
    { signal, withoutWorker }: CallContext,
  ): Promise<PlanResult> {
    const { name } = GenerateUpgradePlan
    const state = this.#stateOf(cluster)
    const lowest = lowestVersion(workers, controlPlane)
    const requestKey = keyOfRequest([handler, controlPlane, lowest, desired, cluster.metadata.labels ?? {}, cluster.spec])
    const calledAt = this.#clock.elapsed()
    const earlierPlan = state.plan
    if (earlierPlan && earlierPlan.requestKey === requestKey && earlierPlan.expires > calledAt)
      return { kind: 'proceed', hook: name, called: false, plan: earlierPlan.plan }
    const call: ClusterState['call'] = { handlers: [handler], isOutdated: false }
    state.call = call
    let isIgnored = false
    const onIgnored = () => void (isIgnored = true)
    try {
      const { controlPlaneUpgrades = [], workersUpgrades = [] } = await withoutWorker(() =>
        this.#runtime!.call(
          GenerateUpgradePlan,
          cluster,
          handler,
          {
            cluster: clusterOnTheWire(cluster),
            fromControlPlaneKubernetesVersion: controlPlane,
            ...(lowest === undefined ? {} : { fromWorkersKubernetesVersion: lowest }),
            toKubernetesVersion: desired,
          },
          { signal, onIgnored },
        ),
      )
      const versionsOf = (steps: readonly { readonly version: string }[]) => steps.map(({ version }) => version)
      const plan = { controlPlane: versionsOf(controlPlaneUpgrades), workers: versionsOf(workersUpgrades) }
      if (!call.isOutdated && !isIgnored) state.plan = { requestKey, expires: calledAt + minutes(10), handler, plan }
      state.responses.delete(name)
      return { kind: 'proceed', hook: name, called: true, plan }
    } catch (error) {
      if (signal.aborted) throw error
      const failed = { message: messageOf(error), handlers: [handler] }
      const validity = { expires: calledAt, until: this.#clock.now() }
      state.responses.set(name, { requestKey, calledAt, ...validity, changes: 0, ...failed })
      return { kind: 'failed', hook: name, ...failed, error, called: wasCalled(error) }
    } finally {
      delete state.call
    }
  }

  /**
   * Returns the response that an earlier process recorded on the Cluster for an equal request; it may have expired. Each hook is looked up
   * only once: afterwards this process has newer information, such as a change of the extension.
   */
  #restored(state: ClusterState, hook: string, cluster: Cluster, requestKey: string): CachedResponse | undefined {
    if (state.ignoresRecords || state.lookedUp.has(hook)) return undefined
    state.lookedUp.add(hook)
    const record = waitingHooks(cluster).find((waitingHook) => waitingHook.hook === hook)
    if (record?.until === undefined || record.requestKey !== requestKey) return undefined
    const now = this.#clock.now()
    // The clock was set back after the response was recorded, so that the recorded time of the next call may be far away.
    if (Date.parse(record.since) > now) return undefined
    const { message, handlers } = record
    const until = Date.parse(record.until)
    const calledAt = this.#clock.elapsed()
    const response = { requestKey, calledAt, expires: calledAt + until - now, until, changes: 0, message, handlers }
    state.responses.set(hook, response)
    return response
  }

  /** Returns the state of the Cluster with this uid, not that of an earlier Cluster with the same name. */
  #stateOf(cluster: Cluster): ClusterState {
    const { uid } = cluster.metadata
    const key = keyOf(cluster)
    const existing = this.#clusters.get(keyText(key))
    if (existing?.uid === uid) return existing
    const newState = {
      key,
      uid,
      responses: new Map(),
      lookedUp: new Set<string>(),
      handlersUnknown: false,
      ignoresRecords: false,
    }
    this.#clusters.set(keyText(key), newState)
    return newState
  }
}

/**
 * Returns when the hook may be called again. The first changed request is sent at once. When each call leads to another change, as with an
 * extension that writes the Cluster, the delays grow.
 */
function expiryFor({ calledAt, expires, changes, ...response }: CachedResponse, requestKey: string): number {
  if (response.requestKey === requestKey) return expires
  return Math.min(expires, changes === 0 ? calledAt : calledAt + seconds(2 ** (changes - 1)))
}

/** Returns the parts of a request's Cluster on which a response may depend: labels, spec, and annotations that core does not write itself. */
function relevantParts(cluster: Cluster): object {
  const { metadata, spec } = clusterOnTheWire(cluster)
  const {
    [PendingHooksAnnotation]: _,
    [ClusterTopologyUpgradeStepAnnotation]: _step,
    ...annotations
  } = metadata.annotations ?? {}
  return [metadata.labels ?? {}, annotations, spec]
}

/** Whether a failed call counts as a call: not while the circuit breaker is open or too many calls are in progress. */
const wasCalled = (error: unknown): boolean => !(error instanceof HookFailed && error.code === 'unavailable')

const keyOfRequest = (parts: readonly unknown[]): string => digest(stableText(parts))

/** Returns the annotations that block an upgrade, in the form of a blocking hook; `undefined` when there are none. */
export function blockedByAnnotation({ metadata }: Cluster): BlockingHook | undefined {
  const names = Object.keys(metadata.annotations ?? {}).filter((name) =>
    name.startsWith(BeforeClusterUpgradeHookAnnotationPrefix),
  )
  if (names.length === 0) return undefined
  const message = names.length === 1 ? `annotation ${names[0]} is set` : `annotations ${names.sort().join(', ')} are set`
  return { hook: 'BeforeClusterUpgrade', message, retryAfter: seconds(1200), handlers: [], called: false }
}

/** Formats `Following hooks are blocking <action>: <Hook>: <message>; <Hook>`, with hooks sorted by name. */
export const blockingMessage = (hooks: readonly BlockingHook[], action: string): string =>
  `Following hooks are blocking ${action}: ${[...hooks]
    .sort((a, b) => (a.hook < b.hook ? -1 : 1))
    .map(({ hook, message }) => (message === '' ? hook : `${hook}: ${message}`))
    .join('; ')}`
