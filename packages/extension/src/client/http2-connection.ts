/** An HTTP/2 connection for concurrent calls. Upstream: golang.org/x/net/http2, Transport, as configured by k8s.io/apimachinery. */
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants as http2 } from 'node:http2'
import type { TLSSocket } from 'node:tls'
import { type Clock, seconds, type Timer } from '@capstan/kube'
import { goError, goneAway, NotHandled, unexpectedEnd } from './connection-errors.ts'
import { NoAnswer } from './hook-failed.ts'
import { http2Body } from './http2-body.ts'
import type { Exchange } from './host-connections.ts'
import type { HttpResponse } from './transport.ts'

/**
 * The connection is checked each time `interval` has passed. If it has had no calls for the time `idle`, the client closes it.
 * Otherwise, if it has received no data since the last check, the client sends a ping, which the server must answer within
 * `answer`.
 */
const timeouts = { interval: seconds(30), answer: seconds(15), idle: seconds(90) }

/** Maximum number of attempts for a call that servers did not start to process. */
const maxTries = 6

/** Flow-control window of a stream: bytes of a response that may be unread. */
const streamWindow = 4 * 2 ** 20
/** Flow-control window of the connection: bytes of all its responses that may be unread. */
const connectionWindow = 64 * 2 ** 20

const settings = { enablePush: false, initialWindowSize: streamWindow, maxHeaderListSize: 64 * 1024 }

/**
 * Opens an HTTP/2 connection on a socket that has negotiated HTTP/2; resolves after the server's SETTINGS.
 *
 * @throws Error if the connection fails or is closed before the SETTINGS arrive
 */
export async function openHttp2(socket: TLSSocket, url: URL, clock: Clock): Promise<Http2Connection> {
  // The memory limit is in megabytes. Node counts unsent requests too, so the limit must allow several long requests. The readers of
  // responses limit the length of responses.
  const session = connect(url.origin, { createConnection: () => socket, settings, maxSessionMemory: 1024 })
  const connection = new Http2Connection(session, socket, clock)
  await new Promise<void>((resolve, reject) => {
    session.once('remoteSettings', () => resolve())
    session.once('close', () => reject(connection.closeError(url)))
  })
  session.setLocalWindowSize(connectionWindow)
  return connection
}

export class Http2Connection {
  readonly #session: ClientHttp2Session
  readonly #socket: TLSSocket
  readonly #clock: Clock
  #streams = 0
  #maxStreams = 0
  /** The GOAWAY frame, with which the server stops accepting calls. */
  #goaway: { readonly code: number; readonly lastStream: number } | undefined
  #error: Error | null = null
  #usedAt: number
  #watch: Timer

  constructor(session: ClientHttp2Session, socket: TLSSocket, clock: Clock) {
    this.#session = session
    this.#socket = socket
    this.#clock = clock
    this.#usedAt = clock.elapsed()
    this.#watch = this.#watchFrom(socket.bytesRead)
    session.on('remoteSettings', ({ maxConcurrentStreams = Infinity }) => {
      this.#maxStreams = maxConcurrentStreams
    })
    session.on('goaway', (code, lastStream) => {
      this.#goaway = { code, lastStream }
    })
    const failed = (err: Error) => {
      this.#error ??= err
      // Closing the session would wait for the server.
      socket.destroy()
    }
    session.on('error', failed)
    socket.on('error', failed)
    session.on('close', () => this.#watch.cancel())
  }

  /** Number of calls in progress. */
  get calls(): number {
    return this.#streams
  }

  get isOpen(): boolean {
    return !this.#session.closed && !this.#session.destroyed
  }

  /**
   * Whether another call may start. If no call is in progress, a call may start even if the server allows no streams: the call then
   * waits.
   */
  get acceptsCalls(): boolean {
    return this.isOpen && (this.#streams === 0 || this.#streams < this.#maxStreams)
  }

  /**
   * Sends a request; resolves when the response begins. Calls `ended` when the stream is closed, or at once if the
   * signal has already aborted.
   *
   * @throws NotHandled if the server certainly did not start to process the request; the signal's reason if the signal aborts; another
   *   error if the request fails
   */
  exchange({ url, payload, headers, signal }: Exchange, ended: () => void): Promise<HttpResponse> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        ended()
        return reject(signal.reason)
      }
      const stream = this.#session.request({
        ':method': 'POST',
        ':authority': url.host,
        ':path': url.pathname + url.search,
        ...headers,
        'content-type': 'application/json',
        'content-length': payload.length,
      })
      this.#streams++
      // Closes only this stream.
      const abort = () => {
        stream.close(http2.NGHTTP2_CANCEL)
        reject(signal.reason)
      }
      signal.addEventListener('abort', abort, { once: true })
      let isAnswered = false
      stream.on('response', ({ ':status': status = 0 }) => {
        isAnswered = true
        resolve({ status, body: http2Body(stream, () => this.closeError(url, stream.errored ?? this.#error)) })
      })
      // The error is reported on `close`.
      stream.on('error', () => {})
      stream.once('close', () => {
        signal.removeEventListener('abort', abort)
        this.#usedAt = this.#clock.elapsed()
        this.#streams--
        ended()
        if (!isAnswered) reject(this.#noResponseError(stream, url))
      })
      stream.end(payload)
    })
  }

  /** Accepts no more calls. Calls in progress complete. */
  close(): void {
    this.#session.close()
  }

  destroy(): void {
    this.#session.destroy()
  }

  /** Returns the error for a call without a complete response. `err`: error of the stream or connection, `null` if there is none. */
  closeError(url: URL, err: NodeJS.ErrnoException | null = this.#error): Error {
    if (this.#goaway && (err === null || err.code === 'ERR_HTTP2_SESSION_ERROR')) {
      return goneAway(this.#goaway.code, err)
    }
    return err === null ? unexpectedEnd() : goError(err, url)
  }

  #noResponseError(stream: ClientHttp2Stream, url: URL): Error {
    const failure: NodeJS.ErrnoException | null = stream.errored ?? this.#error
    const reason = this.closeError(url, failure)
    const wasSent = stream.id !== undefined && !notSent.has(failure?.code ?? '')
    const wasSeen = wasSent && (this.#goaway === undefined || stream.id! <= this.#goaway.lastStream)
    return wasSeen && stream.rstCode !== http2.NGHTTP2_REFUSED_STREAM ? reason : new NotHandled(reason, maxTries)
  }

  /** Starts the timer of the next check. @param read bytes received up to the last check */
  #watchFrom(read: number): Timer {
    return this.#clock.schedule(timeouts.interval, () => {
      const { bytesRead } = this.#socket
      if (this.#streams === 0 && this.#clock.elapsed() - this.#usedAt >= timeouts.idle) return this.#session.close()
      if (bytesRead === read) this.#ping()
      else this.#watch = this.#watchFrom(bytesRead)
    })
  }

  #ping(): void {
    this.#watch = this.#clock.schedule(timeouts.answer, () => {
      this.#session.destroy(new NoAnswer('ConnectionReset', 'http2: client connection lost'))
    })
    this.#session.ping(() => {
      this.#watch.cancel()
      if (this.isOpen) this.#watch = this.#watchFrom(this.#socket.bytesRead)
    })
  }
}

/** Error codes of Node for streams that were never opened. */
const notSent: ReadonlySet<string> = new Set([
  'ERR_HTTP2_GOAWAY_SESSION',
  'ERR_HTTP2_INVALID_SESSION',
  'ERR_HTTP2_OUT_OF_STREAMS',
  'ERR_HTTP2_STREAM_CANCEL',
])
