/** Runs controllers together over one client and one set of informers. */
import type { Client, Clock, KubeObject, Logger, ObjectKey, Random } from '@capstan/kube'
import { forkRandom } from '@capstan/kube'
import { Informers } from './cache.ts'
import type { Cache, Controller } from './controller.ts'
import { createEventRecorders, type EventRecorders } from './events.ts'
import type { Informer } from './informer.ts'
import { type Leadership, type LeadershipOptions, SharedLeadership, SingleLeader } from './leadership.ts'
import { Loop } from './loop.ts'
import type { ControllerMetrics } from './metrics.ts'
import { createMetrics, registerLoops, registerMasterStatus } from './metrics.ts'
import { Shards } from './shards.ts'
import { WriteTimes } from './write-times.ts'

export interface ManagerOptions {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly controllers: readonly Controller[]
  /** The only namespace whose objects are watched; all namespaces when absent. Cluster-scoped kinds are always watched. */
  readonly namespace?: string
  /** Selects the objects whose events cause reconciles; all when absent. Reads from the cache return other objects as well. */
  readonly eventFilter?: (object: KubeObject) => boolean
  /** Milliseconds after which an unchanged object is reconciled again. If absent, objects are not reconciled periodically. */
  readonly syncPeriod?: number
  /**
   * Leader election: this manager reconciles and writes only while it holds the Lease; with shards, only objects of the shards whose Leases
   * it holds. If absent, it reconciles as soon as every informer has synced.
   */
  readonly leaderElection?: LeadershipOptions
}

export interface Manager {
  /** Resolves when every informer has synced. Reconciles begin then; with leader election, once this manager also holds a Lease. */
  start(): Promise<void>
  /**
   * Aborts reconciles in progress and resolves when all watches have ended and recorded Events were sent or rejected. With leader
   * election, Events that are not sent within a second are dropped; then no further write begins, and the held Leases are released. If
   * writes in progress take too long, their Lease is left to expire. Without leader election, a reconcile that ignores its signal may
   * still write.
   */
  stop(): Promise<void>
  /** Resolves when the manager was stopped. Rejects when it has ended for another reason, such as the loss of the Lease. */
  readonly ended: Promise<void>
  readonly cache: Cache
  /** True before reconciles begin, and while no reconcile runs or is ready and no key waits until the cache contains its own writes. */
  readonly idle: boolean
  /** Whether every informer has synced, and the manager has not ended. */
  readonly started: boolean
  /**
   * Whether this manager is the leader: it holds the Lease, or with shards the Lease of shard 0. Without leader election, the same
   * as `started`.
   */
  readonly leads: boolean
  /** Whether this process reconciles the object. */
  holds(key: ObjectKey): boolean
  readonly metrics: ControllerMetrics
  /**
   * For tests: the keys whose last reconcile failed or returned a reason to wait, as `controller namespace/name: text`. The text is the
   * error or the reason.
   */
  waiting(): readonly string[]
  informers(): readonly Informer[]
}

export function createManager(options: ManagerOptions): Manager {
  const { client, clock, random, log, controllers, namespace, eventFilter, syncPeriod, leaderElection } = options
  const abort = new AbortController()
  const { signal } = abort
  const informers = new Informers({
    client,
    clock,
    random: forkRandom(random),
    log,
    signal,
    ...(namespace === undefined ? {} : { namespace }),
  })
  // Random streams are separate, so that generated object names do not depend on the number of reconciles, events or reconnections.
  const ids = forkRandom(random)
  const forEvents = forkRandom(random)
  const leadership =
    leaderElection &&
    createLeadership(leaderElection, informers, (shard) => loops.forEach((loop) => loop.enqueueShard(shard)), {
      client,
      clock,
      random: forkRandom(random),
      log,
    })
  const writer = leadership?.client ?? client
  const events = createEventRecorders({ client: leadership?.eventClient ?? client, clock, random: forEvents, log })
  const metrics = createMetrics()
  for (const declaration of controllers) declaration.metrics?.(metrics.registry)
  const times = new WriteTimes(clock)
  const loops = controllers.map(
    (declaration) =>
      new Loop(declaration, {
        client: writer,
        informers,
        clock,
        random,
        ids,
        log,
        events: events.of(`${declaration.name}-controller`),
        metrics,
        signal,
        times,
        ...(eventFilter ? { eventFilter } : {}),
        ...(syncPeriod === undefined ? {} : { syncPeriod }),
        ...(leadership?.partition ? { partition: leadership.partition } : {}),
      }),
  )
  registerLoops(metrics, () => loops.map((loop) => loop.state))
  if (leadership) registerMasterStatus(metrics, () => leadership.leases)
  return new LoopManager({ informers, metrics, events, loops, leadership, abort, log })
}

/**
 * Creates the leadership of this manager: by one Lease or, with shards, shared with other managers. The shared leadership calls `onChange`
 * with each shard that this process acquires, releases or loses.
 */
function createLeadership(
  options: LeadershipOptions,
  informers: Informers,
  onChange: (shard: number) => void,
  dependencies: Pick<ManagerOptions, 'client' | 'clock' | 'random' | 'log'>,
): Leadership {
  if (options.shards === undefined) return new SingleLeader(options, dependencies)
  const shards = new Shards(
    {
      count: options.shards,
      election: options,
      ...(options.prepare ? { prepare: (until) => options.prepare!(until) } : {}),
      waitUntilCurrent: (until) => informers.waitUntilCurrent(until),
      onChange,
    },
    dependencies,
  )
  return new SharedLeadership(shards, dependencies.client)
}

interface Parts {
  readonly informers: Informers
  readonly metrics: ControllerMetrics
  readonly events: EventRecorders
  readonly loops: readonly Loop[]
  /** Absent without leader election. */
  readonly leadership: Leadership | undefined
  /** Ends informers, loops and leadership. */
  readonly abort: AbortController
  readonly log: Logger
}

/** Starts and stops the parts of a manager in order. */
class LoopManager implements Manager {
  readonly #parts: Parts
  readonly #ended = Promise.withResolvers<void>()
  #started = false
  #synced = Promise.resolve()
  #leading = Promise.resolve()

  constructor(parts: Parts) {
    this.#parts = parts
    // Prevents an unhandled rejection when the caller does not await `ended`. `#fail` logs the error.
    this.#ended.promise.catch(() => {})
  }

  get cache(): Cache {
    return this.#parts.informers
  }

  get metrics(): ControllerMetrics {
    return this.#parts.metrics
  }

  get ended(): Promise<void> {
    return this.#ended.promise
  }

  get started(): boolean {
    return this.#started
  }

  get leads(): boolean {
    return this.#parts.leadership?.leads ?? this.#started
  }

  holds(key: ObjectKey): boolean {
    return this.#parts.leadership?.holds(key) ?? this.#started
  }

  get idle(): boolean {
    return this.#parts.loops.every((loop) => loop.idle)
  }

  async start(): Promise<void> {
    const { loops, leadership, events, abort } = this.#parts
    requireUniqueNames(loops)
    this.#synced = Promise.all(loops.map((loop) => loop.subscribe())).then(() => undefined)
    if (leadership) {
      const term = { start: () => this.#run(), events, signal: abort.signal }
      this.#leading = leadership.run(term).catch((err) => this.#fail(err))
    }
    await this.#synced
    if (abort.signal.aborted) return
    this.#started = true
    if (!leadership) await this.#run()
  }

  async stop(): Promise<void> {
    const { informers, events, leadership } = this.#parts
    leadership?.endReconciles()
    this.#end()
    await informers.waitUntilStopped()
    await this.#leading
    await (leadership ? leadership.release(events) : events.waitUntilSent())
    this.#ended.resolve()
  }

  waiting(): readonly string[] {
    return this.#parts.loops.flatMap((loop) =>
      [...loop.waiting].map(([key, reason]) => `${loop.controller.name} ${key}: ${reason}`),
    )
  }

  informers(): readonly Informer[] {
    return this.#parts.informers.all()
  }

  async #run(): Promise<void> {
    await this.#synced
    if (!this.#parts.abort.signal.aborted) for (const loop of this.#parts.loops) loop.run()
  }

  #fail(err: unknown): void {
    const { abort, log } = this.#parts
    if (abort.signal.aborted) return
    log.error('The manager stops', { err })
    this.#ended.reject(err)
    this.#end()
  }

  #end(): void {
    this.#started = false
    this.#parts.abort.abort()
  }
}

/** Throws an Error if two controllers have the same name, because their metrics and log lines could not be distinguished. */
function requireUniqueNames(loops: readonly Loop[]): void {
  const names = new Set<string>()
  for (const { controller } of loops) {
    if (names.has(controller.name)) throw new Error(`Cannot start: two controllers are named ${controller.name}`)
    names.add(controller.name)
  }
}
