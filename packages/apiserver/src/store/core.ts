/**
 * The common part of the memory store and the durable store: objects by key, the window of recent changes, group commit. A `Log` makes a
 * group of changes durable; without a log, a commit completes at once.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { appendAll, type Clock, type KubeObject, messageOf, StatusError } from '@capstan/kube'
import { ChangeWindow, type HistoryLimits } from './change-window.ts'
import type { Stored, TimedChange } from './snapshot.ts'
import { type ObjectEncoding, plainObjects } from './packed.ts'
import { Table } from './table.ts'
import { type Change, type Since, type Store, StoreConflict, type StoreKey, type Write } from './store.ts'

/** Makes changes durable. `append` is called for one group at a time, in the order of revisions. */
export interface Log {
  /**
   * Resolves once all of `changes` are durable. When it rejects, the store drops all of them and reuses their revisions. `time` is the time
   * of the changes in milliseconds since the epoch.
   */
  append(changes: readonly Change[], time: number): Promise<void>
  /** Reason why changes cannot be appended at present. */
  readonly failure: Error | undefined
  /** Closes the log. `changes` are the recent changes, which the log keeps in memory until the store is opened again. */
  close(changes: readonly TimedChange[]): Promise<void>
}

/** State that a log recovered. */
export interface Recovered {
  readonly revision: number
  readonly objects: Iterable<Stored>
  /** Oldest first, without gaps up to `revision`. */
  readonly changes: readonly TimedChange[]
}

export interface StoreOptions {
  /** Limits of the window of recent changes. Defaults: 20,000 changes, 64 Mi characters, and no maximum age. */
  readonly history?: Partial<HistoryLimits>
  /**
   * Clock for the times of changes. Default: the clock of the data folder. In the memory store without a clock, all changes have the
   * time 0, and `history.age` has no effect.
   */
  readonly clock?: Clock
  /** Encoding of stored objects. Default: the encoding of the data folder; in the memory store, plain objects. */
  readonly encode?: ObjectEncoding
}

interface Pending {
  readonly write: Write
  resolve(change: Change): void
  reject(reason: unknown): void
}

/** Maximum writes in one group. The lines of this many objects of the maximum size still fit into one string. */
const LargestGroup = 256

export class CoreStore implements Store {
  readonly #log: Log | undefined
  readonly #tables = new Map<string, Table>()
  readonly #listeners = new Map<string | undefined, Set<(change: Change) => void>>()
  readonly #window: ChangeWindow
  #revision: number
  readonly #clock: Clock | undefined
  readonly #encode: ObjectEncoding
  #pending: Pending[] = []
  #flushing: Promise<void> | undefined
  #unpublished: Change[] = []
  #publishing = false
  #closed = false

  constructor(log: Log | undefined, recovered: Recovered, options: StoreOptions = {}) {
    this.#log = log
    this.#revision = recovered.revision
    this.#clock = options.clock
    this.#encode = options.encode ?? plainObjects
    for (const { key, object } of recovered.objects) this.#table(key.resource).put(textOf(key), object)
    const oldest = recovered.changes[0]?.change.revision ?? recovered.revision + 1
    this.#window = new ChangeWindow(options.history, oldest - 1, options.clock)
    for (const { change, time } of recovered.changes) this.#window.push(change, time)
  }

  get revision(): number {
    return this.#revision
  }

  get failure(): Error | undefined {
    return this.#log?.failure
  }

  get(key: StoreKey): KubeObject | undefined {
    return this.#tables.get(key.resource)?.get(textOf(key))
  }

  list(resource: string, namespace?: string): readonly KubeObject[] {
    return this.#tables.get(resource)?.list(namespace) ?? []
  }

  listAt(revision: number, resource: string, namespace?: string): readonly KubeObject[] | undefined {
    if (revision >= this.#revision) return this.list(resource, namespace)
    const later = this.#window.since(revision, resource)
    if (later.kind === 'expired') return undefined
    if (later.changes.length === 0) return this.list(resource, namespace)
    const pastTable = this.#tables.get(resource)?.copy() ?? Table.empty()
    for (const { key, previous } of later.changes.toReversed()) {
      if (previous) pastTable.put(textOf(key), previous)
      else pastTable.remove(textOf(key))
    }
    return pastTable.list(namespace)
  }

  count(resource: string): number {
    return this.#tables.get(resource)?.size ?? 0
  }

  commit(write: Write): Promise<Change> {
    if (this.#closed) return Promise.reject(new Error('the store is closed'))
    const log = this.#log
    if (!log) {
      if (this.get(write.key) !== write.previous) return Promise.reject(conflictOn(write.key))
      const change = stamp(write, this.#revision + 1, this.#encode)
      this.#apply(change, this.#now())
      this.#publish([change])
      return Promise.resolve(change)
    }
    return new Promise((resolve, reject) => {
      this.#pending.push({ write, resolve, reject })
      // Waits for the next turn of the event loop, so that writes that are committed until then can form one group: they share one sync,
      // and watchers read their changes together.
      this.#flushing ??= nextTurn().then(() => this.#flush(log))
    })
  }

  since(revision: number, resource: string, limit?: number): Since {
    return this.#window.since(revision, resource, limit)
  }

  subscribe(resource: string | undefined, listener: (change: Change) => void): () => void {
    let listeners = this.#listeners.get(resource)
    if (!listeners) this.#listeners.set(resource, (listeners = new Set()))
    listeners.add(listener)
    return () => listeners.delete(listener)
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#flushing
    this.#listeners.clear()
    await this.#log?.close(this.#window.all())
  }

  /** Commits groups until no write waits. A second write of one key waits for the next group, so that it is checked against the first. */
  async #flush(log: Log): Promise<void> {
    while (this.#pending.length > 0) {
      const waiting = this.#pending
      this.#pending = []
      const group = new Map<string, { pending: Pending; change: Change }>()
      for (const pending of waiting) {
        const { write } = pending
        const id = `${write.key.resource} ${textOf(write.key)}`
        if (group.has(id) || group.size === LargestGroup) this.#pending.push(pending)
        else if (this.get(write.key) !== write.previous) pending.reject(conflictOn(write.key))
        else group.set(id, { pending, change: stamp(write, this.#revision + 1 + group.size, this.#encode) })
      }
      if (group.size === 0) continue
      const members = [...group.values()]
      const changes = members.map(({ change }) => change)
      const time = this.#now()
      try {
        if (log.failure) throw unavailable(log.failure)
        await log.append(changes, time).catch(rejectWrite)
      } catch (err) {
        for (const { pending } of members) pending.reject(err)
        continue
      }
      for (const change of changes) this.#apply(change, time)
      this.#publish(changes)
      for (const { pending, change } of members) pending.resolve(change)
    }
    this.#flushing = undefined
  }

  #now(): number {
    return this.#clock?.now() ?? 0
  }

  #apply(change: Change, time: number): void {
    this.#revision = change.revision
    const table = this.#table(change.key.resource)
    if (change.object) table.put(textOf(change.key), change.object)
    else table.remove(textOf(change.key))
    this.#window.push(change, time)
  }

  /** Notifies listeners. A write by a listener is published after the current changes, so that all listeners see one order. */
  #publish(changes: readonly Change[]): void {
    appendAll(this.#unpublished, changes)
    if (this.#publishing) return
    this.#publishing = true
    try {
      // Listeners may append to the list during this loop.
      for (const change of this.#unpublished) {
        for (const listener of this.#listeners.get(change.key.resource) ?? []) notify(listener, change)
        for (const listener of this.#listeners.get(undefined) ?? []) notify(listener, change)
      }
    } finally {
      this.#unpublished.length = 0
      this.#publishing = false
    }
  }

  #table(resource: string): Table {
    let table = this.#tables.get(resource)
    if (!table) this.#tables.set(resource, (table = Table.empty()))
    return table
  }
}

/** Calls a listener. An exception of a listener is a bug, which must not affect other listeners or the write. */
function notify(listener: (change: Change) => void, change: Change): void {
  try {
    listener(change)
  } catch (err) {
    queueMicrotask(() => {
      throw err
    })
  }
}

/** Throws the error for the writes of a group that could not be made durable. @throws StatusError InternalError */
function rejectWrite(cause: unknown): never {
  const text = `Internal error occurred: the write could not be made durable: ${messageOf(cause)}`
  throw new StatusError('InternalError', text, { cause })
}

/** Error for writes while the log cannot be written. */
const unavailable = (cause: Error): StatusError =>
  new StatusError('ServiceUnavailable', `the store takes no writes: ${cause.message}`, {
    details: { retryAfterSeconds: 1 },
    cause,
  })

/** Returns `namespace/name`. `join` creates one flat string; a concatenated string would keep its three parts in memory. */
const textOf = ({ namespace, name }: StoreKey): string => [namespace, name].join('/')

const conflictOn = ({ resource, namespace, name }: StoreKey): StoreConflict =>
  new StoreConflict(`${resource} ${namespace === '' ? name : `${namespace}/${name}`} was changed by a concurrent write`)

function stamp({ key, previous, object: draft }: Write, revision: number, encode: ObjectEncoding): Change {
  if (draft) draft.metadata.resourceVersion = String(revision)
  return Object.freeze({ revision, key, previous, object: draft && encode(draft) })
}
