/**
 * State of one store on disk: objects by key, the newest revision, and the recent changes. It is read from a checkpoint, if one
 * exists, and the later logs; the journal then applies each new change to it.
 */
import type { KubeObject } from '@capstan/kube'
import { type ObjectEncoding, plainObjects, jsonOf } from './packed.ts'
import type { Change, StoreKey } from './store.ts'

export interface Stored {
  readonly key: StoreKey
  readonly object: KubeObject
}

/** A change and its time: milliseconds since the epoch, by the clock of its writer. */
export interface TimedChange {
  readonly change: Change
  readonly time: number
}

export interface Snapshot {
  revision: number
  readonly objects: Map<string, Stored>
  /** Recent changes, oldest first, without gaps up to `revision`. Empty while the store is open: an open store keeps them itself. */
  changes: TimedChange[]
}

/** Snapshots by the names of their stores. */
export type Snapshots = Map<string, Snapshot>

export const emptySnapshot = (): Snapshot => ({ revision: 0, objects: new Map(), changes: [] })

/** A line in a frame of the log: a change of an object, or the removal of a whole store. */
export type Entry =
  | {
      readonly store: string
      readonly revision: number
      readonly time: number
      readonly key: readonly [resource: string, namespace: string, name: string]
      /** Absent for a deletion. */
      readonly object?: KubeObject
    }
  | { readonly store: string; readonly removed: true }

/** Returns the line of a change. A packed object is not encoded again. */
export function changeLine(store: string, { revision, key, object }: Change, time: number): string {
  const head = JSON.stringify({ store, revision, time, key: [key.resource, key.namespace, key.name] })
  return object === undefined ? head : `${head.slice(0, -1)},"object":${jsonOf(object)}}`
}

export const removalLine = (store: string): string => JSON.stringify({ store, removed: true } satisfies Entry)

/** Applies a line of the log to `snapshots`. @throws Error when the revision of a change is not the next revision of its store */
export function replay(snapshots: Snapshots, entry: Entry, encode: ObjectEncoding = plainObjects): void {
  if ('removed' in entry) {
    snapshots.delete(entry.store)
    return
  }
  const snapshot = snapshots.get(entry.store) ?? emptySnapshot()
  if (entry.revision !== snapshot.revision + 1)
    throw new Error(`revision ${entry.revision} of store ${entry.store} follows revision ${snapshot.revision}`)
  snapshots.set(entry.store, snapshot)
  const [resource, namespace, name] = entry.key
  const key: StoreKey = { resource, namespace, name }
  const previous = snapshot.objects.get(idOf(key))?.object
  const object = entry.object && encode(entry.object)
  const change: Change = Object.freeze({ revision: entry.revision, key, previous, object })
  applyTo(snapshot, change)
  snapshot.changes.push({ change, time: entry.time })
}

/** Applies a change to the revision and the objects of a snapshot, but not to its recent changes. */
export function applyTo(snapshot: Snapshot, { revision, key, object }: Change): void {
  snapshot.revision = revision
  if (object) snapshot.objects.set(idOf(key), { key, object })
  else snapshot.objects.delete(idOf(key))
}

/** Returns the key of an object in `objects`. `join` creates one flat string; a concatenation would keep its parts in memory. */
const idOf = ({ resource, namespace, name }: StoreKey): string => [resource, namespace, name].join('/')
