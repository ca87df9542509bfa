/**
 * All objects of a kind and their changes, as one continuous stream: a list, then a watch that resumes after disconnects, and a new list
 * when the server cannot resume the watch.
 *
 * Guarantees:
 * - The first event is `replaced`. Applying the events in order gives the state of the server at the version of the last event.
 * - The stream has no undetected gap: after a gap there is another `replaced`, and objects that it does not contain were deleted, or no
 *   longer match the selectors.
 * - Iteration ends only when `signal` aborts or the reader stops. Failures are logged and retried with increasing delays.
 */
import type { Client, WatchEvent } from './client.ts'
import type { Clock } from './clock.ts'
import { seconds, sleep } from './clock.ts'
import { isReason } from './errors.ts'
import type { Kind } from './kind.ts'
import { resourceName } from './kind.ts'
import type { Logger } from './log.ts'
import { silent } from './log.ts'
import type { KubeObject } from './object.ts'
import type { Random } from './random.ts'

export type WatcherEvent<T extends KubeObject = KubeObject> =
  /** The complete list of the existing objects that match the selectors. */
  | { readonly kind: 'replaced'; readonly objects: readonly T[]; readonly resourceVersion: string }
  /** The object was created or changed, and matches the selectors. */
  | { readonly kind: 'applied'; readonly object: T }
  /** The object was deleted, or no longer matches the selectors; contains its last known state. */
  | { readonly kind: 'deleted'; readonly object: T }
  /** The stream has delivered all events up to this version. */
  | { readonly kind: 'progress'; readonly resourceVersion: string }

export interface WatcherOptions {
  namespace?: string
  labelSelector?: string
  fieldSelector?: string
  clock: Clock
  random: Random
  signal: AbortSignal
  log?: Logger
}

/** Yields the events of a kind until `signal` aborts; see the guarantees above. */
export async function* watchObjects<T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  { clock, random, signal, log = silent, ...selection }: WatcherOptions,
): AsyncGenerator<WatcherEvent<T>, void, undefined> {
  let state: WatcherState = { state: 'unlisted', failures: 0 }
  while (!signal.aborted) {
    // Each attempt has its own signal, which closes its watch when the attempt ends.
    const attempt = new AbortController()
    const abort = () => attempt.abort(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    try {
      const delay = backoff(state, random)
      if (delay > 0) await sleep(clock, delay, attempt.signal)
      if (state.state === 'unlisted') {
        const list = await client.list(kind, { ...selection, signal: attempt.signal })
        state = nextState(state, { kind: 'listed', resourceVersion: list.metadata.resourceVersion })
        yield { kind: 'replaced', objects: list.items, resourceVersion: list.metadata.resourceVersion }
        continue
      }
      const { resourceVersion }: { resourceVersion: string } = state
      const options = { ...selection, resourceVersion, allowWatchBookmarks: true, signal: attempt.signal }
      const stream = await client.watch(kind, options)
      state = nextState(state, { kind: 'opened' })
      for await (const event of stream) {
        state = nextState(state, { kind: 'event', event })
        yield asWatcherEvent(event)
      }
      state = nextState(state, { kind: 'ended' })
    } catch (error) {
      if (signal.aborted) return
      state = nextState(state, { kind: 'failed', error })
      if (state.state === 'unlisted' && cannotResume(error))
        log.debug('Listing again', { resource: resourceName(kind), err: error })
      else log.warn('Watching failed', { resource: resourceName(kind), failures: state.failures, err: error })
    } finally {
      signal.removeEventListener('abort', abort)
      attempt.abort()
    }
  }
}

/** State of a watcher. `failures` counts the failed attempts and closed watches since the last event of a watch. */
export type WatcherState =
  /** No list is known, or the server cannot continue a watch from its version: list. */
  | { readonly state: 'unlisted'; readonly failures: number }
  /** The state at a version is known: watch from there. */
  | { readonly state: 'listed'; readonly resourceVersion: string; readonly failures: number }
  /** A watch is open. */
  | { readonly state: 'watching'; readonly resourceVersion: string; readonly failures: number }

/** Input of `nextState`: the outcome of a list or watch, or an event of a watch. */
export type WatcherInput =
  | { readonly kind: 'listed'; readonly resourceVersion: string }
  | { readonly kind: 'opened' }
  | { readonly kind: 'event'; readonly event: WatchEvent }
  /** The server closed the watch without an error, as it does regularly. */
  | { readonly kind: 'ended' }
  | { readonly kind: 'failed'; readonly error: unknown }

/** Computes the next state of a watcher from its state and an input, without side effects. */
export function nextState(state: WatcherState, input: WatcherInput): WatcherState {
  switch (input.kind) {
    case 'listed':
      return { state: 'listed', resourceVersion: input.resourceVersion, failures: state.failures }
    case 'event':
      return { state: 'watching', resourceVersion: input.event.object.metadata.resourceVersion, failures: 0 }
    case 'opened':
      return state.state === 'listed' ? { ...state, state: 'watching' } : state
    case 'ended':
      // Each end counts as a failure until the next event, so that a server that closes each watch immediately is not overloaded.
      return state.state === 'watching' ? { ...state, state: 'listed', failures: state.failures + 1 } : state
    case 'failed': {
      const failures = state.failures + 1
      if (state.state === 'unlisted' || cannotResume(input.error)) return { state: 'unlisted', failures }
      return { state: 'listed', resourceVersion: state.resourceVersion, failures }
    }
  }
}

const firstDelay = 100
const longestDelay = seconds(30)

/**
 * Returns the delay before the next attempt in milliseconds: 0 without failures, otherwise 100, doubled with each further failure up to
 * 30,000. A random time of at most this length is added, so that clients do not retry at the same time.
 */
export function backoff({ failures }: WatcherState, random: Random): number {
  if (failures === 0) return 0
  return Math.min(firstDelay * 2 ** (failures - 1), longestDelay) * (1 + random.next())
}

/** Reports whether the server cannot continue a watch from its version, because the version is too old or too new. */
const cannotResume = (error: unknown): boolean =>
  isReason(error, 'Expired', 'Gone') ||
  (isReason(error, 'Timeout') && (error.details?.causes ?? []).some(({ reason }) => reason === 'ResourceVersionTooLarge'))

function asWatcherEvent<T extends KubeObject>({ type, object }: WatchEvent<T>): WatcherEvent<T> {
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
      return { kind: 'applied', object }
    case 'DELETED':
      return { kind: 'deleted', object }
    case 'BOOKMARK':
      return { kind: 'progress', resourceVersion: object.metadata.resourceVersion }
  }
}
