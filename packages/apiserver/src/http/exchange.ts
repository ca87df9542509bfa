/**
 * A request and its answer, without sockets and without web streams: the hot path moves Buffers. `listen.ts` makes requests from
 * the network, `web.ts` from the platform's `Request`.
 */
import type { Identity } from '../auth/authenticate.ts'

/** On whose behalf a request is served: its share of what all requests together may use. */
export interface Asker {
  /** Priority level. */
  readonly level: string
  /** User. Users of a level have equal shares. */
  readonly flow: string
  /** The request always gets through: health checks and superusers. */
  readonly isExempt: boolean
}

export interface HttpRequest {
  readonly method: string
  /** Path and query, as sent. */
  readonly url: string
  /** Names in lower case. */
  readonly headers: { readonly [name: string]: string | undefined }
  /** All values of a header that a client may repeat, as sent. Absent where `headers` has one value for each name. */
  readonly valuesOf?: (name: string) => readonly string[]
  /** Aborts when the client goes away. */
  readonly signal: AbortSignal
  /** Aborts when the server stops, too: for answers that do not end by themselves. */
  readonly streamSignal: AbortSignal
  /** Reads the whole body. @throws BodyTooLarge when it is longer than `limit`, TooManyRequests when the asker's share is used up */
  body(limit: number, asker?: Asker): Promise<Buffer>
  /** Set once the request was authorized. */
  readonly asker?: Asker
  /** Aborts when the request has ended: the client went away, or the response was sent because of a timeout. */
  readonly ended?: () => AbortSignal
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: { readonly [name: string]: string | readonly string[] }
  /** Parts of a stream are sent as they arrive; the next one is taken when the socket accepts more. */
  readonly body: Buffer | string | AsyncIterable<Buffer>
}

export class BodyTooLarge extends Error {
  override readonly name = 'BodyTooLarge'
}

/** Error for more requests than the server accepts. Upstream answers with text instead of a Status. */
export class TooManyRequests extends Error {
  override readonly name = 'TooManyRequests'
}

/** A server, as a function. */
export type HttpHandler = (request: HttpRequest, identity: Identity) => Promise<HttpAnswer>
