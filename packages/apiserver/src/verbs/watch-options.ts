/** Determines from the options of a watch where it starts, and rejects invalid options. */
import { type FieldError, forbidden, invalidObject, notSupported, type RequestOptions } from '@capstan/kube'
import { notWithContinue } from './list.ts'
import { parseRevision } from './steps/revision.ts'

/** Where a watch starts. */
export type Start =
  /** Sends every object as ADDED first; with `endsWithBookmark`, a bookmark follows these events. */
  | { readonly kind: 'initialObjects'; readonly endsWithBookmark: boolean }
  /** Sends the changes after `revision`. */
  | { readonly kind: 'after'; readonly revision: number }
  /** Sends the changes after the start of the watch. */
  | { readonly kind: 'now' }

/** Returns where a watch starts. @throws StatusError when the resourceVersion is not a number */
export function startOf({ resourceVersion, sendInitialEvents, allowWatchBookmarks }: RequestOptions): Start {
  const revision = parseRevision(resourceVersion)
  if (sendInitialEvents === true) return { kind: 'initialObjects', endsWithBookmark: allowWatchBookmarks === true }
  if (revision > 0) return { kind: 'after', revision }
  // As upstream: without a resourceVersion, or with 0, a watch sends all objects first, and then a bookmark if the client allows bookmarks.
  // With `sendInitialEvents: false`, it sends neither.
  return sendInitialEvents === false
    ? { kind: 'now' }
    : { kind: 'initialObjects', endsWithBookmark: allowWatchBookmarks === true }
}

/** Rejects options that a watch does not support. Upstream: validateWatchOptions of k8s.io/apimachinery. @throws StatusError Invalid */
export function rejectInvalidOptions({ sendInitialEvents, resourceVersionMatch: match, continue: token }: RequestOptions): void {
  const errors: FieldError[] = []
  const reject = (problem: string) => errors.push(forbidden('resourceVersionMatch', problem))
  if (sendInitialEvents !== undefined && match !== 'NotOlderThan') {
    reject('sendInitialEvents requires setting resourceVersionMatch to NotOlderThan')
  }
  if (match !== undefined) {
    if (sendInitialEvents === undefined)
      reject('resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided')
    if (match !== 'NotOlderThan') errors.push(notSupported('resourceVersionMatch', match, ['NotOlderThan']))
  }
  if (token) reject(notWithContinue)
  if (errors.length > 0) throw invalidObject({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', errors)
}
