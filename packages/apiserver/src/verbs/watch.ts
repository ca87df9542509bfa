/** WATCH: what is there, what has happened since, what happens; filtered, bounded, and told where it stands. */
import {
  forbidden,
  freeze,
  type FieldError,
  invalidObject,
  type KubeObject,
  minutes,
  notSupported,
  type RequestOptions,
  seconds,
  StatusError,
  type WatchEvent,
} from '@capstan/kube'
import type { WatchStream } from '../engine.ts'
import { type Definition, inVersion } from '../registry/definition.ts'
import type { Change, Store } from '../store/store.ts'
import { notWithContinue } from './list.ts'
import type { Call, Plane } from './plane.ts'
import { parseRevision } from './revision.ts'
import { selectionOf } from './selection.ts'

/** A reader that is this many events behind is closed; it can come back and resume, or list anew. */
export const MaxBacklog = 10_000
/** After how many more unread events it is looked whether they are still in the store's history: if not, the reader is closed, too. */
const LookEvery = 256
const MaxRead = 1024
const MaxBatch = 64
const BookmarkEvery = minutes(1)

/** @throws StatusError for options that cannot be, and Expired when the start is no longer known */
export function watch(plane: Plane, call: Call, signal: AbortSignal): WatchStream {
  const { definition, options, request } = call
  refuseOptions(options)
  const start = startOf(options)
  const view = definition.conversion ? convertedView(plane, call) : viewOf(call)
  const { store } = plane

  const initial: Queued[] = []
  let from = store.revision
  if (start.kind === 'everything') {
    initial.push(...view.initial(store.list(definition.storage, request.namespace)))
    if (start.endMark) initial.push(bookmark(definition, from, true))
  } else if (start.kind === 'after') {
    const since = store.since(start.revision, definition.storage)
    // Upstream: what was before a resource came to be, nobody knows.
    const beginning = Math.max(plane.registry.servedSince(definition.storage), since.kind === 'expired' ? since.oldest - 1 : 0)
    if (since.kind === 'expired' || start.revision < beginning) {
      throw new StatusError('Expired', `too old resource version: ${start.revision} (${beginning})`)
    }
    for (const change of since.changes) {
      const event = view.event(change)
      if (event) initial.push(event)
    }
    from = Math.max(from, start.revision)
  }
  return new Stream(plane, call, view, initial, from, signal)
}

type Start =
  /** Every object as ADDED first; `endMark` says where they end. */
  | { readonly kind: 'everything'; readonly endMark: boolean }
  | { readonly kind: 'after'; readonly revision: number }
  | { readonly kind: 'now' }

function startOf({ resourceVersion, sendInitialEvents, allowWatchBookmarks }: RequestOptions): Start {
  const revision = parseRevision(resourceVersion)
  if (sendInitialEvents === true) return { kind: 'everything', endMark: allowWatchBookmarks === true }
  if (revision > 0) return { kind: 'after', revision }
  return sendInitialEvents === false ? { kind: 'now' } : { kind: 'everything', endMark: false }
}

/** Upstream: validateWatchOptions of k8s.io/apimachinery. */
function refuseOptions({ sendInitialEvents, resourceVersionMatch: match, continue: token }: RequestOptions): void {
  const errors: FieldError[] = []
  const refuse = (why: string) => errors.push(forbidden('resourceVersionMatch', why))
  if (sendInitialEvents !== undefined && match !== 'NotOlderThan') {
    refuse('sendInitialEvents requires setting resourceVersionMatch to NotOlderThan')
  }
  if (match !== undefined) {
    if (sendInitialEvents === undefined)
      refuse('resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided')
    if (match !== 'NotOlderThan') errors.push(notSupported('resourceVersionMatch', match, ['NotOlderThan']))
  }
  if (token) refuse(notWithContinue)
  if (errors.length > 0) throw invalidObject({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', errors)
}

/** An event, or how to get at some: by asking a conversion webhook, once the reader is there to read what it says. */
type Queued = WatchEvent | (() => Promise<readonly WatchEvent[]>)

/** How one watcher sees changes. */
interface View {
  initial(stored: readonly KubeObject[]): Queued[]
  /** `undefined` for what it does not see. */
  event(change: Change): Queued | undefined
}

function viewOf({ definition, options, request: { namespace } }: Call): View {
  const selection = selectionOf(definition, options)
  const selects = (object: KubeObject) => selection === undefined || selection(object)
  return {
    initial(stored) {
      const events: WatchEvent[] = []
      for (const one of stored) {
        const object = inVersion(definition, one)
        if (selects(object)) events.push({ type: 'ADDED', object })
      }
      return events
    },
    event(change) {
      if (namespace !== undefined && change.key.namespace !== namespace) return undefined
      const was = change.previous && selects(inVersion(definition, change.previous))
      const is = change.object && selects(inVersion(definition, change.object))
      if (is) return { type: was ? 'MODIFIED' : 'ADDED', object: inVersion(definition, change.object!) }
      // Deleted, or no longer selected: the old content, at the revision of the change.
      return was ? { type: 'DELETED', object: inVersion(definition, lastSeen(change)) } : undefined
    },
  }
}

/** The same where what is stored may have to be converted first: one call for what is there, one for each change, for all watchers. */
function convertedView({ converter }: Plane, { definition, options, request: { namespace } }: Call): View {
  const selection = selectionOf(definition, options)
  const show = (object: KubeObject) => converter.showShared(definition, object)
  const selects = async (object: KubeObject) => selection === undefined || selection(await show(object))
  return {
    initial: (stored) => [
      async () => {
        const objects = await converter.showAll(definition, stored)
        return objects
          .filter((object) => selection === undefined || selection(object))
          .map((object) => ({ type: 'ADDED', object }))
      },
    ],
    event(change) {
      if (namespace !== undefined && change.key.namespace !== namespace) return undefined
      return async () => {
        const { object, previous } = change
        const was = previous !== undefined && (await selects(previous))
        const is = object !== undefined && (await selects(object))
        if (is) return [{ type: was ? 'MODIFIED' : 'ADDED', object: await show(object) }]
        return was ? [{ type: 'DELETED', object: await show(lastSeen(change)) }] : []
      }
    },
  }
}

/** The same object for every watcher of a change. */
function lastSeen(change: Change): KubeObject {
  let object = lastSeenOf.get(change)
  if (!object) {
    const { previous, revision } = change
    object = freeze({ ...previous!, metadata: { ...previous!.metadata, resourceVersion: String(revision) } })
    lastSeenOf.set(change, object)
  }
  return object
}
const lastSeenOf = new WeakMap<Change, KubeObject>()

function bookmark({ kind, apiVersion }: Definition, revision: number, initialEventsEnd = false): WatchEvent {
  const metadata = {
    resourceVersion: String(revision),
    ...(initialEventsEnd ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {}),
  }
  return { type: 'BOOKMARK', object: freeze({ kind, apiVersion, metadata }) as unknown as KubeObject }
}

/** One watcher: a bounded queue between the store, which never waits, and a reader, who may. */
class Stream implements WatchStream {
  readonly resource: Definition
  readonly #store: Store
  #queue: Queued[]
  /** Revisions of those in the queue that are not initial. */
  #revisions: number[] = []
  #initial: number
  #taken = 0
  /** How long the queue may become: initial events, however many, are not the reader's fault. */
  #bound: number
  #wake: (() => void) | undefined
  #ended = false
  readonly #from: number
  /** The last revision that the reader knows of once it has read all that is queued. */
  #known: number
  readonly #release: (() => void)[] = []

  constructor(plane: Plane, { definition, options }: Call, view: View, initial: Queued[], from: number, signal: AbortSignal) {
    this.resource = definition
    this.#store = plane.store
    this.#queue = initial
    this.#initial = initial.length
    this.#from = from
    this.#bound = initial.length + MaxBacklog
    this.#known = from
    if (signal.aborted) {
      this.#drop()
      return
    }
    const drop = () => this.#drop()
    signal.addEventListener('abort', drop, { once: true })
    this.#release.push(() => signal.removeEventListener('abort', drop))
    this.#release.push(
      plane.store.subscribe(definition.storage, (change) => {
        if (change.revision <= from) return
        const event = view.event(change)
        if (event) this.#push(event, change.revision)
      }),
    )
    this.#release.push(plane.registry.onRemoval(definition, () => this.#end()))

    const bookmarks = options.allowWatchBookmarks === true
    if (options.timeoutSeconds) {
      const timer = plane.clock.schedule(seconds(options.timeoutSeconds), () => {
        if (bookmarks) this.#bookmark(plane.store.revision)
        this.#end()
      })
      this.#release.push(() => timer.cancel())
    }
    if (bookmarks) this.#bookmarkNowAndThen(plane)
  }

  /** Bookmarks keep a quiet watch from falling out of the window: nothing new, nothing sent. */
  #bookmarkNowAndThen(plane: Plane): void {
    let timer = plane.clock.schedule(BookmarkEvery, tick.bind(this))
    function tick(this: Stream): void {
      this.#bookmark(plane.store.revision)
      timer = plane.clock.schedule(BookmarkEvery, tick.bind(this))
    }
    this.#release.push(() => timer.cancel())
  }

  #bookmark(revision: number): void {
    if (revision > this.#known) this.#push(bookmark(this.resource, revision), revision)
  }

  #push(event: Queued, revision: number): void {
    this.#known = revision
    this.#queue.push(event)
    this.#revisions.push(revision)
    const unread = this.#queue.length - this.#taken
    if (this.#queue.length > this.#bound || (unread % LookEvery === 0 && this.#isForgotten())) this.#drop()
    else this.#wake?.()
  }

  /**
   * What is unread is kept by the store's history anyway, however many readers have yet to see it. Once history has let go of it,
   * it would be kept for this reader alone.
   */
  #isForgotten(): boolean {
    const next = this.#revisions[this.#taken - this.#initial]
    return this.#store.since(next === undefined ? this.#from : next - 1, this.resource.storage).kind === 'expired'
  }

  /** Ends without handing out what is still queued: nobody reads it any more, or it comes too late. */
  #drop(): void {
    this.#empty()
    this.#end()
  }

  #take(): Queued {
    const next = this.#queue[this.#taken++]!
    // What has been read is let go of in time, also by a reader that is never quite done.
    if (this.#taken === MaxRead) {
      this.#queue.splice(0, MaxRead)
      this.#revisions.splice(0, Math.max(0, MaxRead - this.#initial))
      this.#initial = Math.max(0, this.#initial - MaxRead)
      this.#bound = Math.max(MaxBacklog, this.#bound - MaxRead)
      this.#taken = 0
    }
    return next
  }

  #empty(): void {
    this.#queue = []
    this.#revisions = []
    this.#initial = 0
    this.#taken = 0
  }

  #end(): void {
    this.#ended = true
    for (const release of this.#release.splice(0)) release()
    this.#wake?.()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WatchEvent, void, undefined> {
    for await (const batch of this.batches()) for (const event of batch) yield event
  }

  async *batches(): AsyncGenerator<readonly WatchEvent[], void, undefined> {
    try {
      for (;;) {
        while (this.#taken < this.#queue.length) {
          const next = this.#take()
          yield typeof next === 'function' ? await next() : this.#andAfter(next)
        }
        this.#empty()
        this.#bound = MaxBacklog
        if (this.#ended) return
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
        this.#wake = undefined
      }
    } finally {
      this.#end()
    }
  }

  /** An event, and those next in the queue that are as ready. */
  #andAfter(first: WatchEvent): readonly WatchEvent[] {
    const batch = [first]
    while (this.#taken < this.#queue.length && batch.length < MaxBatch && typeof this.#queue[this.#taken] !== 'function') {
      batch.push(this.#take() as WatchEvent)
    }
    return batch
  }
}
