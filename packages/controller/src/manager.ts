/** Runs controllers together over one client and one set of informers. */
import type { Client, Clock, KubeObject, Logger, ObjectKey, Random } from '@capstan/kube'
import { createClient, forkRandom, seconds } from '@capstan/kube'
import { Informers } from './cache.ts'
import type { Cache, Controller } from './controller.ts'
import { createEventRecorders } from './events.ts'
import { fence } from './fence.ts'
import type { Informer } from './informer.ts'
import { LeaderElection, type LeaderElectionOptions } from './leader-election.ts'
import { Loop } from './loop.ts'
import type { ControllerMetrics } from './metrics.ts'
import { createMetrics, registerLoops, registerMasterStatus } from './metrics.ts'
import { within } from './own-writes.ts'
import { WriteTimes } from './write-times.ts'
import { waitForFormerHolders, ShardsAnnotation, shardsBefore, Shards } from './shards.ts'

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
  /** Milliseconds after which an object is reconciled again although it has not changed. If absent, this is never done. */
  readonly syncPeriod?: number
  /** Leader election: this manager reconciles and writes only while it holds the Lease. If absent, it reconciles from the start. */
  readonly leaderElection?: LeaderElectionOptions & {
    /** Work that only the leader may do before its reconciles begin, such as installing CRDs. */
    prepare?(signal: AbortSignal): Promise<void>
    /**
     * Number of shards among which namespaces are divided, the same in every process. Managers then share the work: each reconciles the
     * objects of the shards whose Leases it holds, and the others wait to acquire these Leases. If absent, one manager leads and reconciles
     * all objects.
     */
    readonly shards?: number
  }
}

export interface Manager {
  /** Resolves when every informer has synced. Reconciles begin then, or when this manager becomes the leader. */
  start(): Promise<void>
  /** Aborts reconciles in progress and resolves when all watches have ended. No writes follow. */
  stop(): Promise<void>
  /** Resolves when the manager was stopped. Rejects when it has ended for another reason, such as the loss of the Lease. */
  readonly ended: Promise<void>
  readonly cache: Cache
  /** True when no reconcile runs or is ready: only time or an event can start one. */
  readonly idle: boolean
  /** Whether every informer has synced. */
  readonly started: boolean
  /**
   * Whether this manager is the leader: it holds the Lease, or with shards the Lease of shard 0. Without leader election, whether it has
   * started.
   */
  readonly leads: boolean
  /** Whether this process reconciles the object. */
  holds(key: ObjectKey): boolean
  readonly metrics: ControllerMetrics
  /** For tests and `explain`: the reason for which each key waits, as `controller namespace/name: reason`. */
  waiting(): readonly string[]
  /** Returns all informers. */
  informers(): readonly Informer[]
}

/** Maximum time for which `stop` waits for writes in progress. */
const WritesTimeout = seconds(5)

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
  // Random streams are separate, so that generated object names do not depend on the number of reconciles, events or reconnections. Without
  // leader election, no stream is made for it.
  const ids = forkRandom(random)
  const forEvents = forkRandom(random)
  const forElection = leaderElection ? forkRandom(random) : random
  const count = leaderElection?.shards
  const election =
    leaderElection && count === undefined
      ? new LeaderElection(
          { ...leaderElection, annotations: { [ShardsAnnotation]: undefined } },
          { client, clock, random: forElection, log },
        )
      : undefined
  const shards =
    leaderElection && count !== undefined
      ? new Shards(
          {
            count,
            election: leaderElection,
            ...(leaderElection.prepare ? { prepare: (until) => leaderElection.prepare!(until) } : {}),
            waitUntilCurrent: (until) => informers.waitUntilCurrent(until),
            onChange: (shard) => loops.forEach((loop) => loop.enqueueShard(shard)),
          },
          { client, clock, random: forElection, log },
        )
      : undefined
  // With shards, reconciles write through the client of their shard, and this client only reads.
  const fenced = leaderElection && fence(client.transport, () => election?.leads ?? false)
  const writer = fenced ? createClient(fenced.transport) : client
  const events = createEventRecorders({ client: writer, clock, random: forEvents, log })
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
        ...(shards ? { partition: shards } : {}),
      }),
  )
  registerLoops(metrics, () => loops.map((loop) => loop.state))
  if (election) registerMasterStatus(metrics, () => [[leaderElection!.name, election.leads]])
  if (shards) registerMasterStatus(metrics, () => shards.leases.map((name, shard) => [name, shards.holds(shard)] as const))
  const ended = Promise.withResolvers<void>()
  // For callers that do not await `ended`. The error is logged as well.
  ended.promise.catch(() => {})
  let started = false
  let synced = Promise.resolve()
  let leading = Promise.resolve()

  const end = (): void => {
    started = false
    abort.abort()
  }
  const run = async (): Promise<void> => {
    await synced
    if (!signal.aborted) for (const loop of loops) loop.run()
  }
  /** Waits until no manager of a former group with shards is running, then runs the `prepare` option. */
  async function prepare({ before }: LeaderElection): Promise<void> {
    const former = shardsBefore(before)
    if (former !== undefined)
      await waitForFormerHolders(leaderElection!, former, { client, clock, random: forElection, log }, signal)
    await leaderElection?.prepare?.(signal)
  }
  /** Runs this manager as a process of a group with shards, until it stops or fails. */
  async function runShards(sharedWork: Shards): Promise<void> {
    try {
      await Promise.all([sharedWork.run(signal), run()])
    } catch (err) {
      if (signal.aborted) return
      log.error('The manager stops', { err })
      ended.reject(err)
      end()
    }
  }
  /** Acquires the Lease and leads until the Lease is lost, the manager stops or an error occurs. */
  async function lead(election: LeaderElection): Promise<void> {
    try {
      await election.acquire(signal)
      events.of(election.identity).event(election.lease!, 'Normal', 'LeaderElection', `${election.identity} became leader`)
      const lost = election.keep(signal)
      // Awaited below; this handler covers a failure of `prepare` before that.
      lost.catch(() => {})
      await Promise.race([prepare(election), lost])
      if (election.leads) await Promise.race([run(), lost])
      throw new Error(`Leader election lost: ${await lost}`)
    } catch (err) {
      if (signal.aborted) return
      election.resign()
      log.error('The manager stops', { err })
      ended.reject(err)
      end()
    }
  }

  return {
    cache: informers,
    metrics,
    ended: ended.promise,
    get started() {
      return started
    },
    get leads() {
      return election?.leads ?? shards?.holds(0) ?? started
    },
    holds(key) {
      return shards ? shards.holds(shards.shardOf(key)) : this.leads
    },
    get idle() {
      return loops.every((loop) => loop.idle)
    },
    async start() {
      // Controllers with the same name would share metrics and log names.
      const names = new Set<string>()
      for (const { controller } of loops) {
        if (names.has(controller.name)) throw new Error(`Cannot start: two controllers are named ${controller.name}`)
        names.add(controller.name)
      }
      synced = Promise.all(loops.map((loop) => loop.subscribe())).then(() => undefined)
      if (election) leading = lead(election)
      if (shards) leading = runShards(shards)
      await synced
      if (signal.aborted) return
      started = true
      if (!leaderElection) await run()
    },
    async stop() {
      election?.resign()
      end()
      await informers.waitUntilStopped()
      await events.waitUntilSent()
      await leading
      // While a write is in progress, the Lease is not released, so that no other candidate starts to write. The Lease then expires.
      if (election && fenced && (await within(fenced.waitUntilIdle(), WritesTimeout, clock)) === 'done') await election.release()
      ended.resolve()
    },
    waiting: () => loops.flatMap((loop) => [...loop.waiting].map(([key, reason]) => `${loop.controller.name} ${key}: ${reason}`)),
    informers: () => informers.all(),
  }
}
