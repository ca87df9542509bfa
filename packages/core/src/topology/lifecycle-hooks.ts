/** Calls of lifecycle hooks for one Cluster: who is asked, with what, and how long an answer holds. */
import type { Hook } from '@capstan/api'
import {
  BeforeClusterUpgradeHookAnnotationPrefix,
  type Cluster,
  clusterOnTheWire,
  GenerateUpgradePlan,
  RetryHooksAnnotation,
} from '@capstan/api'
import type { CallAllOptions, CallInput, RuntimeClient } from '@capstan/extension'
import { type Clock, hours, minutes, seconds } from '@capstan/kube'
import type { WaitingFor } from '../waiting-records.ts'
import { lowestVersion, type UpgradeDue, type UpgradePlan } from './upgrade-plan.ts'

/** A hook that holds something back, as the condition shows it. */
export interface BlockingHook extends WaitingFor {
  /** Milliseconds until it is worth asking again. */
  readonly retryAfter: number
}

export type HookAnswer = { readonly kind: 'go' } | ({ readonly kind: 'blocked' } & BlockingHook)

const go: HookAnswer = { kind: 'go' }

/**
 * Calls hooks, and keeps a blocking answer until its time is over: passes that come earlier get the same answer and nobody is
 * called. Upstream: internal/hooks and the cache of controllers/topology/cluster, v1.14, with one difference: an answer holds for
 * one Cluster (by uid) and one question, so that another target version is asked about at once.
 */
export class LifecycleHooks {
  readonly #runtime: RuntimeClient
  readonly #clock: Clock
  readonly #blocked = new Map<
    string,
    { readonly until: number; readonly message: string; readonly handlers: readonly string[] }
  >()
  readonly #plans = new Map<string, { readonly until: number; readonly plan: UpgradePlan }>()

  constructor(runtime: RuntimeClient, clock: Clock) {
    this.#runtime = runtime
    this.#clock = clock
  }

  /** False until it is known which extensions there are: nothing should be decided before. */
  get ready(): boolean {
    return this.#runtime.ready
  }

  /** @throws whatever the runtime client does when an extension fails */
  async call<H extends Hook>(
    hook: H,
    cluster: Cluster,
    input: Omit<CallInput<H>, 'cluster'>,
    signal: AbortSignal,
  ): Promise<HookAnswer> {
    const handlers = await this.#runtime.handlersFor(hook, cluster)
    if (handlers.length === 0) return go

    const retried = cluster.metadata.annotations?.[RetryHooksAnnotation] ?? ''
    const question = `${hook.name}: ${cluster.metadata.uid}: ${retried}: ${JSON.stringify(input)}`
    const now = this.#clock.now()
    const earlier = this.#blocked.get(question)
    if (earlier && earlier.until > now) {
      const retryAfter = Math.max(seconds(1), Math.round((earlier.until - now) / 1000) * 1000)
      return { kind: 'blocked', hook: hook.name, ...earlier, retryAfter, called: false }
    }

    const request = { ...input, cluster: clusterOnTheWire(cluster) } as unknown as CallInput<H>
    const blocking: string[] = []
    const onAnswer: CallAllOptions['onAnswer'] = (handler, { retryAfterSeconds = 0 }) => {
      if (retryAfterSeconds > 0) blocking.push(handler)
    }
    const response = (await this.#runtime.callAll(hook, cluster, request, { signal, onAnswer })) as {
      message?: string
      retryAfterSeconds?: number
    }
    const retryAfter = hook.blocking ? seconds(response.retryAfterSeconds ?? 0) : 0
    this.#blocked.delete(question)
    if (retryAfter <= 0) return go
    this.#forgetOld(now)
    const message = response.message ?? ''
    const answer = { until: now + retryAfter, message, handlers: blocking }
    this.#blocked.set(question, answer)
    return { kind: 'blocked', hook: hook.name, ...answer, retryAfter, called: true }
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
  ): Promise<UpgradePlan> {
    const lowest = lowestVersion(workers, controlPlane)
    const question = `${handler}: ${cluster.metadata.uid}: (${controlPlane},${lowest ?? ''}) => ${desired}`
    const now = this.#clock.now()
    const known = this.#plans.get(question)
    if (known && known.until > now) return known.plan
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
    const versions = (steps: readonly { readonly version: string }[]) => steps.map(({ version }) => version)
    const plan = { controlPlane: versions(controlPlaneUpgrades), workers: versions(workersUpgrades) }
    for (const [old, { until }] of this.#plans) if (until <= now) this.#plans.delete(old)
    this.#plans.set(question, { until: now + minutes(10), plan })
    return plan
  }

  /** Answers for Clusters that are gone, or for questions that are not asked any more. */
  #forgetOld(now: number): void {
    for (const [question, { until }] of this.#blocked) if (until + hours(24) < now) this.#blocked.delete(question)
  }
}

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
