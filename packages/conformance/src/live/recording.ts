/** Records the states of objects as watches deliver them, with the time of arrival. */
import {
  type Client,
  type Clock,
  type Kind,
  type KubeObject,
  type Random,
  resourceName,
  type UnknownObject,
  watchObjects,
} from '@capstan/kube'

/** A position in the recording. `order` distinguishes changes that arrive at the same time. */
export interface Moment {
  /** Milliseconds since the Unix epoch. */
  readonly at: number
  /** Number of changes that had arrived at this moment. */
  readonly order: number
}

/** An object as the watch delivered it, with the moment of its arrival. */
export interface State<T extends KubeObject = UnknownObject> extends Moment {
  readonly object: T
}

/** All recorded states of one object. */
export interface History<T extends KubeObject = UnknownObject> {
  readonly states: readonly State<T>[]
  readonly deleted: Moment | undefined
}

interface ObjectRecord {
  states: State[]
  deleted: Moment | undefined
}

export interface RecordingOptions {
  readonly clock: Clock
  readonly random: Random
  readonly signal: AbortSignal
}

/**
 * Maximum number of recorded states of an object. After that, each new state replaces one in the middle, so that endless writes do not
 * fill the memory.
 */
const maxStates = 2000

/** The recorded histories of all objects of the followed kinds. */
export class Recording {
  readonly #clock: Clock
  #order = 0
  readonly #records = new Map<string, Map<string, ObjectRecord>>()
  #changed = Promise.withResolvers<void>()
  /** Lists the objects of each followed kind. */
  readonly #lists: (() => Promise<{ readonly kind: Kind; readonly objects: readonly KubeObject[] }>)[] = []

  constructor({ clock }: Pick<RecordingOptions, 'clock'>) {
    this.#clock = clock
  }

  /**
   * Records objects of the kinds in a namespace, and all objects of cluster-scoped kinds, until the signal aborts. Resolves when the watches
   * have delivered the existing objects, or when the signal aborts.
   */
  async follow(client: Client, kinds: readonly Kind[], namespace: string, options: RecordingOptions): Promise<void> {
    if (options.signal.aborted) return
    await Promise.all(
      kinds.map((kind) => {
        const listed = Promise.withResolvers<void>()
        void this.#follow(client, kind, namespace, options, listed.resolve)
        options.signal.addEventListener('abort', () => listed.resolve(), { once: true })
        return listed.promise
      }),
    )
  }

  /**
   * Whether the recording contains the current state of every object that the API server returns now, and the deletion of all other
   * recorded objects.
   */
  async isCurrent(): Promise<boolean> {
    const lists = await Promise.all(this.#lists.map((list) => list()))
    return lists.every(({ kind, objects }) => {
      const records = this.#records.get(resourceName(kind))!
      const uids = new Set(objects.map(({ metadata }) => metadata.uid))
      return (
        objects.every(({ metadata }) => {
          const states = records.get(metadata.uid)?.states ?? []
          return states.some(({ object }) => object.metadata.resourceVersion === metadata.resourceVersion)
        }) && [...records].every(([uid, { deleted }]) => deleted !== undefined || uids.has(uid))
      )
    })
  }

  now(): Moment {
    return { at: this.#clock.now(), order: this.#order }
  }

  /** Promise that resolves when a watch next delivers a list of objects or a change. */
  get changed(): Promise<void> {
    return this.#changed.promise
  }

  histories<T extends KubeObject = UnknownObject>(kind: Kind<T>): readonly History<T>[] {
    return [...(this.#records.get(resourceName(kind))?.values() ?? [])] as unknown as History<T>[]
  }

  /** Returns the histories of all kinds. */
  allHistories(): readonly History[] {
    return [...this.#records.values()].flatMap((records) => [...records.values()])
  }

  /** Returns the last recorded state of each object that is not recorded as deleted. */
  objects<T extends KubeObject = UnknownObject>(kind: Kind<T>): readonly T[] {
    return this.histories(kind)
      .filter(({ deleted }) => !deleted)
      .map(({ states }) => states.at(-1)!.object)
  }

  object<T extends KubeObject = UnknownObject>(kind: Kind<T>, name: string): T | undefined {
    return this.objects(kind).find(({ metadata }) => metadata.name === name)
  }

  async #follow(
    client: Client,
    kind: Kind,
    namespace: string,
    { clock, random, signal }: RecordingOptions,
    onListed: () => void,
  ): Promise<void> {
    const records = new Map<string, ObjectRecord>()
    this.#records.set(resourceName(kind), records)
    const scope = kind.scope === 'Cluster' ? {} : { namespace }
    this.#lists.push(async () => ({ kind, objects: (await client.list(kind, { ...scope, signal })).items }))
    for await (const event of watchObjects(client, kind, { clock, random, signal, ...scope })) {
      if (event.kind === 'progress') continue
      if (event.kind === 'replaced') {
        const existingUids = new Set(event.objects.map(({ metadata }) => metadata.uid))
        for (const [uid, record] of records) if (!existingUids.has(uid)) record.deleted ??= this.#next()
        for (const object of event.objects) this.#add(records, object)
        onListed()
      } else if (event.kind === 'applied') this.#add(records, event.object)
      else {
        const record = records.get(event.object.metadata.uid)
        if (record) record.deleted = this.#next()
      }
      this.#changed.resolve()
      this.#changed = Promise.withResolvers()
    }
  }

  #add(records: Map<string, ObjectRecord>, object: KubeObject): void {
    const { uid, resourceVersion } = object.metadata
    const record = records.get(uid) ?? { states: [], deleted: undefined }
    records.set(uid, record)
    if (record.states.at(-1)?.object.metadata.resourceVersion === resourceVersion) return
    if (record.states.length >= maxStates) record.states.splice(maxStates / 2, 1)
    record.states.push({ ...this.#next(), object: object as UnknownObject })
  }

  #next(): Moment {
    this.#order++
    return this.now()
  }
}

/** Returns the last state that was recorded up to a moment; `undefined` if there was none, or the object was deleted. */
export function stateAt<T extends KubeObject>({ states, deleted }: History<T>, moment: Moment): State<T> | undefined {
  if (deleted && deleted.order <= moment.order) return undefined
  return states.findLast(({ order }) => order <= moment.order)
}
