/** Calls lifecycle hooks for one Cluster, and caches blocking responses. */
import { createHash } from 'node:crypto'
import type { Hook } from '@capstan/api'
import {
  BeforeClusterUpgradeHookAnnotationPrefix,
  type Cluster,
  clusterOnTheWire,
  ClusterTopologyUpgradeStepAnnotation,
  GenerateUpgradePlan,
  PendingHooksAnnotation,
  RetryHooksAnnotation,
  waitingHooks,
} from '@capstan/api'
import type { ReconcileContext } from '@capstan/controller'
import { type CallAllOptions, type CallInput, HookFailed, type RuntimeClient } from '@capstan/extension'
import { type Clock, keyOf, messageOf, minutes, type ObjectKey, seconds, stableText } from '@capstan/kube'
import { forgetOldAnswers } from '../answer-memory.ts'
import type { WaitingFor } from '../waiting-records.ts'
import { lowestVersion, type UpgradeDue, type UpgradePlan } from './upgrade-plan.ts'

/** A blocking hook, as shown in the condition. */
export interface BlockingHook extends WaitingFor {
  /** Milliseconds until the next call. */
  readonly retryAfter: number
}

/** A hook whose call failed, which blocks as well; its message is the error's. */
export type FailedHook = Omit<WaitingFor, 'until'>

export type HookAnswer =
  /** `called`: false when no handler is registered. */
  | { readonly kind: 'go'; readonly hook: string; readonly called: boolean }
  | ({ readonly kind: 'blocked' } & BlockingHook)
  | ({ readonly kind: 'failed'; readonly error: unknown } & FailedHook)

/** A non-blocking response contains the plan. */
type PlanAnswer = (Extract<HookAnswer, { kind: 'go' }> & { readonly plan: UpgradePlan }) | Extract<HookAnswer, { kind: 'failed' }>

/** What calling a hook needs of the reconcile context. */
export type CallContext = Pick<ReconcileContext, 'signal' | 'outside'>

/** A blocking response, with its request. */
interface Answer {
  readonly cluster: ObjectKey
  /** Parts of the request on which the response may depend. */
  readonly question: string
  /** The user's last retry request. */
  readonly wish: string
  readonly asked: number
  /** Expiry; a failed call expires at once. */
  readonly until: number
  /** Consecutive early calls because the request had changed. */
  readonly changes: number
  readonly message: string
  readonly handlers: readonly string[]
}

/**
 * Calls hooks and caches a blocking response until its retry time: earlier reconciles get the same response without a call. Upstream:
 * internal/hooks and the cache of controllers/topology/cluster, v1.14. Differences: a response is valid for one Cluster (by uid) and one
 * request, so that another version, or a recreated Cluster of the same name, leads to a new call at once; so does a user's retry request,
 * and a change or removal of the extension.
 */
export class LifecycleHooks {
  readonly #runtime: RuntimeClient
  readonly #clock: Clock
  /** By hook and uid of the Cluster. */
  readonly #answers = new Map<string, Answer>()
  /** Keys already looked up in the records of an earlier process, found or not. */
  readonly #lookedFor = new Set<string>()
  /** Clusters whose handlers could not be determined, by uid. */
  readonly #unasked = new Map<string, ObjectKey>()
  readonly #plans = new Map<string, { readonly until: number; readonly handler: string; readonly plan: UpgradePlan }>()

  constructor(runtime: RuntimeClient, clock: Clock) {
    this.#runtime = runtime
    this.#clock = clock
  }

  /** False until the registered extensions are known: nothing should be decided before. */
  get ready(): boolean {
    return this.#runtime.ready
  }

  /** Calls `again` for each Cluster that an extension blocks or fails, when that extension was changed or removed. */
  whenExtensionsChange(again: (cluster: ObjectKey) => void): void {
    this.#runtime.onChanged?.((extensionConfig) => {
      const isOf = (handler: string) => handler.endsWith(`.${extensionConfig}`)
      for (const [key, { handler }] of this.#plans) if (isOf(handler)) this.#plans.delete(key)
      // Their handlers may be determined now.
      for (const cluster of this.#unasked.values()) again(cluster)
      this.#unasked.clear()
      for (const [key, { handlers, cluster }] of this.#answers) {
        if (!handlers.some(isOf)) continue
        this.#answers.delete(key)
        again(cluster)
      }
    })
  }

  /**
   * Clusters of the namespace that wait for a hook, or whose handlers could not be determined: other extensions may select its new labels.
   */
  waitingIn(namespace: string): ObjectKey[] {
    const waiting = [...this.#unasked.values(), ...[...this.#answers.values()].map(({ cluster }) => cluster)]
    return waiting.filter((cluster) => cluster.namespace === namespace)
  }

  /**
   * @throws the error of the runtime client's `handlersFor`, except for an extension that was never discovered, and the reason of an abort
   */
  async call<H extends Hook>(
    hook: H,
    cluster: Cluster,
    input: Omit<CallInput<H>, 'cluster'>,
    { signal, outside }: CallContext,
  ): Promise<HookAnswer> {
    const { name } = hook
    const key = `${name}: ${cluster.metadata.uid}`
    const found = await this.#runtime.handlersFor(hook, cluster).catch((error: unknown) => ({ error }))
    if ('error' in found) {
      const { error } = found
      if (signal.aborted) throw error
      this.#unasked.set(cluster.metadata.uid, keyOf(cluster))
      const { extensionConfig } = error instanceof HookFailed ? error : {}
      if (extensionConfig === undefined) throw error
      return { kind: 'failed', hook: name, message: messageOf(error), handlers: [], extensionConfig, error, called: false }
    }
    const handlers = found
    this.#unasked.delete(cluster.metadata.uid)
    if (handlers.length === 0) {
      this.#answers.delete(key)
      return { kind: 'go', hook: name, called: false }
    }

    const wish = wishOf(cluster)
    const question = digest([input, handlers, meaningOf(cluster), wish])
    const asked = this.#clock.now()
    const known = this.#answers.get(key) ?? this.#restored(key, name, cluster, question, wish)
    const wait = known ? holdsUntil(known, question, wish) - asked : 0
    if (known && wait > 0) {
      const { message, until } = known
      const retryAfter = Math.max(seconds(1), Math.round(wait / 1000) * 1000)
      const answer = { message, handlers: known.handlers, until, question: known.question }
      return { kind: 'blocked', hook: name, ...answer, retryAfter, called: false }
    }

    const isEarly = known !== undefined && known.until > asked && known.wish === wish
    const remember = (answer: Pick<Answer, 'until' | 'message' | 'handlers'>) => {
      forgetOldAnswers(this.#answers, asked)
      const changes = isEarly ? known.changes + 1 : 0
      this.#answers.set(key, { cluster: keyOf(cluster), question, wish, asked, changes, ...answer })
    }
    const request = { ...input, cluster: clusterOnTheWire(cluster) } as unknown as CallInput<H>
    const blocking: string[] = []
    let last: string | undefined
    try {
      const options: CallAllOptions = {
        signal,
        onCall(handler) {
          last = handler
        },
        onAnswer(handler, { retryAfterSeconds = 0 }) {
          if (retryAfterSeconds > 0) blocking.push(handler)
        },
      }
      const response = (await outside(() => this.#runtime.callAll(hook, cluster, request, options))) as {
        message?: string
        retryAfterSeconds?: number
      }
      const retryAfter = hook.blocking ? seconds(response.retryAfterSeconds ?? 0) : 0
      this.#answers.delete(key)
      if (retryAfter <= 0) return { kind: 'go', hook: name, called: true }
      const answer = { until: asked + retryAfter, message: response.message ?? '', handlers: blocking }
      remember(answer)
      return { kind: 'blocked', hook: name, ...answer, question, retryAfter, called: true }
    } catch (error) {
      if (signal.aborted) throw error
      const failed = { message: messageOf(error), handlers: last === undefined ? handlers : [last] }
      remember({ until: asked, ...failed })
      return { kind: 'failed', hook: name, ...failed, error, called: wasCalled(error) }
    }
  }

  /**
   * Calls the extension for the steps of an upgrade, in every reconcile. Responses are cached for ten minutes. Upstream:
   * exp/topology/desiredstate, GetUpgradePlanFromExtension, v1.14.
   */
  async upgradePlan(
    cluster: Cluster,
    handler: string,
    { desired, controlPlane, workers }: UpgradeDue,
    { signal, outside }: CallContext,
  ): Promise<PlanAnswer> {
    const { name } = GenerateUpgradePlan
    const { labels, uid } = cluster.metadata
    const lowest = lowestVersion(workers, controlPlane)
    const versions = `(${controlPlane},${lowest ?? ''}) => ${desired}`
    const question = `${handler}: ${uid}: ${versions}: ${digest([labels ?? {}, cluster.spec, wishOf(cluster)])}`
    const now = this.#clock.now()
    const known = this.#plans.get(question)
    if (known && known.until > now) return { kind: 'go', hook: name, called: false, plan: known.plan }
    const key = `${name}: ${uid}`
    try {
      const { controlPlaneUpgrades = [], workersUpgrades = [] } = await outside(() =>
        this.#runtime.call(
          GenerateUpgradePlan,
          cluster,
          handler,
          {
            cluster: clusterOnTheWire(cluster),
            fromControlPlaneKubernetesVersion: controlPlane,
            ...(lowest === undefined ? {} : { fromWorkersKubernetesVersion: lowest }),
            toKubernetesVersion: desired,
          },
          { signal },
        ),
      )
      const versionsOf = (steps: readonly { readonly version: string }[]) => steps.map(({ version }) => version)
      const plan = { controlPlane: versionsOf(controlPlaneUpgrades), workers: versionsOf(workersUpgrades) }
      for (const [old, { until }] of this.#plans) if (until <= now) this.#plans.delete(old)
      this.#plans.set(question, { until: now + minutes(10), handler, plan })
      this.#answers.delete(key)
      return { kind: 'go', hook: name, called: true, plan }
    } catch (error) {
      if (signal.aborted) throw error
      const failed = { message: messageOf(error), handlers: [handler] }
      const memory = { cluster: keyOf(cluster), question, wish: wishOf(cluster), asked: now, until: now, changes: 0 }
      this.#answers.set(key, { ...memory, ...failed })
      return { kind: 'failed', hook: name, ...failed, error, called: wasCalled(error) }
    }
  }

  /**
   * Returns the response that an earlier process recorded on the Cluster, if it is still valid for this request. Looked up once: later,
   * this process knows more, such as a change of the extension.
   */
  #restored(key: string, hook: string, cluster: Cluster, question: string, wish: string): Answer | undefined {
    if (this.#lookedFor.has(key)) return undefined
    this.#lookedFor.add(key)
    const record = waitingHooks(cluster).find((one) => one.hook === hook)
    if (record?.until === undefined || record.question !== question) return undefined
    const { message, handlers, until } = record
    const asked = this.#clock.now()
    const answer = { cluster: keyOf(cluster), question, wish, asked, until: Date.parse(until), changes: 0, message, handlers }
    this.#answers.set(key, answer)
    return answer
  }
}

/**
 * Returns when the hook may be called again. A changed request is sent at once; when each call leads to another change, as with an
 * extension that writes the Cluster, with growing delays.
 */
function holdsUntil({ asked, until, changes, ...known }: Answer, question: string, wish: string): number {
  if (known.wish !== wish) return asked
  if (known.question === question) return until
  return Math.min(until, changes === 0 ? asked : asked + seconds(2 ** (changes - 1)))
}

/** Parts of a Cluster on which a response may depend: those in the request, without what core writes itself. */
function meaningOf(cluster: Cluster): object {
  const { metadata, spec } = clusterOnTheWire(cluster)
  const {
    [PendingHooksAnnotation]: _,
    [ClusterTopologyUpgradeStepAnnotation]: _step,
    ...annotations
  } = metadata.annotations ?? {}
  return [metadata.labels ?? {}, annotations, spec]
}

/** An open circuit breaker prevents the call. */
const wasCalled = (error: unknown): boolean => !(error instanceof HookFailed && error.code === 'unavailable')

const wishOf = ({ metadata }: Cluster): string => metadata.annotations?.[RetryHooksAnnotation] ?? ''
const digest = (value: unknown): string => createHash('sha256').update(stableText(value)).digest('base64url')

/** Annotations that block an upgrade as a hook would, without any extension. */
export function heldByAnnotation({ metadata }: Cluster): BlockingHook | undefined {
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
