/**
 * A request and its response, without sockets. Bodies are not web streams, because these are slower. `listen.ts` creates requests from the
 * network, `web.ts` from the platform's `Request`.
 */
import type { Identity } from '../auth/authenticate.ts'

/** Priority level and user of a request, which determine its share of seats and budgets. */
export interface Requester {
  /** Priority level. */
  readonly level: string
  /** User. Users of a level have equal shares. */
  readonly flow: string
  /** True for health checks, watches and superusers, which need no seat and no budget. */
  readonly isExempt: boolean
}

export interface HttpRequest {
  readonly method: string
  /** Path and query, as sent. */
  readonly url: string
  /** Names in lower case. */
  readonly headers: { readonly [name: string]: string | undefined }
  /** Returns all values of a header, as the client sent them. If absent, each header has only its value in `headers`. */
  readonly valuesOf?: (name: string) => readonly string[]
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal
  /** Aborts when the client disconnects or the server stops: for responses that do not end by themselves. */
  readonly streamSignal: AbortSignal
  /** Reads the whole body. @throws BodyTooLarge when it is longer than `limit` bytes, TooManyRequests when the requester's share is used up */
  body(limit: number, requester?: Requester): Promise<Buffer>
  /** Set once the body of an authorized request is read; absent for GET, HEAD and watches. */
  readonly requester?: Requester
  /**
   * Returns a signal that aborts when the client disconnects, or the request times out and is answered. Absent for watches, and until the
   * timeout of the request has started.
   */
  readonly ended?: () => AbortSignal
}

export interface HttpResponse {
  readonly status: number
  readonly headers: { readonly [name: string]: string | readonly string[] }
  /** Parts of a stream are sent as they arrive. While too many bytes wait for the socket, no further part is taken. */
  readonly body: Buffer | string | AsyncIterable<Buffer>
}

/** Maximum size of a request body. Upstream: MaxRequestBodyBytes of k8s.io/apiserver. */
export const maxBodyBytes = 3 * 1024 * 1024

export class BodyTooLarge extends Error {
  override readonly name = 'BodyTooLarge'
}

/** Error for more requests than the server accepts. As upstream, the response is text instead of a Status. */
export class TooManyRequests extends Error {
  override readonly name = 'TooManyRequests'
}

/** A server, as a function from request to response. */
export type HttpHandler = (request: HttpRequest, identity: Identity) => Promise<HttpResponse>
