/** Serves a request handler function over TLS with HTTP/2 and HTTP/1.1. */
import { constants as crypto } from 'node:crypto'
import { once } from 'node:events'
import type { OutgoingHttpHeaders } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Session } from 'node:http2'
import { constants as http2, createSecureServer } from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { ReadableStream } from 'node:stream/web'
import type { TLSSocket } from 'node:tls'
import type { Clock, Logger } from '@capstan/kube'
import { seconds, silent, systemClock } from '@capstan/kube'
import { serverUrl } from '@capstan/kube/node'
import type { FetchHandler } from './server.ts'

export interface ListenOptions extends ServingCertificate {
  /** Default: 127.0.0.1. Empty: all addresses of this machine. */
  readonly host?: string
  /** Default: 0, any free port. */
  readonly port?: number
  /** Minimum TLS version. Default: 1.2. */
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3'
  /** Cipher suites by their OpenSSL names, separated by colons. Default: those of Node. */
  readonly ciphers?: string
  /** Default: the system clock. */
  readonly clock?: Clock
  /** Default: no log lines. */
  readonly log?: Logger
  /** Timeouts for clients in milliseconds. Default: handshake 10 s, headers 32 s, reading 30 s, idle 90 s. */
  readonly timeouts?: Partial<ClientTimeouts>
}

/** The certificate that the server presents, and the authorities of clients that may call. */
export interface ServingCertificate {
  /** PEM. */
  readonly certificate: string
  /** PEM. A secret. */
  readonly key: string
  /** PEM. Only clients with a certificate of these authorities may call. If absent, clients need no certificate. */
  readonly clientCA?: string
}

interface ClientTimeouts {
  /** For the TLS handshake. */
  readonly handshake: number
  /** For the request headers, in HTTP/1.1. */
  readonly headers: number
  /** For reading the response. */
  readonly reading: number
  /** For an idle connection, which is closed afterwards. */
  readonly idle: number
}

/** The timeouts for headers and idle connections are those of upstream's Go server, which has no timeout for reading a response. */
const defaultTimeouts: ClientTimeouts = { handshake: seconds(10), headers: seconds(32), reading: seconds(30), idle: seconds(90) }

const MaxHeaderBytes = 64 * 1024
const MaxConnections = 2000
/** Maximum time in milliseconds for sending the last responses before connections are closed. */
const lastResponsesTime = seconds(1)
/** Maximum number of concurrent streams on a connection. Go's HTTP/2 server has the same limit. */
const MaxStreams = 250

export interface Listening {
  readonly url: string
  readonly port: number
  /**
   * Uses this certificate for new connections. Whether clients need a certificate does not change, so `clientCA` must be set if
   * and only if it was set for `listen`.
   *
   * @throws Error if certificate and key do not match
   */
  renew(certified: ServingCertificate): void
  /**
   * Rejects new connections, and asks clients to send further calls on other connections. Calls in progress can complete;
   * after `grace` milliseconds, aborts calls that are still in progress. `grace` defaults to the timeout `reading`.
   */
  close(grace?: number): Promise<void>
}

/** Starts the server. @throws Error if it cannot listen on the port, or cannot use certificate and key */
export async function listen(handle: FetchHandler, options: ListenOptions): Promise<Listening> {
  const { host = '127.0.0.1', port = 0, clock = systemClock, log = silent } = options
  const timeouts = { ...defaultTimeouts, ...options.timeouts }
  const contextOf = (serving: ServingCertificate) => ({
    cert: serving.certificate,
    key: serving.key,
    minVersion: options.minVersion ?? 'TLSv1.2',
    ...(options.ciphers === undefined ? {} : { ciphers: options.ciphers }),
    // A resumed session would skip the verification of the client certificate.
    secureOptions: crypto.SSL_OP_NO_TICKET,
    ...(serving.clientCA === undefined ? {} : { ca: serving.clientCA }),
  })
  const server = createSecureServer({
    allowHTTP1: true,
    ...contextOf(options),
    ...(options.clientCA === undefined ? {} : { requestCert: true, rejectUnauthorized: true }),
    handshakeTimeout: timeouts.handshake,
    settings: { maxConcurrentStreams: MaxStreams, maxHeaderListSize: MaxHeaderBytes },
    // Memory limit of an HTTP/2 connection, in megabytes.
    maxSessionMemory: 32,
    ...http1Options(timeouts),
  })
  server.maxConnections = MaxConnections
  server.setTimeout(0)

  // Includes connections whose TLS handshake has not ended.
  const sockets = new Set<Socket>()
  const sessions = new Set<ServerHttp2Session>()
  server.on('connection', (socket: Socket) => sockets.add(socket.on('close', () => sockets.delete(socket))))
  server.on('secureConnection', (socket: TLSSocket) => {
    socket.setNoDelay(true)
    socket.setKeepAlive(true, seconds(30))
    socket.on('error', (err) => log.debug('Connection failed', { err }))
  })
  server.on('session', (session) => {
    sessions.add(session)
    session.on('close', () => sessions.delete(session))
    closeWhenIdle(session, timeouts.idle, clock)
  })
  server.on('clientError', (err, socket) => rejectMalformed(err, socket, clock))
  server.on('tlsClientError', (err) => log.debug('TLS handshake failed', { err }))
  server.on('sessionError', (err) => log.debug('HTTP/2 session failed', { err }))

  let underWay = 0
  let onIdle: (() => void) | undefined
  let closing: Promise<void> | undefined
  server.on('request', (incoming, outgoing) => {
    underWay++
    // The client then sends its next call on another connection. In HTTP/2, GOAWAY has this effect.
    if (closing && incoming.httpVersionMajor === 1) outgoing.setHeader('connection', 'close')
    void respond(handle, incoming, outgoing, { timeouts, clock, log }).finally(() => {
      if (--underWay === 0) onIdle?.()
    })
  })

  server.listen(port, host === '' ? undefined : host)
  // Rejects if the server emits `error` first, for example because the port is in use.
  await once(server, 'listening')
  server.on('error', (err) => log.error('Server failed', { err }))
  const { port: bound } = server.address() as AddressInfo

  const close = async (grace: number): Promise<void> => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    const sessionsClosed = Promise.all([...sessions].map(closeSession))
    if ('closeIdleConnections' in server) (server.closeIdleConnections as () => void)()
    const allAnswered = new Promise<void>((resolve) => {
      onIdle = resolve
      if (underWay === 0) resolve()
    })
    // An HTTP/2 session can still have bytes of a response to send after the response's stream has closed.
    const sent = allAnswered.then(() => waitAtMost(Math.min(grace, lastResponsesTime), sessionsClosed, clock))
    await waitAtMost(grace, sent, clock)
    for (const socket of sockets) socket.destroy()
    await closed
  }
  return {
    url: serverUrl('https', host, bound),
    port: bound,
    renew: (serving) => server.setSecureContext(contextOf(serving)),
    close: (grace = timeouts.reading) => (closing ??= close(grace)),
  }
}

/** Options for HTTP/1.1, which the types of the HTTP/2 server lack. */
const http1Options = ({ headers, reading, idle }: ClientTimeouts) => ({
  maxHeaderSize: MaxHeaderBytes,
  headersTimeout: headers,
  keepAliveTimeout: idle,
  // Node's limit for receiving a whole request. The deadline of a call usually ends earlier.
  requestTimeout: headers + reading,
  connectionsCheckingInterval: headers / 4,
})

/** Responds to a malformed or late HTTP/1.1 request, if its connection is still writable, then closes the connection. */
function rejectMalformed({ code = '' }: NodeJS.ErrnoException, socket: Duplex, clock: Clock): void {
  if (!socket.writable || code === 'ECONNRESET') return void socket.destroy()
  const status = code === 'HPE_HEADER_OVERFLOW' ? '431 Request Header Fields Too Large' : '400 Bad Request'
  socket.resume()
  socket.end(`HTTP/1.1 ${code === 'ERR_HTTP_REQUEST_TIMEOUT' ? '408 Request Timeout' : status}\r\nConnection: close\r\n\r\n`)
  const closeTimer = clock.schedule(lastResponsesTime, () => socket.destroy())
  socket.once('close', () => closeTimer.cancel())
}

/** Resolves when `promise` resolves, or after `limit` milliseconds. */
function waitAtMost(limit: number, promise: Promise<unknown>, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    const timer = clock.schedule(limit, resolve)
    void promise.then(() => {
      timer.cancel()
      resolve()
    })
  })
}

/** Sends GOAWAY. Resolves when the session is closed, after its open streams have ended. */
function closeSession(session: ServerHttp2Session): Promise<void> {
  return new Promise((resolve) => {
    if (session.destroyed) return resolve()
    session.once('close', resolve)
    session.close()
  })
}

function closeWhenIdle(session: ServerHttp2Session, idle: number, clock: Clock): void {
  let streams = 0
  const wait = () => clock.schedule(idle, () => session.close())
  let timer = wait()
  session.on('stream', (stream) => {
    streams++
    timer.cancel()
    stream.on('close', () => {
      if (--streams === 0 && !session.closed) timer = wait()
    })
  })
  session.on('close', () => timer.cancel())
}

interface ServeOptions {
  readonly timeouts: ClientTimeouts
  readonly clock: Clock
  readonly log: Logger
}

/** Calls the handler and sends its response. Resolves when the response is sent, or when the call ends without a response. */
async function respond(
  handle: FetchHandler,
  incoming: Http2ServerRequest,
  outgoing: Http2ServerResponse,
  { timeouts, clock, log }: ServeOptions,
): Promise<void> {
  const disconnected = new AbortController()
  let isAnswered = false
  const closed = new Promise<void>((resolve) => {
    outgoing.on('close', () => {
      if (!isAnswered) disconnected.abort(new Error('the client disconnected'))
      resolve()
    })
  })
  outgoing.on('error', () => {})
  incoming.on('error', () => {})
  // An HTTP/2 socket is shared with other calls.
  const abortResponse = () => {
    if (incoming.httpVersionMajor === 2) outgoing.stream.close(http2.NGHTTP2_INTERNAL_ERROR)
    else incoming.socket.destroy()
  }
  try {
    const response = await handle(requestOf(incoming, disconnected.signal))
    const body = Buffer.from(await response.arrayBuffer())
    if (disconnected.signal.aborted) return
    isAnswered = true
    const headers = { ...Object.fromEntries(response.headers), 'content-length': body.length }
    const answer = { status: response.status, headers, body }
    if (incoming.httpVersionMajor === 2) sendHttp2(incoming, outgoing, answer)
    else sendHttp1(incoming, outgoing, answer)
    const closeTimer = clock.schedule(timeouts.reading, abortResponse)
    await closed
    closeTimer.cancel()
  } catch (err) {
    if (!disconnected.signal.aborted) log.debug('Request not answered', { err })
    // Ends the call without a response, as Go's server does after a panic of a handler. The handler logs its own errors.
    abortResponse()
  }
}

interface ResponseParts {
  readonly status: number
  readonly headers: OutgoingHttpHeaders
  readonly body: Buffer
}

function sendHttp1(incoming: Http2ServerRequest, outgoing: Http2ServerResponse, { status, headers, body }: ResponseParts): void {
  // After the response, the rest of the request is not read, and the connection is not reused.
  const unread = !incoming.complete
  outgoing.writeHead(status, { ...headers, ...(unread ? { connection: 'close' } : {}) })
  outgoing.end(body, () => {
    if (!incoming.complete) incoming.socket.destroySoon?.()
  })
}

/**
 * Sends the response, and ends the stream with the last data frame. Node's response object would send END_STREAM in a separate frame,
 * because trailers could follow. Upstream's client decodes the response and resets the stream before that frame arrives. Node takes a
 * thousand resets of open streams for an attack, and closes the session with all its calls.
 */
function sendHttp2(
  incoming: Http2ServerRequest,
  { stream }: Http2ServerResponse,
  { status, headers, body }: ResponseParts,
): void {
  const isEmpty = body.length === 0 || incoming.method === 'HEAD'
  // HTTP/2 has no `connection` header. Its value `close` closes the session instead, as in Go's net/http.
  const { connection, ...rest } = headers
  if (connection === 'close') stream.session?.close()
  stream.respond({ ':status': status, ...rest }, { endStream: isEmpty })
  if (isEmpty) stream.end()
  else stream.end(body)
  // Listens for the event `finish`, because Node calls the callback of `end` with an error when the stream was already closed successfully.
  if (!incoming.complete) {
    stream.once('finish', () => {
      if (!incoming.complete) stream.close(http2.NGHTTP2_NO_ERROR)
    })
  }
}

function requestOf(incoming: Http2ServerRequest, signal: AbortSignal): Request {
  const headers = new Headers()
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (!name.startsWith(':') && typeof value === 'string') headers.set(name, value)
  }
  const { method } = incoming
  const hasBody = method !== 'GET' && method !== 'HEAD'
  const init: RequestInit & { duplex?: 'half' } = {
    method,
    headers,
    signal,
    // A handler may stop reading and then respond. That must not close the connection.
    ...(hasBody ? { body: ReadableStream.from(incoming.iterator({ destroyOnReturn: false })) as never, duplex: 'half' } : {}),
  }
  // `new URL(path, base)` would read the path `//x` as a host.
  const url = incoming.url.startsWith('/') ? `https://localhost${incoming.url}` : incoming.url
  return new Request(url, init)
}
