/** Leader election of a manager: by one Lease, or with shards by one Lease for each shard (`shards.ts`). */
import type { Client, Clock, Logger, ObjectKey, Random } from '@capstan/kube'
import { createClient } from '@capstan/kube'
import type { EventRecorders } from './events.ts'
import { type Fence, fence } from './fence.ts'
import { LeaderElection, type LeaderElectionOptions } from './leader-election.ts'
import { type Partition, Shards, ShardsAnnotation, shardsBefore, waitForFormerHolders } from './shards.ts'

export interface LeadershipOptions extends LeaderElectionOptions {
  /**
   * Work that only the leader may do before its reconciles begin, such as installing CRDs. With shards, the holder of shard 0 does this
   * work.
   */
  prepare?(signal: AbortSignal): Promise<void>
  /**
   * Number of shards among which namespaces are divided, the same in every process. Managers then share the work: each reconciles the
   * objects of the shards whose Leases it holds, and waits to acquire the other Leases. If absent, one manager leads and reconciles
   * all objects.
   */
  readonly shards?: number
}

interface Dependencies {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/** Work of a manager while it leads. */
export interface Term {
  /** Starts the reconciles. */
  start(): Promise<void>
  readonly events: EventRecorders
  /** Aborts when the manager stops. */
  readonly signal: AbortSignal
}

/** Determines which objects this process reconciles, and when. */
export interface Leadership {
  /**
   * Client of reconciles. Rejects writes while this process does not lead. With shards it rejects all writes: reconciles write through the
   * client of their shard.
   */
  readonly client: Client
  /**
   * Client of Events. Rejects writes while this process does not lead, but accepts them after `endReconciles`, until leadership ends. With
   * shards it rejects all writes: Events are written through a client of their shard.
   */
  readonly eventClient: Client
  /** Determines the objects that this process reconciles. If absent, it reconciles all objects. */
  readonly partition?: Partition
  /** Whether this process holds the Lease, and `endReconciles` was not called; with shards, whether it reconciles shard 0. */
  readonly leads: boolean
  /**
   * Names of the Leases, each with whether this process holds it. Without shards, `false` after `endReconciles`; with shards, `false` until
   * this process reconciles the shard.
   */
  readonly leases: readonly (readonly [name: string, isHeld: boolean])[]
  /** Whether this process reconciles the object. */
  holds(key: ObjectKey): boolean
  /**
   * Acquires leadership and runs the term. Settles when the manager stops. Rejects earlier when the term failed or leadership was lost. The
   * loss of a single shard is no error: the process tries to acquire the shard again.
   */
  run(term: Term): Promise<void>
  /** Rejects writes of reconciles from now on. Events can still be sent, and the Lease is not released. Does nothing with shards. */
  endReconciles(): void
  /**
   * After `run` has ended: sends Events for a limited time, ends leadership, and releases the Lease unless writes in progress take too long.
   * Does nothing with shards.
   */
  release(events: EventRecorders): Promise<void>
}

/** Leadership of one manager, which reconciles all objects while it holds the Lease. */
export class SingleLeader implements Leadership {
  readonly client: Client
  readonly eventClient: Client
  readonly #election: LeaderElection
  readonly #fences: readonly Fence[]
  readonly #options: LeadershipOptions
  readonly #dependencies: Dependencies
  #mayReconcile = true

  constructor(options: LeadershipOptions, dependencies: Dependencies) {
    this.#options = options
    this.#dependencies = dependencies
    this.#election = new LeaderElection({ ...options, annotations: { [ShardsAnnotation]: undefined } }, dependencies)
    const { transport } = dependencies.client
    const ofReconciles = fence(transport, () => this.leads)
    const ofEvents = fence(transport, () => this.#election.leads)
    this.#fences = [ofReconciles, ofEvents]
    this.client = createClient(ofReconciles.transport)
    this.eventClient = createClient(ofEvents.transport)
  }

  get leads(): boolean {
    return this.#mayReconcile && this.#election.leads
  }

  get leases(): Leadership['leases'] {
    return [[this.#options.name, this.leads]]
  }

  holds(): boolean {
    return this.leads
  }

  async run({ start, events, signal }: Term): Promise<void> {
    const election = this.#election
    try {
      await election.acquire(signal)
      events.of(election.identity).event(election.lease!, 'Normal', 'LeaderElection', `${election.identity} became leader`)
      const lost = election.keep(signal)
      await Promise.race([this.#prepare(signal), lost])
      if (election.leads) await Promise.race([start(), lost])
      throw new Error(`Leader election lost: ${await lost}`)
    } catch (err) {
      if (!signal.aborted) election.resign()
      throw err
    }
  }

  /**
   * If managers with shards led before, waits until the Leases of their shards are free or have expired. Then runs the `prepare` option.
   */
  async #prepare(signal: AbortSignal): Promise<void> {
    const formerCount = shardsBefore(this.#election.before)
    if (formerCount !== undefined) await waitForFormerHolders(this.#options, formerCount, this.#dependencies, signal)
    await this.#options.prepare?.(signal)
  }

  endReconciles(): void {
    this.#mayReconcile = false
  }

  release(events: EventRecorders): Promise<void> {
    return this.#election.releaseAfterWrites(events, this.#fences)
  }
}

/** Leadership that several managers share. Each reconciles the objects of the shards whose Leases it holds. */
export class SharedLeadership implements Leadership {
  readonly client: Client
  readonly eventClient: Client
  readonly partition: Shards

  constructor(shards: Shards, client: Client) {
    this.partition = shards
    this.client = createClient(fence(client.transport, () => false).transport)
    this.eventClient = this.client
  }

  get leads(): boolean {
    return this.partition.holds(0)
  }

  get leases(): Leadership['leases'] {
    return this.partition.leases.map((name, shard) => [name, this.partition.holds(shard)])
  }

  holds(key: ObjectKey): boolean {
    return this.partition.holds(this.partition.shardOf(key))
  }

  async run({ start, signal }: Term): Promise<void> {
    await Promise.all([this.partition.run(signal), start()])
  }

  /** Does nothing: `run` releases the shards when the signal of the term aborts. */
  endReconciles(): void {}

  /** Does nothing: `run` has released the shards. */
  async release(): Promise<void> {}
}
