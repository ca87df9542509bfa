/**
 * State of one API server: all its objects, and their recent changes by revision. The whole state is in memory. The memory store
 * (`memory.ts`) loses it when the process ends; the durable store (`durable.ts`) also writes a log. `store.suite.ts` tests both.
 *
 * Guarantees:
 * - In the durable store, a commit resolves, and is visible to `get`, `list` and subscribers, only when it is durable.
 * - Each commit has its own revision, one above the last. In the durable store, revisions continue after a restart.
 * - In the durable store, commits of different objects that arrive while others are being written share the next write (group commit), up
 *   to 256 of them.
 * - Stored objects are deeply frozen; their `metadata.resourceVersion` is the revision that wrote them.
 */
import type { KubeObject } from '@capstan/kube'

/** `resource` is `plural.group` (`plural` for the core group); `namespace` is '' for cluster-scoped objects. */
export interface StoreKey {
  readonly resource: string
  readonly namespace: string
  readonly name: string
}

/** A change as watches and the garbage collector receive it. */
export interface Change {
  readonly revision: number
  readonly key: StoreKey
  /** The stored object before the change; absent for a creation. */
  readonly previous: KubeObject | undefined
  /** The stored object after the change; absent for a deletion. */
  readonly object: KubeObject | undefined
}

export interface Write {
  readonly key: StoreKey
  /** The object that the writer read (compared by identity), `undefined` when it found none. A different stored object is a conflict. */
  readonly previous: KubeObject | undefined
  /** The object to store: a private draft. The store sets its resourceVersion and freezes it. `undefined` deletes the stored object. */
  readonly object: KubeObject | undefined
}

/** Result of `Store.since`. */
export type Since =
  | { readonly kind: 'changes'; readonly changes: readonly Change[] }
  /** The history does not contain all requested changes. It contains all changes from revision `oldest` on. */
  | { readonly kind: 'expired'; readonly oldest: number }

export interface Store {
  /** Revision of the last visible commit. */
  readonly revision: number
  /** Reason why the store accepts no writes at present, for example a full disk. Reads continue. */
  readonly failure?: Error | undefined
  get(key: StoreKey): KubeObject | undefined
  /** Objects of a resource (all namespaces when `namespace` is absent) in bytewise order of namespace/name. */
  list(resource: string, namespace?: string): readonly KubeObject[]
  /** Like `list`, at an older revision; `undefined` when the history does not contain all changes after this revision. */
  listAt(revision: number, resource: string, namespace?: string): readonly KubeObject[] | undefined
  /** Number of objects of a resource. */
  count(resource: string): number
  /**
   * Resolves with the change once it is durable; in the memory store, at once.
   * @throws StoreConflict when `previous` is not the stored object; StatusError when the log cannot be written; Error after `close`
   */
  commit(write: Write): Promise<Change>
  /**
   * Returns changes of a resource after `revision`, oldest first, at most `limit`; `expired` when a change after `revision`, of any
   * resource, has left the history.
   */
  since(revision: number, resource: string, limit?: number): Since
  /**
   * Calls `listener` with every later change of `resource` (of all resources when it is `undefined`), in order, synchronously when the
   * change becomes visible. Returns a function that ends the subscription.
   */
  subscribe(resource: string | undefined, listener: (change: Change) => void): () => void
  close(): Promise<void>
}

/** Error for a concurrent write of the same object: the caller reads the object again and repeats its change. */
export class StoreConflict extends Error {
  override readonly name = 'StoreConflict'
}
