/** LIST: returns the newest state, an older revision, or one page of a list. Upstream: API Concepts, "Resource versions". */
import {
  badRequest,
  forbidden,
  freeze,
  type FieldError,
  invalidObject,
  type KubeObject,
  type ObjectList,
  type RequestOptions,
  scanJSON,
  seconds,
  sleep,
  StatusError,
} from '@capstan/kube'
import { inVersion } from '../registry/resource-info.ts'
import type { RequestContext, ServerContext } from './context.ts'
import { invalidRevisionText } from './steps/revision.ts'
import { selectionOf } from './steps/selection.ts'

export async function list(server: ServerContext, context: RequestContext): Promise<ObjectList> {
  const { info, options, request } = context
  const selection = selectionOf(info, options)
  const page = await pageOf(server, context)
  const snapshot =
    page.revision === undefined
      ? server.store.list(info.storage, request.namespace)
      : server.store.listAt(page.revision, info.storage, request.namespace)
  if (!snapshot) throw expired(page)

  const revision = page.revision ?? server.store.revision
  const items: KubeObject[] = []
  let remaining = 0
  const source = page.after === undefined ? snapshot : snapshot.slice(firstAfter(snapshot, page.after))
  const candidates = selection || page.limit === undefined ? source : source.slice(0, page.limit)
  const converted = info.conversion ? await server.converter.convertAll(info, candidates, context.ended?.()) : undefined
  for (let index = 0; index < source.length; index++) {
    const isFull = items.length === page.limit
    if (isFull && !selection) {
      remaining = source.length - index
      break
    }
    const object = converted ? converted[index]! : inVersion(info, source[index]!)
    if (selection && !selection(object)) continue
    if (isFull) {
      // One or more: with a selector, the exact number is unknown. Upstream does not report it, either.
      remaining = 1
      break
    }
    items.push(object)
  }
  return freeze({
    apiVersion: info.apiVersion,
    kind: info.listKind,
    metadata: {
      ...(remaining > 0 ? { continue: encodeToken({ rv: revision, start: `${sortKeyOf(items.at(-1)!)}\0` }) } : {}),
      ...(remaining > 0 && !selection ? { remainingItemCount: remaining } : {}),
      // As upstream: only lists of custom resources contain an empty token.
      ...(remaining === 0 && !info.builtin ? { continue: '' } : {}),
      resourceVersion: String(revision),
    },
    items,
  })
}

interface Page {
  /** Revision to read; absent: the newest one. */
  readonly revision: number | undefined
  readonly limit: number | undefined
  /** Key of the last item on the previous page. */
  readonly after: string | undefined
}

async function pageOf(server: ServerContext, { options, ended }: RequestContext): Promise<Page> {
  const { resourceVersion: requested, resourceVersionMatch: match } = options
  rejectInvalidOptions(options)
  const limit = options.limit !== undefined && options.limit > 0 ? options.limit : undefined
  if (options.continue) {
    const { rv, start } = parseToken(options.continue)
    if (requested && requested !== '0') throw badRequest('specifying resource version is not allowed when using continue')
    return { revision: rv === -1 ? undefined : rv, limit, after: start.replace(/\0$/, '') }
  }
  if (!requested) return { revision: undefined, limit, after: undefined }
  if (!/^\d+$/.test(requested)) throw badRequest(`invalid resource version: ${invalidRevisionText(requested)}`)
  const revision = Number(requested)
  if (revision === 0) return { revision: undefined, limit: undefined, after: undefined }
  await waitForRevision(server, revision, ended)
  const isExact = match === 'Exact' || (match === undefined && limit !== undefined)
  return { revision: isExact ? revision : undefined, limit, after: undefined }
}

/** @throws StatusError Invalid for options that a list does not support. Upstream: ValidateListOptions of k8s.io/apimachinery */
function rejectInvalidOptions(options: RequestOptions): void {
  const { resourceVersion: requested, resourceVersionMatch: match, sendInitialEvents } = options
  const errors: FieldError[] = []
  if (match !== undefined) {
    if (!requested) {
      errors.push(forbidden('resourceVersionMatch', 'resourceVersionMatch is forbidden unless resourceVersion is provided'))
    } else if (match === 'Exact' && requested === '0') {
      errors.push(forbidden('resourceVersionMatch', 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    }
    if (options.continue) errors.push(forbidden('resourceVersionMatch', notWithContinue))
    if (match !== 'Exact' && match !== 'NotOlderThan') {
      const text = `Unsupported value: ${JSON.stringify(match)}: supported values: "Exact", "NotOlderThan", ""`
      errors.push({ type: 'FieldValueNotSupported', field: 'resourceVersionMatch', text })
    }
  }
  if (sendInitialEvents !== undefined) {
    errors.push(forbidden('sendInitialEvents', 'sendInitialEvents is forbidden for list'))
  }
  if (errors.length > 0) throw invalidObject({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', errors)
}

/** Error text for resourceVersionMatch in a request with a continue token. */
export const notWithContinue = 'resourceVersionMatch is forbidden when continue is provided'

/**
 * Waits up to three seconds until the store has the revision.
 *
 * @throws StatusError Timeout when it is not reached; the reason of the signal `ended()` when the signal aborts first
 */
export async function waitForRevision(
  { store, clock }: ServerContext,
  revision: number,
  ended: RequestContext['ended'],
): Promise<void> {
  if (revision <= store.revision) return
  const signal = ended?.()
  const reached = new AbortController()
  // A write to any resource may reach the revision.
  const unsubscribe = store.subscribe(undefined, () => {
    if (store.revision >= revision) reached.abort()
  })
  try {
    await sleep(clock, seconds(3), signal ? AbortSignal.any([signal, reached.signal]) : reached.signal)
  } catch {
    signal?.throwIfAborted()
  } finally {
    unsubscribe()
  }
  if (revision > store.revision) throw tooLargeRevision(revision, store.revision)
}

const tooLargeRevision = (revision: number, current: number): StatusError =>
  new StatusError('Timeout', `Timeout: Too large resource version: ${revision}, current: ${current}`, {
    details: { causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }], retryAfterSeconds: 1 },
  })

// Continue tokens, in upstream's format

interface Token {
  /** Revision of the list; -1 for the newest. */
  readonly rv: number
  /** Key of the last item that was returned, and a zero byte. */
  readonly start: string
}

const tokenVersion = 'meta.k8s.io/v1'

const encodeToken = ({ rv, start }: Token): string =>
  Buffer.from(JSON.stringify({ v: tokenVersion, rv, start })).toString('base64url')

function parseToken(text: string): Token {
  const json = Buffer.from(text, 'base64url').toString('latin1')
  const reject = (problem: string) => badRequest(`invalid continue token: continue key is not valid: ${problem}`)
  // Go reports the position of the first illegal character, or of a single character that remains after the groups of four.
  if (/[^\w-]/.test(text) || text.length % 4 === 1)
    throw reject(`illegal base64 data at input byte ${Math.max(text.search(/[^\w-]/), text.length - (text.length % 4 || 4))}`)
  const { error } = scanJSON(json)
  if (error !== undefined) throw reject(error)
  const parsed = JSON.parse(json) as (Partial<Token> & { v?: unknown }) | null
  const version = typeof parsed?.v === 'string' ? parsed.v : ''
  if (version !== tokenVersion) throw reject(`server does not recognize this encoded version ${version}`)
  const { rv = 0, start = '' }: Partial<Token> = parsed ?? {}
  if (!Number.isInteger(rv) || typeof start !== 'string') throw reject('incorrect encoded start key')
  if (rv === 0) throw reject(`incorrect encoded start resourceVersion (version ${tokenVersion})`)
  if (start === '') throw reject(`encoded start key empty (version ${tokenVersion})`)
  // Upstream: the key is a path in etcd, and must not lead out of the resource.
  if (start.split('/').includes('..')) throw reject(start)
  return { rv, start }
}

const sortKeyOf = ({ metadata }: KubeObject): string => `${metadata.namespace ?? ''}/${metadata.name}`

/** Returns the index of the first object after `key`, in a list sorted by key. */
function firstAfter(objects: readonly KubeObject[], key: string): number {
  let low = 0
  let high = objects.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (sortKeyOf(objects[middle]!) <= key) low = middle + 1
    else high = middle
  }
  return low
}

function expired({ after }: Page): StatusError {
  if (after === undefined) return new StatusError('Expired', 'The resourceVersion for the provided list is too old.')
  return new ExpiredToken(encodeToken({ rv: -1, start: `${after}\0` }))
}

/** Error for a token whose revision has left the history. Its Status has a token that continues after the same key in the newest state. */
class ExpiredToken extends StatusError {
  readonly #token: string

  constructor(next: string) {
    super(
      'Expired',
      'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.',
    )
    this.#token = next
  }

  override get status() {
    return { ...super.status, metadata: { continue: this.#token } }
  }
}
