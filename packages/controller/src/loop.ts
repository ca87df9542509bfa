/** Runs one controller: maps events to keys, reconciles keys, and passes outcomes to the queue. */
import type { Client, Clock, Kind, KubeObject, Logger, ObjectKey, Random, Timer } from '@capstan/kube'
import { keyText, messageOf, parseKey, randomUUID, resourceName } from '@capstan/kube'
import type { Informers } from './cache.ts'
import type { Controller, EventRecorder, MapFunction, Predicate, ReconcileContext } from './controller.ts'
import type { InformerEvent } from './informer.ts'
import type { ControllerMetrics, LoopState } from './metrics.ts'
import type { Outcome } from './outcome.ts'
import type { Partition } from './shards.ts'
import { proceed } from './outcome.ts'
import { onlyConflicts } from './only-conflicts.ts'
import { orLogged } from './or-logged.ts'
import { recordWrites, within } from './own-writes.ts'
import { Queue } from './queue.ts'
import { unlessAborted } from './unless-aborted.ts'
import type { WriteTimes } from './write-times.ts'

export interface LoopOptions {
  readonly client: Client
  readonly informers: Informers
  readonly clock: Clock
  /** Source of randomness in reconciles, for example for object names, and for the sync period. */
  readonly random: Random
  /** Source of reconcile ids in logs. */
  readonly ids: Random
  readonly log: Logger
  readonly events: EventRecorder
  readonly metrics: ControllerMetrics
  readonly signal: AbortSignal
  /**
   * Returns whether the controller accepts an object, as upstream's WithEventFilter. Applied to the objects of the kinds in the declaration. A
   * watch with `filter: 'none'` does not apply it. A watch with `filter: 'keys'`, and the watch of a kind at run time, apply it only to the
   * objects that are to be reconciled.
   */
  readonly eventFilter?: (object: KubeObject) => boolean
  /** Milliseconds between reconciles of all objects. If absent, objects are not reconciled periodically. */
  readonly syncPeriod?: number
  /** Durations of writes, shared by all controllers of the process. */
  readonly times: WriteTimes
  /** Determines the objects that this process reconciles; all if absent. */
  readonly partition?: Partition
}

/** Default number of concurrent reconciles of one controller. */
const DefaultConcurrency = 10
/** Time limit of one reconcile in milliseconds, as in upstream's core. */
const ReconcileTimeout = 60_000
/**
 * Maximum number of concurrent reconciles that occupy no worker (`withoutWorker` in ReconcileContext). Further reconciles keep their
 * worker, so that memory stays bounded.
 */
const MaxWithoutWorker = 1000
/** Maximum time in milliseconds for which a key waits until the cache contains its own writes. */
const OwnWritesTimeout = 10_000

export class Loop {
  readonly controller: Controller
  readonly #options: LoopOptions
  readonly #queue: Queue<ObjectChange>
  readonly #log: Logger
  readonly #watched = new Map<string, Promise<void>>()
  /** By key, the time by `Clock.elapsed` until which a write may be postponed. */
  readonly #postponed = new Map<string, number>()
  #heldKeys = 0
  /** Number of reconciles in progress that occupy no worker. */
  #withoutWorker = 0
  /** Functions that resume the reconciles whose work without a worker is complete, in the order of completion. */
  readonly #returning: (() => void)[] = []
  #isScheduled = false
  #resync: Timer | undefined
  #started = false
  /** By key, the reason to wait or the error text of its last reconcile. */
  readonly #waiting = new Map<string, string>()

  constructor(controller: Controller, options: LoopOptions) {
    this.controller = controller
    this.#options = options
    this.#log = options.log.child({ controller: controller.name })
    this.#queue = new Queue(options.clock, {
      ...(controller.limit && { ...controller.limit, changeCost: 1 }),
      onReady: () => this.#scheduleReconciles(),
      metrics: options.metrics.queue(controller.name),
    })
    const stop = () => {
      this.#queue.close()
      this.#resync?.cancel()
    }
    options.signal.addEventListener('abort', stop, { once: true })
  }

  /**
   * True before `run`, and when no reconcile runs or is ready to run and no key waits for its own writes. Only `run`, time or an event then
   * causes work.
   */
  get idle(): boolean {
    return !this.#started || (this.#queue.depth === 0 && this.#queue.running === 0 && this.#heldKeys === 0)
  }

  /** State of the controller, for metrics. */
  get state(): LoopState {
    const { name, concurrency = DefaultConcurrency } = this.controller
    const { running, depths } = this.#queue
    return { name, concurrency, activeWorkers: running - this.#withoutWorker, depth: depths, waiting: this.#waiting.size }
  }

  /** Keys whose last reconcile failed or returned a reason to wait, with the error text or the reason. */
  get waiting(): ReadonlyMap<string, string> {
    return this.#waiting
  }

  /** Subscribes to all kinds of the declaration, and waits for the first list of each. Reconciles start with `run`. */
  async subscribe(): Promise<void> {
    const { controller } = this
    const filtered = (when?: Predicate) => allOf(this.#options.eventFilter, when)
    const synced: Promise<void>[] = []
    synced.push(this.#follow(controller.for, ({ metadata }) => [keyOfMeta(metadata)], filtered(controller.when)))
    for (const kind of controller.owns ?? []) synced.push(this.#follow(kind, controllerOfKind(controller.for), filtered()))
    for (const { kind, map, when, filter = 'objects' } of controller.watches ?? []) {
      const mapping = filter === 'keys' ? this.#withEventFilter(map) : map
      synced.push(this.#follow(kind, mapping, filter === 'objects' ? filtered(when) : when))
    }
    await Promise.all(synced)
  }

  run(): void {
    this.#started = true
    const { informers: cache, signal, eventFilter } = this.#options
    const accepts = (object: KubeObject) => !eventFilter || eventFilter(object)
    const context = { cache, signal, log: this.#log, accepts }
    for (const source of this.controller.sources ?? []) source.start((key) => this.#add(key), context)
    this.#resyncLater()
    this.#scheduleReconciles()
  }

  /**
   * Schedules the next reconcile of all objects. As upstream, the sync period varies by a tenth, so that controllers do not reconcile all
   * objects at the same time.
   */
  #resyncLater(): void {
    const { clock, random, signal, informers, eventFilter, syncPeriod } = this.#options
    if (syncPeriod === undefined || signal.aborted) return
    this.#resync = clock.schedule(syncPeriod * (0.9 + random.next() * 0.2), () => {
      for (const object of informers.find(this.controller.for)?.list() ?? [])
        if (!eventFilter || eventFilter(object)) this.#add(keyOfMeta(object.metadata), { lowPriority: true })
      this.#resyncLater()
    })
  }

  /** Enqueues the objects of a shard that this process has acquired, released or lost. */
  enqueueShard(shard: number): void {
    const { informers, partition } = this.#options
    for (const object of informers.find(this.controller.for)?.list() ?? []) {
      const key = keyOfMeta(object.metadata)
      if (partition?.shardOf(key) === shard) this.#add(key)
    }
  }

  /** Enqueues a key if this process reconciles it, or if the controller has `observe`. */
  #add(key: ObjectKey, options?: { lowPriority: boolean; change?: ObjectChange; mayWait?: boolean }): void {
    const { partition } = this.#options
    if (!partition || this.controller.observe || partition.accessFor(key)) this.#queue.add(keyText(key), options)
  }

  async #follow(kind: Kind, map: MapFunction, when?: Predicate): Promise<void> {
    const informer = this.#options.informers.start(kind)
    const deliver = (event: InformerEvent) => this.#deliver(kind, event, map, when)
    informer.subscribe(deliver)
    if (informer.isSynced) {
      for (const object of informer.list())
        deliver({ key: keyOfMeta(object.metadata), previous: undefined, object, initial: true })
    }
    await informer.synced
  }

  #deliver(kind: Kind, event: InformerEvent, map: MapFunction, when: Predicate | undefined): void {
    const { previous, object, initial } = event
    const { partition, informers } = this.#options
    const log = this.#log
    const source = { [kind.kind]: keyText(event.key) }
    const isAccepted = !when || orLogged(log, source, () => when({ previous, object }), true)
    if (!isAccepted && !(partition && this.controller.observe)) return
    // When the owner of an object changes, both the old and the new owner are enqueued.
    const keys = new Map<string, ObjectKey>()
    for (const version of [previous, object]) {
      if (version) for (const key of orLogged(log, source, () => map(version, informers), [])) keys.set(keyText(key), key)
    }
    const mayWait = this.controller.aggregates?.includes(kind) && !isDeletion(event)
    for (const key of keys.values()) {
      // `when` applies only to objects that this process reconciles; `observe` gets every change.
      if (isAccepted || !partition?.accessFor(key))
        this.#add(key, { lowPriority: initial, change: { kind, event }, ...(mayWait ? { mayWait } : {}) })
    }
  }

  /**
   * Starts reconciles while keys are ready and workers are free. Deferred by a microtask, so that all keys of one event are queued before
   * the first key is reconciled.
   */
  #scheduleReconciles(): void {
    if (!this.#started || this.#isScheduled) return
    this.#isScheduled = true
    queueMicrotask(() => void this.#startReconciles())
  }

  async #startReconciles(): Promise<void> {
    const { concurrency: workers = DefaultConcurrency } = this.controller
    const hasFreeWorker = () => this.#queue.running - this.#withoutWorker < workers
    while (this.#returning.length > 0 && (hasFreeWorker() || this.#options.signal.aborted)) {
      this.#withoutWorker--
      this.#returning.shift()!()
    }
    while (this.#queue.depth > 0 && hasFreeWorker()) {
      // With an API server in the same process, reconciles could run one after another without yielding to the event loop.
      const pause = this.#options.clock.yieldIfDue?.()
      if (pause) await pause
      else void this.#reconcile(this.#queue.take()!).finally(() => this.#scheduleReconciles())
    }
    this.#isScheduled = false
  }

  async #reconcile(key: string): Promise<void> {
    const { informers, clock, random, ids, metrics, partition, times } = this.#options
    const access = partition?.accessFor(parseKey(key))
    const isElsewhere = partition !== undefined && access === undefined
    if (isElsewhere && !this.controller.observe) {
      this.#waiting.delete(key)
      return this.#queue.done(key, { changed: false, failed: false, held: false })
    }
    const client = access?.client ?? this.#options.client
    const events = access?.events(`${this.controller.name}-controller`) ?? this.#options.events
    const signal = access ? AbortSignal.any([this.#options.signal, access.signal]) : this.#options.signal
    const limit = new AbortController()
    const timer = clock.schedule(ReconcileTimeout, () => {
      metrics.timedOut(this.controller.name)
      limit.abort(new Error(`Reconcile took longer than ${ReconcileTimeout / 1000}s`))
    })
    const writes = recordWrites(client, informers, times)
    const log = this.#log.child({ [this.controller.for.kind]: key, reconcileID: randomUUID(ids) })
    const reconcileSignal = AbortSignal.any([signal, limit.signal])
    const postponedUntil = this.#postponed.get(key)
    this.#postponed.delete(key)
    const context: ReconcileContext = {
      client: writes.client,
      cache: informers,
      clock,
      random,
      log,
      events,
      signal: reconcileSignal,
      withoutWorker: this.#createWithoutWorker(),
      postponeTime: () => {
        const now = clock.elapsed()
        const until = postponedUntil ?? now + times.pause
        if (until <= now) return 0
        this.#postponed.set(key, until)
        return until - now
      },
      watch: (kind, map) => this.#watch(kind, map, reconcileSignal),
    }

    const started = clock.elapsed()
    let outcome: Outcome = proceed()
    let failure: unknown
    try {
      outcome = await this.controller[isElsewhere ? 'observe' : 'reconcile']!(parseKey(key), context)
    } catch (err) {
      failure = err
    }
    timer.cancel()
    if (this.#options.signal.aborted) return
    if (signal.aborted) {
      // The shard was lost or released: its next holder reconciles the key.
      this.#waiting.delete(key)
      return this.#queue.done(key, { changed: false, failed: false, held: false })
    }
    for (const err of writes.rejectedStatus) log.error('Status rejected by the API server', { err })
    this.#report(key, outcome, failure, log)
    const isFinal = failure !== undefined && isTerminal(failure)
    const result = failure ? 'error' : outcome.kind === 'requeue' ? 'requeue_after' : 'success'
    metrics.reconciled(this.controller.name, result, clock.elapsed() - started, isFinal)

    const writesCached = writes.waitUntilCached()
    const failed = failure !== undefined && !isFinal
    // A failed reconcile may have made changes, for example created and deleted an object. The events of these changes must not bypass its
    // backoff: otherwise the reconcile would be repeated at once, without end.
    const ignores = failed ? ({ kind, event }: ObjectChange) => writes.isOwnChange(kind, event) : undefined
    this.#queue.done(key, {
      changed: writes.changed,
      failed,
      held: writesCached !== undefined,
      ...(outcome.kind === 'requeue' ? { after: outcome.after } : {}),
      ignores,
    })
    if (writesCached) await this.#hold(key, writesCached)
  }

  /**
   * Makes the function `withoutWorker` for one reconcile. A reconcile has one worker: while it is released, a concurrent call of the function
   * only runs the given work.
   */
  #createWithoutWorker(): ReconcileContext['withoutWorker'] {
    let hasReleasedWorker = false
    return async (work) => {
      if (hasReleasedWorker || this.#withoutWorker >= MaxWithoutWorker) return work()
      hasReleasedWorker = true
      this.#withoutWorker++
      this.#scheduleReconciles()
      try {
        return await work()
      } finally {
        await new Promise<void>((resolve) => {
          this.#returning.push(resolve)
          this.#scheduleReconciles()
        })
        hasReleasedWorker = false
      }
    }
  }

  /** Keeps the key on hold until the cache contains the writes of its reconcile (`writesCached` resolves), at most for `OwnWritesTimeout`. */
  async #hold(key: string, writesCached: Promise<void>): Promise<void> {
    this.#heldKeys++
    const result = await within(writesCached, OwnWritesTimeout, this.#options.clock, this.#options.signal)
    this.#heldKeys--
    if (result === 'late') this.#log.warn('Own writes have not been seen by the watch', { key, waitedMs: OwnWritesTimeout })
    this.#queue.release(key)
  }

  #report(key: string, outcome: Outcome, failure: unknown, log: Logger): void {
    if (failure === undefined) {
      if (outcome.kind === 'proceed') this.#waiting.delete(key)
      else {
        if (this.#waiting.get(key) !== outcome.reason) log.debug('Waiting', { reason: outcome.reason })
        this.#waiting.set(key, outcome.reason)
      }
      return
    }
    this.#waiting.set(key, messageOf(failure))
    // A conflict is no error for users: the reconcile is retried with the object that the other writer has changed.
    if (onlyConflicts(failure)) log.debug('Conflict, trying again', { err: failure })
    else log.error('Reconciler error', { err: failure })
  }

  /**
   * Wraps `map` so that it returns no keys of objects that the event filter excludes or the cache does not contain. Used for kinds watched
   * at run time, and for declared watches with the filter `keys`: the event filter does not apply to the objects of these kinds, so their
   * events may map to excluded objects. Without an event filter, returns `map` itself.
   */
  #withEventFilter(map: MapFunction): MapFunction {
    const { eventFilter, informers } = this.#options
    if (!eventFilter) return map
    return (object, cache) =>
      map(object, cache).filter((key) => {
        const target = informers.find(this.controller.for)?.get(key)
        return target !== undefined && eventFilter(target)
      })
  }

  /**
   * Watches the kind and waits for its first list. Rejects when the reconcile is aborted, for example at its time limit: the kind may never be
   * served.
   */
  async #watch(kind: Kind, map: MapFunction, signal: AbortSignal): Promise<void> {
    const name = `${resourceName(kind)}/${kind.version}`
    const existing = this.#watched.get(name)
    if (existing && this.#options.informers.find(kind)?.isSynced) return
    const listed = existing ?? this.#follow(kind, this.#withEventFilter(map))
    this.#watched.set(name, listed)
    await unlessAborted(listed, signal)
  }
}

/** A change of an object, to be compared with the writes of a failed reconcile. */
interface ObjectChange {
  readonly kind: Kind
  readonly event: InformerEvent
}

/** Whether the event removes the object, or changes its deletionTimestamp. */
const isDeletion = ({ previous, object }: InformerEvent): boolean =>
  !object || object.metadata.deletionTimestamp !== previous?.metadata.deletionTimestamp

const keyOfMeta = ({ namespace, name }: { namespace?: string; name: string }): ObjectKey =>
  namespace === undefined ? { name } : { namespace, name }

/** Combines the filter with a predicate. As upstream, the filter gets the new object, or the last state of a deleted object. */
const allOf = (filter: LoopOptions['eventFilter'], when: Predicate | undefined): Predicate | undefined =>
  filter ? (change) => filter((change.object ?? change.previous)!) && (!when || when(change)) : when

/** Maps an object to its controller owner, if the owner is of `kind`. */
const controllerOfKind =
  (kind: Kind): MapFunction =>
  ({ metadata }: KubeObject) => {
    const owner = metadata.ownerReferences?.find((reference) => reference.controller)
    if (!owner || owner.kind !== kind.kind || owner.apiVersion.split('/')[0] !== (kind.group || owner.apiVersion)) return []
    return [keyOfMeta(kind.scope === 'Cluster' ? { name: owner.name } : { ...metadata, name: owner.name })]
  }

const causesOf = (err: unknown): readonly unknown[] => (err instanceof AggregateError ? err.errors : [err])
const isTerminal = (err: unknown): boolean =>
  causesOf(err).every((cause) => cause instanceof Error && cause.name === 'TerminalError')
