/**
 * The one place where state lives: every object of one plane, by revision. All of it is in memory; what is durable goes through
 * a log behind this interface (`memory.ts`, `durable.ts`). `store.suite.ts` runs against every implementation.
 *
 * Guarantees:
 * - A commit resolves, and is visible to `get`, `list` and subscribers, only when it is durable.
 * - Each commit has a revision of its own, one above the last; revisions never go back, restarts included.
 * - Commits asked for while one is being written share the next write (group commit).
 * - Stored objects are deeply frozen and carry `metadata.resourceVersion` = the revision that wrote them.
 */
import type { KubeObject } from '@capstan/kube'

/** `resource` is `plural.group` (`plural` for the core group); `namespace` is '' for cluster-scoped objects. */
export interface StoreKey {
  readonly resource: string
  readonly namespace: string
  readonly name: string
}

/** A change as watchers and the garbage collector meet it. */
export interface Change {
  readonly revision: number
  readonly key: StoreKey
  /** What was stored before, absent for a creation. */
  readonly previous: KubeObject | undefined
  /** What is stored now, absent for a deletion. */
  readonly object: KubeObject | undefined
}

export interface Write {
  readonly key: StoreKey
  /** The object that the writer read (by identity), `undefined` when it found none. Anything else there by now: Conflict. */
  readonly previous: KubeObject | undefined
  /** What to store, a private draft that the store stamps with its resourceVersion and freezes; `undefined` deletes. */
  readonly object: KubeObject | undefined
}

export type Since =
  | { readonly kind: 'changes'; readonly changes: readonly Change[] }
  | { readonly kind: 'expired'; readonly oldest: number }

export interface Store {
  /** Revision of the last visible commit. */
  readonly revision: number
  /** Why it takes no writes at the moment: the disk is full, or has failed. Reads go on. */
  readonly failure?: Error | undefined
  get(key: StoreKey): KubeObject | undefined
  /** Objects of a resource (all namespaces when `namespace` is absent) in bytewise order of namespace/name. */
  list(resource: string, namespace?: string): readonly KubeObject[]
  /** The same as it was at an older revision; `undefined` when history does not reach back that far. */
  listAt(revision: number, resource: string, namespace?: string): readonly KubeObject[] | undefined
  /** Number of objects of a resource. */
  count(resource: string): number
  /** Resolves with the change once it is durable. @throws StoreConflict when `previous` is no longer what is stored. */
  commit(write: Write): Promise<Change>
  /** Changes of a resource after `revision`, oldest first and `most` of them, or `expired` when they are no longer all known. */
  since(revision: number, resource: string, most?: number): Since
  /**
   * Calls `listener` with every change of `resource` (of all, when it is `undefined`) from now on, in order, synchronously as it
   * becomes visible.
   */
  subscribe(resource: string | undefined, listener: (change: Change) => void): () => void
  close(): Promise<void>
}

/** Somebody else wrote first: read again and decide anew. */
export class StoreConflict extends Error {
  override readonly name = 'StoreConflict'
}
