/** What a controller declares: which kind it reconciles, what else it watches, and the function that does it. */
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

/** Reads from informers: as fresh as the last watch event, and free. What it returns is frozen and shared. */
export interface Cache extends Reader {
  /** The object, or `undefined`. Never asks the server. @throws if the kind has no informer */
  peek<T extends KubeObject>(kind: Kind<T>, key: ObjectKey): T | undefined
  /** All objects for which the index gave `value`. */
  byIndex<T extends KubeObject>(index: Index<T>, value: string): readonly T[]
}

/** A named way to look objects up by something other than their key. Declared once as a constant, and passed around. */
export interface Index<T extends KubeObject> {
  readonly name: string
  readonly kind: Kind<T>
  readonly values: (object: T) => readonly string[]
}

/** What the loop gives to one reconcile. */
export interface ReconcileContext {
  /** Writes are noted: this key is not reconciled again before the cache has seen them. Reads are live. */
  readonly client: Client
  readonly cache: Cache
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly events: EventRecorder
  /** Aborts when the manager stops or the pass takes longer than its limit. */
  readonly signal: AbortSignal
  /**
   * Makes sure that objects of a kind known only at run time are watched, and that their events bring back the owner that
   * `map` names. Idempotent and cheap after the first call.
   */
  watch(kind: Kind, map: MapFunction): Promise<void>
}

export interface EventRecorder {
  /** Tells the user of `object` what happened. Repeated events are counted, not repeated. */
  event(object: KubeObject, type: 'Normal' | 'Warning', reason: string, message: string): void
}

/** Which keys of the controller's kind an object of another kind concerns. */
export type MapFunction<T extends KubeObject = KubeObject> = (object: T, cache: Cache) => readonly ObjectKey[]

/** Whether a change matters. `previous` is absent for an object seen first, `object` for one that is gone. */
export type Predicate<T extends KubeObject = KubeObject> = (change: {
  readonly previous: T | undefined
  readonly object: T | undefined
}) => boolean

export interface Watch<T extends KubeObject = KubeObject> {
  readonly kind: Kind<T>
  readonly map: MapFunction<T>
  readonly when?: Predicate<T>
}

/** Lets through what comes or goes, and changes of what `facts` takes of an object. */
export const whenChanged =
  <T extends KubeObject>(facts: (object: T) => unknown): Predicate<T> =>
  ({ previous, object }) =>
    !previous || !object || !equal(facts(previous), facts(object))

/** Declares a watch and checks `map` and `when` against the kind; in the list the type no longer matters. */
export const watches = <T extends KubeObject>(kind: Kind<T>, map: MapFunction<T>, when?: Predicate<T>): Watch =>
  ({ kind, map, ...(when ? { when } : {}) }) as unknown as Watch

/** Events that come from elsewhere than the API, such as the connection to a workload cluster. */
export interface Source {
  start(enqueue: (key: ObjectKey) => void, context: { cache: Cache; signal: AbortSignal }): void
}

export interface Controller<T extends KubeObject = KubeObject> {
  readonly name: string
  readonly for: Kind<T>
  /** Which changes of the kind itself matter; all when absent. */
  readonly when?: Predicate<T>
  /** Kinds whose objects, controlled by one of ours, bring their controller back. */
  readonly owns?: readonly Kind[]
  readonly watches?: readonly Watch[]
  readonly sources?: readonly Source[]
  readonly indexes?: readonly Index<never>[]
  /** Keys reconciled at once. Default 10. */
  readonly concurrency?: number
  /** Adds metrics of its own to those of its manager, once. */
  metrics?(registry: Registry): void
  reconcile(key: ObjectKey, context: ReconcileContext): Promise<Outcome>
}

/** Gathers controllers of several kinds in one list, where each one's own type no longer matters. */
export const controller = <T extends KubeObject>(of: Controller<T>): Controller => of as unknown as Controller
