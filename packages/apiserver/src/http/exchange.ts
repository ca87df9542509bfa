/**
 * A request and its answer, without sockets and without web streams: the hot path moves Buffers. `listen.ts` makes requests from
 * the network, `web.ts` from the platform's `Request`.
 */
import type { User } from '../engine.ts'

export interface HttpRequest {
  readonly method: string
  /** Path and query, as sent. */
  readonly url: string
  /** Names in lower case. */
  readonly headers: { readonly [name: string]: string | undefined }
  /** Aborts when the client goes away. */
  readonly signal: AbortSignal
  /** Aborts when the server stops, too: for answers that do not end by themselves. */
  readonly streamSignal: AbortSignal
  /** Reads the whole body. @throws BodyTooLarge when it is longer than `limit` */
  body(limit: number): Promise<Buffer>
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: { readonly [name: string]: string | readonly string[] }
  /** Parts of a stream are sent as they come; taking the next one means that there is room for it. */
  readonly body: Buffer | string | AsyncIterable<Buffer>
}

export class BodyTooLarge extends Error {
  override readonly name = 'BodyTooLarge'
}

/** The server has more to do than it takes on. Upstream answers with text and not with a Status. */
export class TooManyRequests extends Error {
  override readonly name = 'TooManyRequests'
}

/** What authentication found out about whoever sent a request. */
export type Identity =
  | ({ readonly kind: 'user' } & User)
  /** Nothing was presented. */
  | { readonly kind: 'anonymous' }
  /** Something was presented, and it is not valid. */
  | { readonly kind: 'refused' }

/** A server is a function. */
export type HttpHandler = (request: HttpRequest, identity: Identity) => Promise<HttpAnswer>
