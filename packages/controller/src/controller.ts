/** Declares controllers: the kind that a controller reconciles, the kinds that it watches, and its reconcile function. */
import type { Registry } from 'prom-client'
import {
  type Client,
  type Clock,
  equal,
  type Kind,
  type KubeObject,
  type Logger,
  type ObjectKey,
  type Random,
  type Reader,
} from '@capstan/kube'
import type { Outcome } from './outcome.ts'

/**
 * Reads from informers, without a request. Objects are frozen and shared. Except for `newest`, they are in the state of the last list or watch
 * event.
 */
export interface Cache extends Reader {
  /**
   * Returns the cached object, or `undefined`. Never sends a request.
   * @throws if the kind has no informer, or the namespace is not watched
   */
  peek<T extends KubeObject>(kind: Kind<T>, key: ObjectKey): T | undefined
  /**
   * Returns the newest version that this process knows: the cached object, or the result of a write by one of its controllers that the
   * watch has not delivered yet. Sends no request. @throws if the kind has no informer, or the namespace is not watched
   */
  newest<T extends KubeObject>(kind: Kind<T>, key: ObjectKey): T | undefined
  /** Returns the objects with `value` in the index. */
  byIndex<T extends KubeObject>(index: Index<T>, value: string): readonly T[]
}

/** A named index over objects of a kind. Declare it once, as a constant. */
export interface Index<T extends KubeObject> {
  readonly name: string
  readonly kind: Kind<T>
  readonly values: (object: T) => readonly string[]
}

/** Arguments of a reconcile besides its key. */
export interface ReconcileContext {
  /**
   * Reads are sent to the server. Writes are recorded: this key is not reconciled again before the cache contains the writes to watched
   * kinds, or 10 seconds have passed. Dry runs, deletions of collections and completed deletions are not waited for.
   */
  readonly client: Client
  readonly cache: Cache
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly events: EventRecorder
  /**
   * Aborts when the manager stops, the reconcile exceeds its time limit of 60 seconds, or this process releases or loses the shard of the
   * key.
   */
  readonly signal: AbortSignal
  /**
   * Runs `work` that waits for something outside the cluster, such as a Runtime Extension, without occupying a worker of the controller: a
   * slow response delays only this key. While 1,000 reconciles do this, further reconciles keep their worker.
   */
  withoutWorker<T>(work: () => Promise<T>): Promise<T>
  /**
   * Returns for how many milliseconds this key may still postpone a write that no other controller waits for; 0 if it must write now. The
   * period starts with the first reconcile of the key that postpones a write, and ends with a reconcile that postpones none. Its length
   * depends on how long the writes of this process take.
   */
  postponeTime(): number
  /**
   * Watches a kind that is known only at run time and enqueues, for each event, the keys that `map` returns, as a `Watch` with the filter
   * `keys`. Resolves when the cache contains the objects of the kind. Further calls by the same controller for the kind cost little, and
   * ignore their `map`.
   */
  watch(kind: Kind, map: MapFunction): Promise<void>
}

export interface EventRecorder {
  /** Records an Event about `object`. A call with the same arguments as a recent call increases the count of the earlier Event. */
  event(object: KubeObject, type: 'Normal' | 'Warning', reason: string, message: string): void
}

/** Maps an object of a watched kind to the keys to reconcile. */
export type MapFunction<T extends KubeObject = KubeObject> = (object: T, cache: Cache) => readonly ObjectKey[]

/** Decides whether a change leads to a reconcile. `previous` is absent for a new object, `object` for a deleted one. */
export type Predicate<T extends KubeObject = KubeObject> = (change: {
  readonly previous: T | undefined
  readonly object: T | undefined
}) => boolean

export interface Watch<T extends KubeObject = KubeObject> {
  readonly kind: Kind<T>
  readonly map: MapFunction<T>
  readonly when?: Predicate<T>
  /**
   * Use of the manager's event filter: `objects` (the default) filters the watched objects; `keys` filters only the objects whose keys
   * `map` returns; `none` does not filter. `keys` and `none` are for objects that other programs or users create without the label of the
   * filter, such as Secrets.
   */
  readonly filter?: 'objects' | 'keys' | 'none'
}

/** Accepts additions, deletions, and updates that change the result of `facts`. */
export const whenChanged =
  <T extends KubeObject>(facts: (object: T) => unknown): Predicate<T> =>
  ({ previous, object }) =>
    !previous || !object || !equal(facts(previous), facts(object))

/**
 * Declares a watch. Checks the types of `map` and `when` against the kind, then erases these types, so that watches of several kinds fit
 * into one list.
 */
export const watches = <T extends KubeObject>(kind: Kind<T>, map: MapFunction<T>, when?: Predicate<T>): Watch =>
  ({ kind, map, ...(when ? { when } : {}) }) as unknown as Watch

export interface SourceContext {
  readonly cache: Cache
  /** Aborts when the manager stops. */
  readonly signal: AbortSignal
  /** The logger of the controller. */
  readonly log: Logger
  /** Whether the event filter of the manager accepts an object. The filter is not applied to keys that the source enqueues. */
  accepts(object: KubeObject): boolean
}

/** Source of events outside the API server, such as the connection to a workload cluster. */
export interface Source {
  start(enqueue: (key: ObjectKey) => void, context: SourceContext): void
}

export interface Controller<T extends KubeObject = KubeObject> {
  readonly name: string
  readonly for: Kind<T>
  /** Filters changes of the reconciled kind. Default: all changes. */
  readonly when?: Predicate<T>
  /** Kinds whose objects enqueue their controller owner when the owner is of the reconciled kind. */
  readonly owns?: readonly Kind[]
  readonly watches?: readonly Watch[]
  /**
   * Watched kinds whose objects a reconcile counts, or whose conditions it aggregates. After a reconcile, changes of such objects, except
   * deletions, reconcile the key again only after a pause, so that several changes cause one write. The pause is four times the time from
   * the start of that reconcile until its end or, if it wrote, until the cache contained its writes; at most one second. A pause of less
   * than 20 milliseconds is omitted. See docs/adr/0048.
   */
  readonly aggregates?: readonly Kind[]
  readonly sources?: readonly Source[]
  /** Maximum number of keys that are reconciled concurrently, without those whose reconcile is in `withoutWorker`. Default 10. */
  readonly concurrency?: number
  /**
   * Limits the rate of reconciles of each key. A key has a budget of `burst`: every reconcile takes 1, and 1 is added per `interval` (in
   * milliseconds), up to `burst`. While the budget is below 0, the key waits. Without `limit`, the budget is 100, the interval is a second,
   * and a reconcile that changes something and does not fail takes only 0.25. Set `limit` when several objects may change the same field
   * back and forth.
   */
  readonly limit?: { readonly burst: number; readonly interval: number }
  /** Registers the controller's own metrics in the manager's registry. Called once. */
  metrics?(registry: Registry): void
  reconcile(key: ObjectKey, context: ReconcileContext): Promise<Outcome>
  /**
   * Called instead of `reconcile` for objects that another process reconciles, when the manager has shards (see `Shards`). It updates state
   * that this process keeps in memory; its writes are rejected. Absent: such objects are skipped.
   */
  observe?(key: ObjectKey, context: ReconcileContext): Promise<Outcome>
}

/** Erases the type parameter of a controller, so that controllers of several kinds fit into one list. */
export const controller = <T extends KubeObject>(declaration: Controller<T>): Controller => declaration as unknown as Controller
