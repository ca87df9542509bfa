/**
 * WATCH: sends the initial objects, the changes after a resourceVersion, or neither; then new changes. Filters them, and sends them in batches,
 * with bookmarks.
 */
import { freeze, type KubeObject, minutes, seconds, StatusError, type WatchEvent } from '@capstan/kube'
import type { WatchStream } from './engine.ts'
import { type ResourceInfo, inVersion } from '../registry/resource-info.ts'
import type { Change, Store } from '../store/store.ts'
import type { RequestContext, ServerContext } from './context.ts'
import { rejectInvalidOptions, startOf } from './watch-options.ts'
import { selectionOf } from './steps/selection.ts'

const MaxBatch = 64
const BookmarkInterval = minutes(1)

/** Starts a watch. @throws StatusError for invalid options, and Expired when the history lacks changes after the resourceVersion */
export function watch(server: ServerContext, context: RequestContext, signal: AbortSignal): WatchStream {
  const { info, options, request } = context
  rejectInvalidOptions(options)
  const start = startOf(options)
  const view = info.conversion ? convertedView(server, context, signal) : viewOf(context)
  const { store } = server

  let begin: Begin = []
  let from = store.revision
  let unread: number | undefined
  if (start.kind === 'initialObjects') {
    const mark = start.endsWithBookmark ? [bookmark(info, from, true)] : []
    begin = view.initial(store.list(info.storage, request.namespace), mark)
  } else if (start.kind === 'after') {
    const since = store.since(start.revision, info.storage, 1)
    // Upstream: changes before a resource was first served are not available.
    const beginning = Math.max(server.registry.servedSince(info.storage), since.kind === 'expired' ? since.oldest - 1 : 0)
    if (since.kind === 'expired' || start.revision < beginning) {
      throw new StatusError('Expired', `too old resource version: ${start.revision} (${beginning})`)
    }
    unread = since.changes[0]?.revision
    from = Math.max(from, start.revision)
  }
  return new Stream(server, context, view, { begin, from, unread }, signal)
}

/** The initial events, or a function that calls the conversion webhook for them, so that the reader of the stream gets the webhook's errors. */
type Begin = readonly WatchEvent[] | (() => Promise<readonly WatchEvent[]>)

/** Converts stored objects and changes to the events of one watcher. */
interface View {
  /** Returns the initial events. `mark` contains the bookmark that follows the objects; it is empty when the client wants none. */
  initial(stored: readonly KubeObject[], mark: readonly WatchEvent[]): Begin
  /** Maximum number of changes that are processed together. */
  readonly maxChanges: number
  /** Returns the events of changes. Changes of objects that the watcher does not select have no event. */
  events(changes: readonly Change[]): readonly WatchEvent[] | Promise<readonly WatchEvent[]>
}

function viewOf({ info, options, request: { namespace } }: RequestContext): View {
  const selection = selectionOf(info, options)
  const selects = (object: KubeObject) => selection === undefined || selection(object)
  return {
    initial: (stored, mark) => [
      ...stored
        .map((object) => inVersion(info, object))
        .filter(selects)
        .map((object) => ({ type: 'ADDED' as const, object })),
      ...mark,
    ],
    maxChanges: MaxBatch,
    events(changes) {
      const events: WatchEvent[] = []
      for (const change of changes) {
        if (namespace !== undefined && change.key.namespace !== namespace) continue
        const wasSelected = change.previous && selects(inVersion(info, change.previous))
        const isSelected = change.object && selects(inVersion(info, change.object))
        if (isSelected) events.push({ type: wasSelected ? 'MODIFIED' : 'ADDED', object: inVersion(info, change.object!) })
        // The object was deleted or is no longer selected: send its old content at the revision of the change.
        else if (wasSelected) events.push({ type: 'DELETED', object: inVersion(info, lastSeen(change)) })
      }
      return events
    },
  }
}

/**
 * View with conversion by webhook. Each watcher converts its initial objects together (`convertAll`). The objects of a change
 * are converted one by one, once for all watchers.
 */
function convertedView({ converter }: ServerContext, { info, options, request }: RequestContext, signal: AbortSignal): View {
  const selection = selectionOf(info, options)
  const converted = (object: KubeObject) => converter.convertShared(info, object)
  const selects = async (object: KubeObject) => selection === undefined || selection(await converted(object))
  return {
    initial: (stored, mark) => async () => {
      const objects = await converter.convertAll(info, stored, signal).catch((err: unknown) => {
        if (signal.aborted) return []
        throw err
      })
      const selected = objects.filter((object) => selection === undefined || selection(object))
      return [...selected.map((object) => ({ type: 'ADDED' as const, object })), ...mark]
    },
    maxChanges: 1,
    async events(changes) {
      const events: WatchEvent[] = []
      for (const change of changes) {
        const { key, object, previous } = change
        if (request.namespace !== undefined && key.namespace !== request.namespace) continue
        const wasSelected = previous !== undefined && (await selects(previous))
        const isSelected = object !== undefined && (await selects(object))
        if (isSelected) events.push({ type: wasSelected ? 'MODIFIED' : 'ADDED', object: await converted(object) })
        else if (wasSelected) events.push({ type: 'DELETED', object: await converted(lastSeen(change)) })
      }
      return events
    },
  }
}

/** Returns the old object of a change with the revision of the change, for DELETED events. All watchers share the result. */
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

function bookmark({ kind, apiVersion }: ResourceInfo, revision: number, initialEventsEnd = false): WatchEvent {
  const metadata = {
    resourceVersion: String(revision),
    ...(initialEventsEnd ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {}),
  }
  return { type: 'BOOKMARK', object: freeze({ kind, apiVersion, metadata }) as unknown as KubeObject }
}

interface StartingPoint {
  readonly begin: Begin
  /** New changes are delivered if their revision is greater than this one. */
  readonly from: number
  /**
   * Revision of the first change after the resourceVersion of the client; delivery begins with it. `undefined`: there is no such change yet,
   * or the watch does not start after a resourceVersion.
   */
  readonly unread: number | undefined
}

/**
 * A watch of one client. It has no queue: it reads unread changes from the history of the store, so that a slow watcher needs no more
 * memory than a fast one. When the history no longer contains its next change, the watch ends; the client watches again, gets Expired, and
 * lists.
 */
class Stream implements WatchStream {
  readonly resource: ResourceInfo
  readonly #store: Store
  readonly #view: View
  #begin: Begin
  /** Changes up to this revision have been read, or will be read because `#unread` is set. Later changes set `#unread`. */
  #delivered: number
  /**
   * Revision up to which the client needs no bookmark: at first `from` of the StartingPoint, then the revision of the last bookmark or of
   * the last batch without unselected changes. A bookmark is sent only for a newer revision.
   */
  #known: number
  /** Revision of the oldest unread change of the resource; `undefined`: there is none. */
  #unread: number | undefined
  /** Revision of the store when a bookmark was last due; 0 before the first is due. */
  #bookmark = 0
  /** Changes after this revision are not delivered. Infinity until the watch ends; -1 after `#drop`. */
  #until = Infinity
  #wake: (() => void) | undefined
  readonly #release: (() => void)[] = []

  constructor(
    server: ServerContext,
    { info, options }: RequestContext,
    view: View,
    { begin, from, unread }: StartingPoint,
    signal: AbortSignal,
  ) {
    this.resource = info
    this.#store = server.store
    this.#view = view
    this.#begin = begin
    this.#delivered = from
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
      server.store.subscribe(info.storage, ({ revision }) => {
        if (this.#unread !== undefined || revision <= this.#delivered) return
        this.#unread = revision
        this.#wake?.()
      }),
    )
    this.#release.push(server.registry.onRemoval(info, () => this.#end()))

    const bookmarks = options.allowWatchBookmarks === true
    if (options.timeoutSeconds) {
      const timer = server.clock.schedule(seconds(options.timeoutSeconds), () => {
        if (bookmarks) this.#bookmark = server.store.revision
        this.#end()
      })
      this.#release.push(() => timer.cancel())
    }
    if (bookmarks) this.#sendBookmarks(server)
  }

  /**
   * Sends bookmarks periodically, so that the client of a quiet watch has a revision after which the history is still complete. Sends none
   * while the client has the newest revision.
   */
  #sendBookmarks({ clock, store }: ServerContext): void {
    const tick = () => {
      this.#bookmark = store.revision
      this.#wake?.()
      timer = clock.schedule(BookmarkInterval, tick)
    }
    let timer = clock.schedule(BookmarkInterval, tick)
    this.#release.push(() => timer.cancel())
  }

  /** Ends without delivering unread changes: the client has disconnected, or the history no longer contains the changes. */
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
      for (let index = 0; index < begin.length && !this.#isDropped; index += MaxBatch) yield begin.slice(index, index + MaxBatch)
      for (;;) {
        const changes = this.#take()
        if (changes.length > 0) {
          const pending = this.#view.events(changes)
          const events = 'then' in pending ? await pending : pending
          if (events.length === changes.length) this.#known = this.#delivered
          if (events.length > 0) yield events
        } else if (this.#bookmark > this.#known && !this.#isDropped) {
          // Events that were sent after the timer fired may be newer.
          this.#known = Math.max(this.#bookmark, this.#delivered)
          yield [bookmark(this.resource, this.#known)]
        } else if (this.#until < Infinity) return
        else await this.#nextChange()
        const pause = pace?.()
        if (pause) await pause
      }
    } finally {
      this.#end()
    }
  }

  /** Returns the next unread changes, oldest first. */
  #take(): readonly Change[] {
    if (this.#unread === undefined || this.#unread > this.#until) return []
    const { maxChanges } = this.#view
    const since = this.#store.since(this.#unread - 1, this.resource.storage, maxChanges + 1)
    if (since.kind === 'expired') {
      this.#drop()
      return []
    }
    const changes = since.changes.slice(0, maxChanges).filter(({ revision }) => revision <= this.#until)
    this.#unread = since.changes[maxChanges]?.revision
    this.#delivered = Math.max(this.#delivered, changes.at(-1)!.revision)
    return changes
  }

  #nextChange(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = () => {
        this.#wake = undefined
        resolve()
      }
    })
  }
}
