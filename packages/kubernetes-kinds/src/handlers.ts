/** Handlers for kinds that are not stored, and for subresources that the generic verbs do not implement. */
import type { RequestContext, Handler } from '@capstan/apiserver/kinds'
import { bind } from './subresources/bind.ts'
import { componentStatuses } from './subresources/component-status.ts'
import { connect, isConnection } from './subresources/connect.ts'
import { evict } from './subresources/evict.ts'
import { finalize } from './subresources/finalize.ts'
import { isReview, review } from './subresources/review.ts'
import { issueToken } from './subresources/token.ts'

const bySubresource: { readonly [subresource: string]: Handler } = {
  binding: bind,
  eviction: evict,
  finalize,
  token: issueToken,
}

const byResource: { readonly [storage: string]: Handler } = {
  bindings: bind,
  componentstatuses: (_, context) => componentStatuses(context),
}

/** Returns the handler of a request; `undefined` when the default implementation of the verb applies. */
export function handlerFor({ info, request: { subresource } }: RequestContext): Handler | undefined {
  if (!info.builtin) return undefined
  if (subresource === undefined && isReview(info)) return review
  if (isConnection(subresource)) return connect
  return (subresource === undefined ? undefined : bySubresource[subresource]) ?? byResource[info.storage]
}
