/** Caches the objects of one kind that a watch selects, and updates them by its events. Objects are frozen and shared; an index is built at its first use. */
import type { Kind, KubeObject, ObjectKey, WatcherEvent } from '@capstan/kube'
import { keyOf, keyText } from '@capstan/kube'
import type { Index } from './controller.ts'

/**
 * Change of one cached object. `previous` is absent for a new object. For a deleted object, `object` is absent, and `previous` is its last
 * known state.
 */
export interface InformerEvent<T extends KubeObject = KubeObject> {
  readonly key: ObjectKey
  readonly previous: T | undefined
  readonly object: T | undefined
  /**
   * Whether the event comes from a list of all objects, at the start or after an interrupted watch, rather than from a watch event. False
   * for an object that the list no longer contains.
   */
  readonly initial: boolean
}

type Listener = (event: InformerEvent) => void
type Values = (object: KubeObject) => readonly string[]

/** A caller that waits for a revision. */
interface Waiter {
  readonly revision: number
  readonly resolve: () => void
}

export class Informer {
  readonly kind: Kind
  readonly #objects = new Map<string, KubeObject>()
  readonly #byNamespace = new Map<string, Set<string>>()
  readonly #indexes = new Map<string, { values: Values; keys: Map<string, Set<string>> }>()
  readonly #listeners = new Set<Listener>()
  /** Results of writes that are newer than the last watch event, by key. */
  readonly #written = new Map<string, KubeObject>()
  readonly #waiters = new Map<string, Waiter[]>()
  /** Resolves after the first list. */
  readonly synced: Promise<void>
  #markSynced!: () => void
  #revision = 0
  #isSynced = false

  constructor(kind: Kind) {
    this.kind = kind
    this.synced = new Promise((resolve) => {
      this.#markSynced = resolve
    })
  }

  /** The newest resourceVersion that a list or the watch has returned; 0 before the first list. */
  get revision(): number {
    return this.#revision
  }

  get isSynced(): boolean {
    return this.#isSynced
  }

  get size(): number {
    return this.#objects.size
  }

  /** Applies watch events until the watch ends. */
  async follow(events: AsyncIterable<WatcherEvent>): Promise<void> {
    for await (const event of events) this.accept(event)
  }

  accept(event: WatcherEvent): void {
    switch (event.kind) {
      case 'replaced':
        this.#replace(event.objects)
        this.#advance(Number(event.resourceVersion))
        this.#isSynced = true
        this.#markSynced()
        break
      case 'applied':
        this.#put(event.object, false)
        this.#advance(Number(event.object.metadata.resourceVersion))
        break
      case 'deleted':
        this.#remove(keyText(keyOf(event.object)), event.object)
        this.#advance(Number(event.object.metadata.resourceVersion))
        break
      case 'progress':
        this.#advance(Number(event.resourceVersion))
        break
    }
  }

  get(key: ObjectKey): KubeObject | undefined {
    return this.#objects.get(keyText(key))
  }

  /** Returns the result of a write by this process if the watch has not delivered this write yet. Otherwise returns the cached object. */
  newest(key: ObjectKey): KubeObject | undefined {
    return this.#written.get(keyText(key)) ?? this.get(key)
  }

  /** Records the result of a write by this process. */
  recordWrite(object: KubeObject): void {
    const key = keyText(keyOf(object))
    const revision = revisionOf(object)
    if (revision > this.#revision && !(revisionOf(this.#written.get(key)) > revision)) this.#written.set(key, object)
  }

  /** Returns all objects, or those of one namespace, in the order in which the cache first received them. */
  list(namespace?: string): KubeObject[] {
    if (namespace === undefined) return [...this.#objects.values()]
    return [...(this.#byNamespace.get(namespace) ?? [])].map((key) => this.#objects.get(key)!)
  }

  /** Returns the objects with `value` in the index, which is built at its first use. */
  byIndex<T extends KubeObject>(index: Index<T>, value: string): T[] {
    return this.#lookup(`index:${index.name}`, index.values as Values, value) as T[]
  }

  /** Returns the objects with this value of a label. */
  byLabel(label: string, value: string): KubeObject[] {
    const values: Values = ({ metadata }) => (metadata.labels?.[label] === undefined ? [] : [metadata.labels[label]])
    return this.#lookup(`label:${label}`, values, value)
  }

  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /**
   * Resolves when the watch has reached `revision` or a later revision, by an event of any object of the kind, a bookmark or a new list.
   * Returns `undefined` when the watch or the cached object with this key has reached the revision already. `key` is a result of `keyText`.
   */
  waitForRevision(key: string, revision: number): Promise<void> | undefined {
    const object = this.#objects.get(key)
    if (this.#revision >= revision || (object && Number(object.metadata.resourceVersion) >= revision)) return undefined
    return new Promise((resolve) => {
      const waiters = this.#waiters.get(key) ?? []
      this.#waiters.set(key, [...waiters, { revision, resolve }])
    })
  }

  #lookup(name: string, values: Values, value: string): KubeObject[] {
    let index = this.#indexes.get(name)
    if (!index) {
      index = { values, keys: new Map() }
      this.#indexes.set(name, index)
      for (const [key, object] of this.#objects) addTo(index.keys, values(object), key)
    }
    return [...(index.keys.get(value) ?? [])].map((key) => this.#objects.get(key)!)
  }

  #replace(objects: readonly KubeObject[]): void {
    const missingKeys = new Set(this.#objects.keys())
    for (const object of objects) {
      missingKeys.delete(keyText(keyOf(object)))
      this.#put(object, true)
    }
    for (const key of missingKeys) this.#remove(key, undefined)
  }

  #put(object: KubeObject, initial: boolean): void {
    const key = keyText(keyOf(object))
    const previous = this.#objects.get(key)
    if (previous?.metadata.resourceVersion === object.metadata.resourceVersion) return
    this.#objects.set(key, object)
    if (!previous && object.metadata.namespace !== undefined) addTo(this.#byNamespace, [object.metadata.namespace], key)
    for (const { values, keys } of this.#indexes.values()) {
      if (previous) removeFrom(keys, values(previous), key)
      addTo(keys, values(object), key)
    }
    this.#notify({ key: keyOf(object), previous, object, initial })
  }

  #remove(key: string, last: KubeObject | undefined): void {
    const previous = this.#objects.get(key)
    if (!previous) return
    this.#objects.delete(key)
    if (previous.metadata.namespace !== undefined) removeFrom(this.#byNamespace, [previous.metadata.namespace], key)
    for (const { values, keys } of this.#indexes.values()) removeFrom(keys, values(previous), key)
    this.#notify({ key: keyOf(previous), previous: last ?? previous, object: undefined, initial: false })
  }

  #notify(event: InformerEvent): void {
    for (const listener of this.#listeners) listener(event)
  }

  #advance(revision: number): void {
    if (!(revision > this.#revision)) return
    this.#revision = revision
    for (const [key, object] of this.#written) if (revisionOf(object) <= revision) this.#written.delete(key)
    for (const [key, waiters] of this.#waiters) {
      const remaining = waiters.filter((waiter) => waiter.revision > revision)
      for (const waiter of waiters) if (waiter.revision <= revision) waiter.resolve()
      if (remaining.length === 0) this.#waiters.delete(key)
      else this.#waiters.set(key, remaining)
    }
  }
}

const revisionOf = (object: KubeObject | undefined): number => Number(object?.metadata.resourceVersion)

function addTo(keys: Map<string, Set<string>>, values: readonly string[], key: string): void {
  for (const value of values) {
    const set = keys.get(value)
    if (set) set.add(key)
    else keys.set(value, new Set([key]))
  }
}

function removeFrom(keys: Map<string, Set<string>>, values: readonly string[], key: string): void {
  for (const value of values) {
    const set = keys.get(value)
    set?.delete(key)
    if (set?.size === 0) keys.delete(value)
  }
}
