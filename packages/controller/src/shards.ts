/**
 * Divides the work among manager processes: each namespace belongs to one of a fixed number of shards, and each shard has a Lease. A
 * process reconciles the objects of the shards whose Leases it holds; cluster-scoped objects belong to shard 0.
 *
 * - The Lease of shard 0 has the same name as the Lease of a manager without shards. When a manager without shards acquires this Lease, it
 *   waits until the Leases of all other shards are free or have expired. Therefore it never reconciles at the same time as a group of
 *   managers with shards.
 * - A process that holds at least two shards fewer than another process requests a shard by an annotation on the Lease of that shard. The
 *   holder ends its reconciles and its writes of the shard, and releases the Lease.
 * - A new holder lists the existing objects, and starts reconciles once its cache contains them.
 *
 * See docs/adr/0047.
 */
import {
  type Client,
  type Clock,
  createClient,
  Lease,
  type Logger,
  type ObjectKey,
  orAbsent,
  type Random,
  seconds,
  sleep,
} from '@capstan/kube'
import type { EventRecorder } from './controller.ts'
import { createEventRecorders, type EventRecorders } from './events.ts'
import { type Fence, fence } from './fence.ts'
import { LeaderElection, type LeaderElectionOptions } from './leader-election.ts'
import { defaultLeaseTerms, holderOf, RetryJitter } from './lease.ts'
import { withTimeout } from './unless-aborted.ts'

/**
 * Annotation on the Lease of shard 0: its holder and the number of shards, as `holder/count`. A manager without shards removes it when it
 * acquires the Lease.
 */
export const ShardsAnnotation = 'capstan.dev/shards'
/** Annotation on the Lease of a shard: the process that requests the shard from its holder. */
export const WantedAnnotation = 'capstan.dev/shard-wanted-by'

/**
 * Returns the shard of an object by its namespace; 0 for a cluster-scoped object. The hash is FNV-1a over UTF-16 code units, which is the
 * same in all processes and releases.
 */
export function shardOf({ namespace }: Pick<ObjectKey, 'namespace'>, count: number): number {
  if (namespace === undefined) return 0
  let hash = 0x811c9dc5
  for (let i = 0; i < namespace.length; i++) hash = Math.imul(hash ^ namespace.charCodeAt(i), 0x01000193) >>> 0
  return hash % count
}

/** Returns the name of the Lease of a shard. */
export const shardLease = (name: string, shard: number, count: number): string =>
  shard === 0 ? name : `${name}-shard-${shard}-of-${count}`

/**
 * Returns the number of shards that the current holder wrote into the Lease of shard 0; `undefined` when the Lease does not exist or is
 * free, or its holder is a manager without shards.
 */
export function shardsIn(lease: Lease | undefined): number | undefined {
  const text = lease?.metadata.annotations?.[ShardsAnnotation] ?? ''
  const separator = text.lastIndexOf('/')
  if (!lease || separator < 0 || holderOf(lease) === '' || text.slice(0, separator) !== holderOf(lease)) return undefined
  return Number(text.slice(separator + 1))
}

/** Access to the API server for reconciles of a shard that this process holds. */
export interface ShardAccess {
  /** Rejects writes once the shard is released or lost. */
  readonly client: Client
  /** Aborts when the shard is released or lost. */
  readonly signal: AbortSignal
  events(component: string): EventRecorder
}

/** Determines the objects that this process reconciles. */
export interface Partition {
  /** Returns the access for reconciles of the object; `undefined` when another process, or no process, reconciles it. */
  accessFor(key: ObjectKey): ShardAccess | undefined
  shardOf(key: ObjectKey): number
}

export interface ShardsOptions {
  readonly count: number
  /**
   * Options for the Lease of shard 0. The Leases of other shards differ by their name (see `shardLease`) and their annotations.
   */
  readonly election: LeaderElectionOptions
  /** Runs on the holder of shard 0 before its reconciles begin. */
  prepare?(signal: AbortSignal): Promise<void>
  /** Resolves when the cache contains all objects that exist now. */
  waitUntilCurrent(signal: AbortSignal): Promise<void>
  /** Called when this process starts or stops reconciling a shard. */
  onChange(shard: number): void
}

interface Dependencies {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/** A shard whose Lease this process holds. */
interface Held extends ShardAccess {
  readonly recorders: EventRecorders
  readonly fences: readonly Fence[]
  end(): void
}

/** Acquires shards for this process, and balances the number of shards between this process and the others. */
export class Shards implements Partition {
  readonly #options: ShardsOptions
  readonly #dependencies: Dependencies
  readonly #elections: LeaderElection[] = []
  readonly #held = new Map<number, Held>()
  /** By shard, a function that makes this process release the shard. */
  readonly #release = new Map<number, () => void>()
  /** By shard, the time since which its free Lease is reserved for the process that requested it. */
  readonly #reservedSince = new Map<number, { readonly version: string; readonly at: number }>()
  readonly #ending = new AbortController()

  constructor(options: ShardsOptions, dependencies: Dependencies) {
    this.#options = options
    this.#dependencies = dependencies
    for (let shard = 0; shard < options.count; shard++) this.#elections.push(this.#newElection(shard))
  }

  shardOf(key: ObjectKey): number {
    return shardOf(key, this.#options.count)
  }

  accessFor(key: ObjectKey): ShardAccess | undefined {
    return this.#held.get(this.shardOf(key))
  }

  holds(shard: number): boolean {
    return this.#held.has(shard) && this.#elections[shard]!.leads
  }

  /** Names of the Leases, in the order of the shards. */
  get leases(): readonly string[] {
    const { count, election } = this.#options
    return this.#elections.map((_, shard) => shardLease(election.name, shard, count))
  }

  /**
   * Acquires and balances shards until `signal` aborts. Rejects when a manager without shards, or with another number of shards, has
   * acquired the Lease of shard 0 while this process holds shards.
   */
  async run(signal: AbortSignal): Promise<void> {
    const ending = AbortSignal.any([signal, this.#ending.signal])
    const failed = Promise.withResolvers<never>()
    failed.promise.catch(() => {})
    const acquisitions = this.#elections.map((_, shard) => this.#acquireAndHold(shard, ending))
    const balancing = this.#keepBalancing(ending).catch(failed.reject)
    try {
      await Promise.race([Promise.all(acquisitions), failed.promise])
    } finally {
      this.#ending.abort()
      await Promise.all([...acquisitions, balancing])
    }
  }

  /** Acquires one shard, holds it until it is lost or released, and repeats this. */
  async #acquireAndHold(shard: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#dependencies
    const { retryPeriod } = this.#options.election.terms ?? defaultLeaseTerms
    while (!signal.aborted) {
      const election = this.#elections[shard]!
      try {
        await election.acquire(signal)
        await this.#hold(shard, election, signal)
      } catch (err) {
        if (signal.aborted) return
        this.#dependencies.log.warn('Cannot acquire or hold a shard', { shard, err })
        await sleep(clock, retryPeriod, signal).catch(() => {})
      }
      this.#elections[shard] = this.#newElection(shard)
    }
  }

  async #hold(shard: number, election: LeaderElection, signal: AbortSignal): Promise<void> {
    const { log } = this.#dependencies
    const over = new AbortController()
    const requested = Promise.withResolvers<string>()
    this.#release.set(shard, () => requested.resolve('another process requested it'))
    const lost = election.keep(AbortSignal.any([signal, over.signal]))
    lost.catch(() => {})
    let held: Held | undefined
    try {
      const ready = this.#prepareShard(shard, election.before, AbortSignal.any([signal, over.signal]))
      ready.catch(() => {})
      const reasonToEnd = await Promise.race([ready.then(() => undefined), lost, requested.promise])
      if (reasonToEnd === undefined) {
        held = this.#open(shard, election)
        this.#held.set(shard, held)
        log.info('Reconciling a shard', { shard, of: this.#options.count })
        this.#options.onChange(shard)
        const reason = await Promise.race([lost, requested.promise])
        log.info('A shard is no longer reconciled', { shard, why: reason })
      }
    } finally {
      this.#release.delete(shard)
      over.abort(new Error('the shard is released or lost'))
      await this.#close(shard, election, held)
    }
  }

  /**
   * For shard 0, waits until managers of a former group with another number of shards hold no Leases, and runs `prepare`. For other shards,
   * verifies that a manager of this group holds the Lease of shard 0. Then waits until the cache contains all writes of the former holder.
   */
  async #prepareShard(shard: number, former: Lease | undefined, signal: AbortSignal): Promise<void> {
    const { election, count, prepare, waitUntilCurrent } = this.#options
    const { client } = this.#dependencies
    if (shard === 0) {
      const shards = shardsBefore(former)
      if (shards !== undefined && shards !== count) await waitForFormerHolders(election, shards, this.#dependencies, signal)
      await prepare?.(signal)
    } else {
      // Read after the Lease of this shard was written. A manager without shards first writes the Lease of shard 0 and then reads the Lease
      // of this shard, so that at least one of the two managers detects the other.
      const first = await orAbsent(this.#within((until) => client.get(Lease, this.#key(0), { signal: until }), signal))
      if (shardsIn(first) !== count) throw new Error(`Lease ${this.#key(0).name} is not held by a manager of ${count} shards`)
    }
    await waitUntilCurrent(signal)
  }

  #open(shard: number, election: LeaderElection): Held {
    const { client, clock, random, log } = this.#dependencies
    const abort = new AbortController()
    const work = fence(client.transport, () => election.leads && !abort.signal.aborted)
    // Events of the last reconciles are sent after these reconciles have ended.
    const forEvents = fence(client.transport, () => election.leads)
    const recorders = createEventRecorders({ client: createClient(forEvents.transport), clock, random, log })
    const recorderByComponent = new Map<string, EventRecorder>()
    return {
      client: createClient(work.transport),
      signal: abort.signal,
      recorders,
      fences: [work, forEvents],
      events(component) {
        const recorder = recorderByComponent.get(component) ?? recorders.of(component)
        recorderByComponent.set(component, recorder)
        return recorder
      },
      end: () => abort.abort(new Error(`Shard ${shard} is released or lost`)),
    }
  }

  /** Ends the reconciles of the shard, and releases its Lease once no write is in progress. If writes take too long, the Lease expires. */
  async #close(shard: number, election: LeaderElection, held: Held | undefined): Promise<void> {
    held?.end()
    this.#held.delete(shard)
    if (held) this.#options.onChange(shard)
    await election.releaseAfterWrites(held?.recorders, held?.fences ?? [])
  }

  #newElection(shard: number): LeaderElection {
    const { election, count } = this.#options
    const options = {
      ...election,
      name: shardLease(election.name, shard, count),
      mayAcquire: (lease: Lease | undefined) => this.#mayAcquire(shard, lease),
      annotations: {
        [WantedAnnotation]: undefined,
        ...(shard === 0 ? { [ShardsAnnotation]: `${election.identity}/${count}` } : {}),
      },
    }
    return new LeaderElection(options, this.#dependencies)
  }

  /** Whether this process may acquire the Lease, which is free, has expired or does not exist. */
  #mayAcquire(shard: number, lease: Lease | undefined): boolean {
    const { count, election } = this.#options
    const first = this.#elections[0]!
    // The Lease of shard 0 is free or has expired, or its holder has no shards or another number of shards.
    if (shard !== 0 && (shardsIn(first.lease) !== count || first.holder === '')) return false
    const shares = this.#shardCounts()
    // This process has its even share of the shards already.
    if (shares.get(election.identity)! >= Math.ceil(count / shares.size)) return false
    return !this.#isReservedForAnother(shard, lease, election.identity)
  }

  /** Whether the Lease is reserved for another process that requested the shard. A reservation lasts for one lease duration. */
  #isReservedForAnother(shard: number, lease: Lease | undefined, ownIdentity: string): boolean {
    const requester = requesterOf(lease)
    if (lease === undefined || requester === undefined || requester === ownIdentity) return false
    const now = this.#dependencies.clock.elapsed()
    const version = lease.metadata.resourceVersion
    const reservation = this.#reservedSince.get(shard)
    const since = reservation?.version === version ? reservation.at : now
    this.#reservedSince.set(shard, { version, at: since })
    return now - since < (this.#options.election.terms ?? defaultLeaseTerms).leaseDuration
  }

  /** Returns the number of shards of each known process, including this process, by the Leases as last read. */
  #shardCounts(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>([[this.#options.election.identity, 0]])
    for (const { holder } of this.#elections) if (holder !== '') counts.set(holder, (counts.get(holder) ?? 0) + 1)
    return counts
  }

  async #keepBalancing(signal: AbortSignal): Promise<void> {
    const { retryPeriod } = this.#options.election.terms ?? defaultLeaseTerms
    while (!signal.aborted) {
      await sleep(this.#dependencies.clock, retryPeriod * (1 + RetryJitter * this.#dependencies.random.next()), signal).catch(
        () => {},
      )
      if (signal.aborted) return
      this.#checkOtherManagers()
      this.#releaseRequestedShards()
      await this.#requestShard(signal).catch((err: unknown) => this.#dependencies.log.debug('Cannot request a shard', { err }))
    }
  }

  /**
   * Throws an Error when this process holds shards, and a manager without shards, or with another number of shards, has acquired the Lease
   * of shard 0.
   */
  #checkOtherManagers(): void {
    const { holder, lease } = this.#elections[0]!
    if (this.#held.size === 0 || holder === '' || shardsIn(lease) === this.#options.count) return
    throw new Error(`${holder} holds Lease ${this.#key(0).name} and does not share the work of ${this.#options.count} shards`)
  }

  /** Releases shards for processes that requested them and hold at least two shards fewer. */
  #releaseRequestedShards(): void {
    const ownIdentity = this.#options.election.identity
    const shares = new Map(this.#shardCounts())
    for (const [shard, release] of this.#release) {
      const requester = requesterOf(this.#elections[shard]!.lease)
      if (requester === undefined || requester === ownIdentity) continue
      const [ownCount, requesterCount] = [shares.get(ownIdentity)!, shares.get(requester) ?? 0]
      if (ownCount - requesterCount < 2) continue
      shares.set(ownIdentity, ownCount - 1).set(requester, requesterCount + 1)
      release()
    }
  }

  /**
   * Requests a shard that is not requested yet from the process with the most shards, if that process holds at least two shards more than
   * the number that this process holds or has requested.
   */
  async #requestShard(signal: AbortSignal): Promise<void> {
    const ownIdentity = this.#options.election.identity
    const shares = this.#shardCounts()
    const requested = this.#elections.filter(
      ({ holder, lease }) => holder !== ownIdentity && requesterOf(lease) === ownIdentity,
    ).length
    const [target] = this.#elections
      .map((election, shard) => ({ shard, holder: election.holder, isRequested: requesterOf(election.lease) !== undefined }))
      .filter(({ holder, isRequested }) => holder !== '' && holder !== ownIdentity && !isRequested)
      .filter(({ holder }) => shares.get(holder)! - (shares.get(ownIdentity)! + requested) >= 2)
      .sort((a, b) => shares.get(b.holder)! - shares.get(a.holder)! || b.shard - a.shard)
    if (!target) return
    const { client } = this.#dependencies
    const lease = await this.#within((until) => client.get(Lease, this.#key(target.shard), { signal: until }), signal)
    if (holderOf(lease) !== target.holder || requesterOf(lease) !== undefined) return
    const annotations = { ...lease.metadata.annotations, [WantedAnnotation]: ownIdentity }
    const requesting = { ...lease, metadata: { ...lease.metadata, annotations } }
    await this.#within((until) => client.update(Lease, requesting, { signal: until }), signal)
  }

  /** Runs a request with the same time limit as a request of leader election. */
  #within<T>(work: (until: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    const { renewDeadline } = this.#options.election.terms ?? defaultLeaseTerms
    return withTimeout(this.#dependencies.clock, renewDeadline / 2, work, signal)
  }

  #key(shard: number): { readonly namespace: string; readonly name: string } {
    const { election, count } = this.#options
    return { namespace: election.namespace, name: shardLease(election.name, shard, count) }
  }
}

const requesterOf = (lease: Lease | undefined): string | undefined => lease?.metadata.annotations?.[WantedAnnotation]

/**
 * Returns the number of shards in the annotation of the Lease of shard 0, which remains when the holder releases the Lease; `undefined`
 * without this annotation, for example because the last holder was a manager without shards.
 */
export function shardsBefore(lease: Lease | undefined): number | undefined {
  const text = lease?.metadata.annotations?.[ShardsAnnotation]
  return text === undefined ? undefined : Number(text.slice(text.lastIndexOf('/') + 1))
}

/**
 * Waits for the managers of a former group, which had `count` shards. Resolves when each Lease of its shards 1 to `count - 1` does not
 * exist, is free, was not renewed for its duration, or is held by this process.
 */
export async function waitForFormerHolders(
  { namespace, name, identity, terms }: LeaderElectionOptions,
  count: number,
  dependencies: Dependencies,
  signal: AbortSignal,
): Promise<void> {
  const { client, clock, log } = dependencies
  const { retryPeriod, renewDeadline } = terms ?? defaultLeaseTerms
  const observed = new Map<string, { readonly version: string; readonly at: number }>()
  for (let shard = 1; shard < count; ) {
    const key = { namespace, name: shardLease(name, shard, count) }
    const request = withTimeout(clock, renewDeadline / 2, (until) => client.get(Lease, key, { signal: until }), signal)
    const lease = await orAbsent(request)
    const version = lease?.metadata.resourceVersion ?? ''
    const previous = observed.get(key.name)
    if (previous?.version !== version) observed.set(key.name, { version, at: clock.elapsed() })
    const isOver =
      previous?.version === version && clock.elapsed() - previous.at >= seconds(lease?.spec?.leaseDurationSeconds ?? 0)
    if (!lease || ['', identity].includes(holderOf(lease)) || isOver) {
      shard++
      continue
    }
    log.info('Waiting for a manager of a former group with shards', { lease: key.name, holder: holderOf(lease) })
    await sleep(clock, retryPeriod, signal)
  }
}
