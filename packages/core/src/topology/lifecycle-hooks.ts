/** Calls of lifecycle hooks for one Cluster: who is asked, with what, and how long an answer holds. */
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
} from '@capstan/api'
import { type CallInput, HookFailed, type RuntimeClient } from '@capstan/extension'
import { type Clock, hours, keyOf, messageOf, minutes, type ObjectKey, seconds, stableText } from '@capstan/kube'
import type { WaitingFor } from '../waiting-records.ts'
import { lowestVersion, type UpgradeDue, type UpgradePlan } from './upgrade-plan.ts'

/** A hook that holds something back, as the condition shows it. */
export interface BlockingHook extends WaitingFor {
  /** Milliseconds until it is worth asking again. */
  readonly retryAfter: number
}

/** A hook whose call failed, which holds back as much; its message is that of the error. */
export type FailedHook = Omit<WaitingFor, 'until'>

export type HookAnswer =
  /** `called`: not because there is nobody to ask. */
  | { readonly kind: 'go'; readonly hook: string; readonly called: boolean }
  | ({ readonly kind: 'blocked' } & BlockingHook)
  | ({ readonly kind: 'failed'; readonly error: unknown } & FailedHook)

/** "Go" brings the plan. */
type PlanAnswer = (Extract<HookAnswer, { kind: 'go' }> & { readonly plan: UpgradePlan }) | Extract<HookAnswer, { kind: 'failed' }>

/** An answer that was not "go", with what it was given to. */
interface Answer {
  readonly cluster: ObjectKey
  /** What was asked, as far as an answer may depend on it. */
  readonly question: string
  /** The user's last wish to have hooks asked at once. */
  readonly wish: string
  readonly asked: number
  /** Until when it holds; one that failed does not hold. */
  readonly until: number
  /** Times in a row that it was asked before its time, because the question had changed. */
  readonly changes: number
  readonly message: string
  readonly handlers: readonly string[]
}

/**
 * Calls hooks, and keeps a blocking answer until its time is over: passes that come earlier get the same answer and nobody is
 * called. Upstream: internal/hooks and the cache of controllers/topology/cluster, v1.14. What is different: an answer holds for one
 * Cluster (by uid) and one question, so that another version, or another Cluster under the same name, is asked about at once; so it
 * is when the user wishes, and when the extension that gave it has changed or is gone.
 */
export class LifecycleHooks {
  readonly #runtime: RuntimeClient
  readonly #clock: Clock
  /** By hook and uid of the Cluster. */
  readonly #answers = new Map<string, Answer>()
  /** Clusters of which nobody could tell who is to be asked, by uid. */
  readonly #unasked = new Map<string, ObjectKey>()
  readonly #plans = new Map<string, { readonly until: number; readonly handler: string; readonly plan: UpgradePlan }>()

  constructor(runtime: RuntimeClient, clock: Clock) {
    this.#runtime = runtime
    this.#clock = clock
  }

  /** False until it is known which extensions there are: nothing should be decided before. */
  get ready(): boolean {
    return this.#runtime.ready
  }

  /** Calls `again` for each Cluster that an extension keeps waiting, or fails, whenever that extension has changed or is gone. */
  whenExtensionsChange(again: (cluster: ObjectKey) => void): void {
    this.#runtime.onChanged?.((extensionConfig) => {
      const isOf = (handler: string) => handler.endsWith(`.${extensionConfig}`)
      for (const [key, { handler }] of this.#plans) if (isOf(handler)) this.#plans.delete(key)
      // Whoever could not tell whom to ask may now.
      for (const cluster of this.#unasked.values()) again(cluster)
      this.#unasked.clear()
      for (const [key, { handlers, cluster }] of this.#answers) {
        if (!handlers.some(isOf)) continue
        this.#answers.delete(key)
        again(cluster)
      }
    })
  }

  /** @throws what `handlersFor` of the runtime client does, and the reason of an abort */
  async call<H extends Hook>(
    hook: H,
    cluster: Cluster,
    input: Omit<CallInput<H>, 'cluster'>,
    signal: AbortSignal,
  ): Promise<HookAnswer> {
    const { name } = hook
    const key = `${name}: ${cluster.metadata.uid}`
    const handlers = await this.#runtime.handlersFor(hook, cluster).catch((err) => {
      this.#unasked.set(cluster.metadata.uid, keyOf(cluster))
      throw err
    })
    this.#unasked.delete(cluster.metadata.uid)
    if (handlers.length === 0) {
      this.#answers.delete(key)
      return { kind: 'go', hook: name, called: false }
    }

    const wish = wishOf(cluster)
    const question = digest([input, handlers, meaningOf(cluster)])
    const asked = this.#clock.now()
    const known = this.#answers.get(key)
    const wait = known ? holdsUntil(known, question, wish) - asked : 0
    if (known && wait > 0) {
      const { message, until } = known
      const retryAfter = Math.max(seconds(1), Math.round(wait / 1000) * 1000)
      return { kind: 'blocked', hook: name, message, handlers: known.handlers, until, retryAfter, called: false }
    }

    const isEarly = known !== undefined && known.until > asked && known.wish === wish
    const remember = (answer: Pick<Answer, 'until' | 'message' | 'handlers'>) => {
      this.#forgetOld(asked)
      const changes = isEarly ? known.changes + 1 : 0
      this.#answers.set(key, { cluster: keyOf(cluster), question, wish, asked, changes, ...answer })
    }
    const request = { ...input, cluster: clusterOnTheWire(cluster) } as unknown as CallInput<H>
    const blocking: string[] = []
    let last: string | undefined
    try {
      const response = (await this.#runtime.callAll(hook, cluster, request, {
        signal,
        onCall(handler) {
          last = handler
        },
        onAnswer(handler, { retryAfterSeconds = 0 }) {
          if (retryAfterSeconds > 0) blocking.push(handler)
        },
      })) as { message?: string; retryAfterSeconds?: number }
      const retryAfter = hook.blocking ? seconds(response.retryAfterSeconds ?? 0) : 0
      this.#answers.delete(key)
      if (retryAfter <= 0) return { kind: 'go', hook: name, called: true }
      const answer = { until: asked + retryAfter, message: response.message ?? '', handlers: blocking }
      remember(answer)
      return { kind: 'blocked', hook: name, ...answer, retryAfter, called: true }
    } catch (error) {
      if (signal.aborted) throw error
      const failed = { message: messageOf(error), handlers: last === undefined ? handlers : [last] }
      remember({ until: asked, ...failed })
      return { kind: 'failed', hook: name, ...failed, error, called: wasCalled(error) }
    }
  }

  /**
   * What the extension says about the steps of an upgrade. An answer holds for ten minutes: it is asked for in every pass.
   * Upstream: exp/topology/desiredstate, GetUpgradePlanFromExtension, v1.14.
   */
  async upgradePlan(
    cluster: Cluster,
    handler: string,
    { desired, controlPlane, workers }: UpgradeDue,
    signal: AbortSignal,
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
      const { controlPlaneUpgrades = [], workersUpgrades = [] } = await this.#runtime.call(
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

  /** Answers for Clusters that are gone, or for questions that are not asked any more. */
  #forgetOld(now: number): void {
    for (const [key, { until }] of this.#answers) if (until + hours(24) < now) this.#answers.delete(key)
  }
}

/**
 * When the question may be put again. One that has changed is put at once; when each call leads to another change, as with an
 * extension that writes the Cluster, ever later.
 */
function holdsUntil({ asked, until, changes, ...known }: Answer, question: string, wish: string): number {
  if (known.wish !== wish) return asked
  if (known.question === question) return until
  return Math.min(until, changes === 0 ? asked : asked + seconds(2 ** (changes - 1)))
}

/** What of a Cluster can make an answer another one: what the request says of it, but for what core writes there itself. */
function meaningOf(cluster: Cluster): object {
  const { metadata, spec } = clusterOnTheWire(cluster)
  const {
    [PendingHooksAnnotation]: _,
    [ClusterTopologyUpgradeStepAnnotation]: _step,
    ...annotations
  } = metadata.annotations ?? {}
  return [metadata.labels ?? {}, annotations, spec]
}

/** While a breaker is open nobody is called. */
const wasCalled = (error: unknown): boolean => !(error instanceof HookFailed && error.code === 'unavailable')

const wishOf = ({ metadata }: Cluster): string => metadata.annotations?.[RetryHooksAnnotation] ?? ''
const digest = (value: unknown): string => createHash('sha256').update(stableText(value)).digest('base64url')

/** Annotations that hold an upgrade back as a hook would, without any extension. */
export function heldByAnnotation({ metadata }: Cluster): BlockingHook | undefined {
  const names = Object.keys(metadata.annotations ?? {}).filter((name) =>
    name.startsWith(BeforeClusterUpgradeHookAnnotationPrefix),
  )
  if (names.length === 0) return undefined
  const message = names.length === 1 ? `annotation ${names[0]} is set` : `annotations ${names.sort().join(', ')} are set`
  return { hook: 'BeforeClusterUpgrade', message, retryAfter: seconds(1200), handlers: [], called: false }
}

/** `Following hooks are blocking <action>: <Hook>: <message>; <Hook>`, hooks in the order of their names. */
export const blockingMessage = (hooks: readonly BlockingHook[], action: string): string =>
  `Following hooks are blocking ${action}: ${[...hooks]
    .sort((a, b) => (a.hook < b.hook ? -1 : 1))
    .map(({ hook, message }) => (message === '' ? hook : `${hook}: ${message}`))
    .join('; ')}`
