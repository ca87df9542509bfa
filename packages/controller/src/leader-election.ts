/**
 * Leader election by a Lease. Upstream: tools/leaderelection of client-go, v0.36. Differences: the deadline of a holder begins when its
 * last successful renewal was sent, not after the response; a holder that reads another identity in the Lease stops at once. Periods and
 * deadlines are measured by `Clock.elapsed`, on which a change of the system time has no effect.
 */
import {
  type Client,
  type Clock,
  equal,
  isReason,
  Lease,
  type Logger,
  orAbsent,
  type Random,
  seconds,
  sleep,
  type Timer,
} from '@capstan/kube'
import type { EventRecorders } from './events.ts'
import type { Fence } from './fence.ts'
import {
  checkLeaseTerms,
  defaultLeaseTerms,
  holderOf,
  nextLeaseStep,
  type LeaseTerms,
  releasedLease,
  RetryJitter,
} from './lease.ts'
import { within } from './own-writes.ts'
import { unlessAborted, withTimeout } from './unless-aborted.ts'

export interface LeaderElectionOptions {
  /** Namespace of the Lease. */
  readonly namespace: string
  readonly name: string
  /** Unique to each process ever started. */
  readonly identity: string
  /** Default: `defaultLeaseTerms`. */
  readonly terms?: LeaseTerms
  /** Returns whether a Lease that is free, has expired or does not exist (`undefined`) may be acquired. Default: always true. */
  mayAcquire?(lease: Lease | undefined): boolean
  /** Annotations to set on the Lease when it is acquired; `undefined` removes an annotation. */
  readonly annotations?: Readonly<Record<string, string | undefined>>
}

interface Dependencies {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/**
 * Result of an attempt: this candidate holds the Lease; another candidate holds it, or this candidate may not acquire it; or the request
 * has failed.
 */
type Attempt = 'held' | 'heldByOther' | 'failed'

/**
 * Maximum time for which a stopping leader sends Events. Shorter than the time in which an interrupted `capstan` command must stop, so
 * that the Lease is still released.
 */
const EventsTimeout = seconds(1)

/** Maximum time for which a stopping leader then waits for writes in progress. */
const WritesTimeout = seconds(5)

/** A candidate for one Lease: acquires, renews and releases it. */
export class LeaderElection {
  readonly identity: string
  readonly #key: { readonly namespace: string; readonly name: string }
  readonly #terms: LeaseTerms
  readonly #dependencies: Dependencies
  readonly #options: LeaderElectionOptions
  /** The Lease as last read or written. */
  #lease: Lease | undefined
  #before: Lease | undefined
  #hasExpired = false
  #expiryTimer: Timer | undefined
  /** Time, by `Clock.elapsed`, at which leadership ends unless it is renewed. */
  #until = Number.NEGATIVE_INFINITY
  #hasResigned = false
  /** Time, by `Clock.elapsed`, at which the last attempt began. */
  #sent = 0
  #loggedHolder = ''

  /** @throws Error for invalid terms (see `checkLeaseTerms`) */
  constructor(options: LeaderElectionOptions, dependencies: Dependencies) {
    const { namespace, name, identity, terms = defaultLeaseTerms } = options
    checkLeaseTerms(terms)
    this.#options = options
    this.identity = identity
    this.#key = { namespace, name }
    this.#terms = terms
    this.#dependencies = dependencies
  }

  /** Whether this candidate leads now. Also correct when timers fire late, as after the process was suspended. */
  get leads(): boolean {
    return !this.#hasResigned && this.#dependencies.clock.elapsed() < this.#until
  }

  /** The Lease as last read or written. */
  get lease(): Lease | undefined {
    return this.#lease
  }

  /** The Lease as it was before this candidate acquired it; `undefined` when the Lease did not exist or was not acquired yet. */
  get before(): Lease | undefined {
    return this.#before
  }

  /**
   * Identity of the process that holds the Lease, as far as is known. Empty when the Lease is free or has expired, and when it names this
   * candidate although this candidate does not lead.
   */
  get holder(): string {
    if (this.leads) return this.identity
    const holder = this.#lease && !this.#hasExpired ? holderOf(this.#lease) : ''
    return holder === this.identity ? '' : holder
  }

  /** Resolves when this candidate becomes the leader. Rejects when `signal` aborts. */
  async acquire(signal: AbortSignal): Promise<void> {
    const { clock, random, log } = this.#dependencies
    const { retryPeriod } = this.#terms
    log.info('Attempting to acquire leader lease', { lease: this.#text })
    while ((await this.#attempt(signal)) !== 'held') {
      signal.throwIfAborted()
      await sleep(clock, retryPeriod * (1 + RetryJitter * random.next()), signal)
    }
    log.info('Successfully acquired leader lease', { lease: this.#text, identity: this.identity })
  }

  /**
   * Renews the Lease until leadership is lost, and resolves with the reason of the loss: no renewal has succeeded before the deadline,
   * another candidate holds the Lease, or the Lease was deleted or released and may not be acquired again. Rejects when `signal` aborts.
   */
  async keep(signal: AbortSignal): Promise<string> {
    const { clock } = this.#dependencies
    const over = new AbortController()
    const lost = Promise.withResolvers<string>()
    const missed = () => lost.resolve(`the lease could not be renewed for ${this.#terms.renewDeadline / 1000}s`)
    let deadline = clock.schedule(this.#remaining(this.#sent, this.#terms.renewDeadline), missed)
    const renew = async (stop: AbortSignal): Promise<void> => {
      for (;;) {
        // The period begins with the last attempt, so that the time until its response does not lengthen the period.
        await sleep(clock, this.#remaining(this.#sent, this.#terms.retryPeriod), stop)
        const attempt = await this.#attempt(stop)
        if (stop.aborted) return
        if (attempt === 'heldByOther') {
          const holder = this.#lease && holderOf(this.#lease)
          return lost.resolve(holder ? `${holder} holds the lease` : 'the lease was deleted or released')
        }
        if (attempt === 'failed') continue
        deadline.cancel()
        deadline = clock.schedule(this.#remaining(this.#sent, this.#terms.renewDeadline), missed)
      }
    }
    renew(AbortSignal.any([signal, over.signal])).catch(() => {})
    try {
      return await unlessAborted(lost.promise, signal)
    } finally {
      over.abort()
      deadline.cancel()
    }
  }

  /** Ends leadership permanently: later responses do not restore it. */
  resign(): void {
    this.#hasResigned = true
    this.#expiryTimer?.cancel()
  }

  /**
   * Ends leadership, and releases the Lease, so that another candidate can acquire it at once. Call this method after the last write. When
   * the request fails, other candidates wait until the Lease expires.
   */
  async release(): Promise<void> {
    const { client, clock, log } = this.#dependencies
    this.resign()
    const lease = this.#lease
    if (!lease || holderOf(lease) !== this.identity) return
    try {
      await this.#withLimit((signal) => client.update(Lease, releasedLease(lease, clock.now()), { signal }))
      log.info('Released leader lease', { lease: this.#text })
    } catch (err) {
      log.warn('Cannot release leader lease', { lease: this.#text, err })
    }
  }

  /**
   * Ends leadership when all recorded Events are sent, or after `EventsTimeout`, and releases the Lease once no write is in progress. Events
   * that cannot be sent in time are dropped. If writes take too long, the Lease is not released but expires, so that no other candidate writes
   * at the same time.
   * Before the call, the caller must prevent all new writes except those of Events.
   */
  async releaseAfterWrites(events: EventRecorders | undefined, fences: readonly Fence[]): Promise<void> {
    const { clock } = this.#dependencies
    if (events) await within(events.waitUntilSent(), EventsTimeout, clock)
    this.resign()
    const idle = Promise.all(fences.map((writes) => writes.waitUntilIdle())).then(() => undefined)
    if ((await within(idle, WritesTimeout, clock)) === 'done') await this.release()
  }

  async #attempt(signal: AbortSignal): Promise<Attempt> {
    const { clock, log } = this.#dependencies
    const sent = clock.elapsed()
    this.#sent = sent
    try {
      const isHeld = await this.#withLimit((limit) => this.#write(limit, this.leads), signal)
      if (!isHeld) {
        this.#until = Number.NEGATIVE_INFINITY
        return 'heldByOther'
      }
      this.#until = sent + this.#terms.renewDeadline
      return 'held'
    } catch (err) {
      if (!signal.aborted) log.warn('Cannot acquire or renew leader lease', { lease: this.#text, err })
      return 'failed'
    }
  }

  /**
   * Creates, acquires or renews the Lease. Returns whether this candidate holds it.
   * @param isCurrent whether the Lease is assumed to be as last written, so that one request suffices
   */
  async #write(signal: AbortSignal, isCurrent: boolean): Promise<boolean> {
    const { client, clock } = this.#dependencies
    if (!isCurrent) this.#observe(await orAbsent(client.get(Lease, this.#key, { signal })))
    const candidate = { identity: this.identity, terms: this.#terms, now: clock.now(), hasExpired: this.#hasExpired }
    const step = nextLeaseStep(this.#lease, candidate)
    const currentLease = this.#lease
    const isAcquisition = step.kind !== 'wait' && (currentLease === undefined || holderOf(currentLease) !== this.identity)
    if (isAcquisition && this.#options.mayAcquire?.(currentLease) === false) return false
    switch (step.kind) {
      case 'wait':
        this.#logHolder(step.holder)
        return false
      case 'create':
        this.#observe(await client.create(Lease, { metadata: this.#withAnnotations(this.#key), spec: step.spec }, { signal }))
        this.#before = undefined
        return true
      case 'update':
        try {
          const { lease } = step
          const updated = isAcquisition ? { ...lease, metadata: this.#withAnnotations(lease.metadata) } : lease
          this.#observe(await client.update(Lease, updated, { signal }))
          if (isAcquisition) this.#before = currentLease
          return true
        } catch (err) {
          if (isCurrent && isReason(err, 'Conflict', 'NotFound')) return this.#write(signal, false)
          throw err
        }
    }
  }

  /** Returns the metadata with the annotations to set on acquisition. */
  #withAnnotations<T extends object>(metadata: T & { readonly annotations?: Record<string, string> }): T {
    const annotations = { ...metadata.annotations }
    for (const [name, value] of Object.entries(this.#options.annotations ?? {})) {
      if (value === undefined) delete annotations[name]
      else annotations[name] = value
    }
    return Object.keys(annotations).length === 0 && !metadata.annotations ? metadata : { ...metadata, annotations }
  }

  /**
   * Records the Lease as read or written. A Lease of another candidate expires when its spec stays unchanged for its duration; its
   * timestamps are not compared with the local clock.
   */
  #observe(lease: Lease | undefined): void {
    const previous = this.#lease
    this.#lease = lease
    if (previous && equal(previous.spec, lease?.spec)) return
    this.#expiryTimer?.cancel()
    this.#hasExpired = false
    if (!lease || holderOf(lease) === this.identity) return
    this.#expiryTimer = this.#dependencies.clock.schedule((lease.spec?.leaseDurationSeconds ?? 0) * 1000, () => {
      this.#hasExpired = true
    })
  }

  #logHolder(holder: string): void {
    if (holder === this.#loggedHolder) return
    this.#loggedHolder = holder
    this.#dependencies.log.info('Another candidate holds the leader lease', { lease: this.#text, holder })
  }

  /** Limits the time of an attempt, with all its requests, so that another attempt fits before the deadline. */
  #withLimit<T>(work: (limit: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T> {
    return withTimeout(this.#dependencies.clock, this.#terms.renewDeadline / 2, work, signal)
  }

  /** Returns the remaining time of a period that began at `since`. */
  #remaining(since: number, period: number): number {
    return Math.max(0, since + period - this.#dependencies.clock.elapsed())
  }

  get #text(): string {
    return `${this.#key.namespace}/${this.#key.name}`
  }
}
