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

/** Events that are handed out together, at most. */
const MaxBatch = 64
const BookmarkEvery = minutes(1)

/** @throws StatusError for options that cannot be, and Expired when the start is no longer known */
export function watch(plane: Plane, call: Call, signal: AbortSignal): WatchStream {
  const { definition, options, request } = call
  refuseOptions(options)
  const start = startOf(options)
  const view = definition.conversion ? convertedView(plane, call) : viewOf(call)
  const { store } = plane

  let begin: Begin = []
  let from = store.revision
  let unread: number | undefined
  if (start.kind === 'everything') {
    const mark = start.endMark ? [bookmark(definition, from, true)] : []
    begin = view.initial(store.list(definition.storage, request.namespace), mark)
  } else if (start.kind === 'after') {
    const since = store.since(start.revision, definition.storage, 1)
    // Upstream: what was before a resource came to be, nobody knows.
    const beginning = Math.max(plane.registry.servedSince(definition.storage), since.kind === 'expired' ? since.oldest - 1 : 0)
    if (since.kind === 'expired' || start.revision < beginning) {
      throw new StatusError('Expired', `too old resource version: ${start.revision} (${beginning})`)
    }
    unread = since.changes[0]?.revision
    from = Math.max(from, start.revision)
  }
  return new Stream(plane, call, view, { begin, from, unread }, signal)
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
  // Upstream: whoever names no version means that all comes first, and is told where it ends if marks are welcome.
  return sendInitialEvents === false ? { kind: 'now' } : { kind: 'everything', endMark: allowWatchBookmarks === true }
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

/** What a watch begins with; where a conversion webhook has to be asked, once the reader is there to read what it says. */
type Begin = readonly WatchEvent[] | (() => Promise<readonly WatchEvent[]>)

/** How one watcher sees what is stored, and what happens to it. */
interface View {
  /** `mark` comes behind the objects. */
  initial(stored: readonly KubeObject[], mark: readonly WatchEvent[]): Begin
  /** How many changes may wait for each other to be looked at. */
  readonly together: number
  /** Nothing for what it does not see. */
  events(changes: readonly Change[]): readonly WatchEvent[] | Promise<readonly WatchEvent[]>
}

function viewOf({ definition, options, request: { namespace } }: Call): View {
  const selection = selectionOf(definition, options)
  const selects = (object: KubeObject) => selection === undefined || selection(object)
  return {
    initial: (stored, mark) => [
      ...stored
        .map((one) => inVersion(definition, one))
        .filter(selects)
        .map((object) => ({ type: 'ADDED' as const, object })),
      ...mark,
    ],
    together: MaxBatch,
    events(changes) {
      const events: WatchEvent[] = []
      for (const change of changes) {
        if (namespace !== undefined && change.key.namespace !== namespace) continue
        const was = change.previous && selects(inVersion(definition, change.previous))
        const is = change.object && selects(inVersion(definition, change.object))
        if (is) events.push({ type: was ? 'MODIFIED' : 'ADDED', object: inVersion(definition, change.object!) })
        // Deleted, or no longer selected: the old content, at the revision of the change.
        else if (was) events.push({ type: 'DELETED', object: inVersion(definition, lastSeen(change)) })
      }
      return events
    },
  }
}

/** The same where what is stored may have to be converted first: one call for what is there, one for each change, for all watchers. */
function convertedView({ converter }: Plane, { definition, options, request: { namespace } }: Call): View {
  const selection = selectionOf(definition, options)
  const show = (object: KubeObject) => converter.showShared(definition, object)
  const selects = async (object: KubeObject) => selection === undefined || selection(await show(object))
  return {
    initial: (stored, mark) => async () => {
      const objects = await converter.showAll(definition, stored)
      const selected = objects.filter((object) => selection === undefined || selection(object))
      return [...selected.map((object) => ({ type: 'ADDED' as const, object })), ...mark]
    },
    together: 1,
    async events(changes) {
      const events: WatchEvent[] = []
      for (const change of changes) {
        const { key, object, previous } = change
        if (namespace !== undefined && key.namespace !== namespace) continue
        const was = previous !== undefined && (await selects(previous))
        const is = object !== undefined && (await selects(object))
        if (is) events.push({ type: was ? 'MODIFIED' : 'ADDED', object: await show(object) })
        else if (was) events.push({ type: 'DELETED', object: await show(lastSeen(change)) })
      }
      return events
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

/** Where a watcher stands at first. */
interface Standing {
  readonly begin: Begin
  /** Revision behind which news are news. */
  readonly from: number
  /** The oldest change before that which is to be told all the same. */
  readonly unread: number | undefined
}

/**
 * One watcher. What it has yet to read is the store's history, however many watchers there are and however slow they read. Once history has
 * let go of it, the watch ends: its reader can come back, and is told to list anew.
 */
class Stream implements WatchStream {
  readonly resource: Definition
  readonly #store: Store
  readonly #view: View
  #begin: Begin
  /** Revision up to which the reader has been told everything that it watches. */
  #told: number
  /** Revision that the reader knows of, at least: what it does not watch tells it nothing. */
  #known: number
  /** Revision of the oldest change that it has not. */
  #unread: number | undefined
  /** Revision to tell a quiet reader of. */
  #bookmark = 0
  /** Revision behind which nothing is told any more. */
  #until = Infinity
  #wake: (() => void) | undefined
  readonly #release: (() => void)[] = []

  constructor(plane: Plane, { definition, options }: Call, view: View, { begin, from, unread }: Standing, signal: AbortSignal) {
    this.resource = definition
    this.#store = plane.store
    this.#view = view
    this.#begin = begin
    this.#told = from
    this.#known = from
    this.#unread = unread
    if (signal.aborted) {
      this.#drop()
      return
    }
    const drop = () => this.#drop()
    signal.addEventListener('abort', drop, { once: true })
    this.#release.push(() => signal.removeEventListener('abort', drop))
    this.#release.push(
      plane.store.subscribe(definition.storage, ({ revision }) => {
        if (this.#unread !== undefined || revision <= this.#told) return
        this.#unread = revision
        this.#wake?.()
      }),
    )
    this.#release.push(plane.registry.onRemoval(definition, () => this.#end()))

    const bookmarks = options.allowWatchBookmarks === true
    if (options.timeoutSeconds) {
      const timer = plane.clock.schedule(seconds(options.timeoutSeconds), () => {
        if (bookmarks) this.#bookmark = plane.store.revision
        this.#end()
      })
      this.#release.push(() => timer.cancel())
    }
    if (bookmarks) this.#bookmarkNowAndThen(plane)
  }

  /** Bookmarks keep a quiet watch from falling out of the window: nothing new, nothing sent. */
  #bookmarkNowAndThen({ clock, store }: Plane): void {
    const tick = () => {
      this.#bookmark = store.revision
      this.#wake?.()
      timer = clock.schedule(BookmarkEvery, tick)
    }
    let timer = clock.schedule(BookmarkEvery, tick)
    this.#release.push(() => timer.cancel())
  }

  /** Ends without handing out what is unread: nobody reads it any more, or it comes too late. */
  #drop(): void {
    this.#begin = []
    this.#end()
    this.#until = -1
  }

  get #isDropped(): boolean {
    return this.#until < 0
  }

  #end(): void {
    this.#until = Math.min(this.#until, this.#store.revision)
    for (const release of this.#release.splice(0)) release()
    this.#wake?.()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WatchEvent, void, undefined> {
    for await (const batch of this.batches()) for (const event of batch) yield event
  }

  async *batches(pace?: () => Promise<void> | undefined): AsyncGenerator<readonly WatchEvent[], void, undefined> {
    try {
      const begin = typeof this.#begin === 'function' ? await this.#begin() : this.#begin
      this.#begin = []
      for (let at = 0; at < begin.length && !this.#isDropped; at += MaxBatch) yield begin.slice(at, at + MaxBatch)
      for (;;) {
        const changes = this.#take()
        if (changes.length > 0) {
          const seen = this.#view.events(changes)
          const events = 'then' in seen ? await seen : seen
          if (events.length === changes.length) this.#known = this.#told
          if (events.length > 0) yield events
        } else if (this.#bookmark > this.#known && !this.#isDropped) {
          this.#known = this.#bookmark
          yield [bookmark(this.resource, this.#bookmark)]
        } else if (this.#until < Infinity) return
        else await this.#news()
        const turn = pace?.()
        if (turn) await turn
      }
    } finally {
      this.#end()
    }
  }

  /** The next changes to tell of, oldest first. */
  #take(): readonly Change[] {
    if (this.#unread === undefined || this.#unread > this.#until) return []
    const { together } = this.#view
    const since = this.#store.since(this.#unread - 1, this.resource.storage, together + 1)
    if (since.kind === 'expired') {
      this.#drop()
      return []
    }
    const changes = since.changes.slice(0, together).filter(({ revision }) => revision <= this.#until)
    this.#unread = since.changes[together]?.revision
    this.#told = Math.max(this.#told, changes.at(-1)!.revision)
    return changes
  }

  #news(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = () => {
        this.#wake = undefined
        resolve()
      }
    })
  }
}
