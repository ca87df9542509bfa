/** Puts a server that is a function on a TLS socket: HTTP/2, and HTTP/1.1 for those who have nothing newer. */
import { constants as crypto } from 'node:crypto'
import { once } from 'node:events'
import type { OutgoingHttpHeaders } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Session } from 'node:http2'
import { constants as http2, createSecureServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { ReadableStream } from 'node:stream/web'
import type { TLSSocket } from 'node:tls'
import type { Clock, Logger } from '@capstan/kube'
import { seconds, silent, systemClock } from '@capstan/kube'
import type { FetchHandler } from './server.ts'

export interface ListenOptions extends ServingCertificate {
  /** 127.0.0.1 when absent; every address of this machine when empty. */
  readonly host?: string
  /** Any free port when absent or 0. */
  readonly port?: number
  /** The oldest version of TLS that is spoken; 1.2 when absent. */
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3'
  /** Cipher suites as OpenSSL names them, separated by colons; those of Node when absent. */
  readonly ciphers?: string
  readonly clock?: Clock
  readonly log?: Logger
  /** How long the other side may take, milliseconds each. */
  readonly patience?: Partial<Patience>
}

/** The certificate shown to clients, and the clients that may call. */
export interface ServingCertificate {
  /** PEM. */
  readonly certificate: string
  /** PEM. A secret. */
  readonly key: string
  /** PEM: only clients with a certificate of this authority may call. */
  readonly clientCA?: string
}

interface Patience {
  /** To speak TLS. */
  readonly handshake: number
  /** To say what it wants. */
  readonly headers: number
  /** To take the answer. */
  readonly reading: number
  /** Between calls, before its connection is closed. */
  readonly idle: number
}

/** Upstream: the Go server's, but for the time to read an answer, which it does not limit. */
const defaultPatience: Patience = { handshake: seconds(10), headers: seconds(32), reading: seconds(30), idle: seconds(90) }

const MaxHeaderBytes = 64 * 1024
const MaxConnections = 2000
/** For answers that are on their way to a client that is to leave. */
const lastWords = seconds(1)
/** Upstream: as many, for one connection. */
const MaxStreams = 250

export interface Listening {
  readonly url: string
  readonly port: number
  /** New connections get this certificate, such as one that was renewed. @throws when it does not belong to the key */
  renew(certified: ServingCertificate): void
  /** New calls are refused, those under way answered; those that are not after `grace` milliseconds are cut off. */
  close(grace?: number): Promise<void>
}

/** @throws when the port is taken, or certificate and key do not belong together */
export async function listen(handle: FetchHandler, options: ListenOptions): Promise<Listening> {
  const { host = '127.0.0.1', port = 0, clock = systemClock, log = silent } = options
  const patience = { ...defaultPatience, ...options.patience }
  const context = (serving: ServingCertificate) => ({
    cert: serving.certificate,
    key: serving.key,
    minVersion: options.minVersion ?? 'TLSv1.2',
    ...(options.ciphers === undefined ? {} : { ciphers: options.ciphers }),
    // A session that is resumed would bring the verdict on its client certificate along.
    secureOptions: crypto.SSL_OP_NO_TICKET,
    ...(serving.clientCA === undefined ? {} : { ca: serving.clientCA }),
  })
  const server = createSecureServer({
    allowHTTP1: true,
    ...context(options),
    ...(options.clientCA === undefined ? {} : { requestCert: true, rejectUnauthorized: true }),
    handshakeTimeout: patience.handshake,
    settings: { maxConcurrentStreams: MaxStreams, maxHeaderListSize: MaxHeaderBytes },
    maxSessionMemory: 32,
    ...http1Options(patience),
  })
  server.maxConnections = MaxConnections
  server.setTimeout(0)

  const sockets = new Set<TLSSocket>()
  const sessions = new Set<ServerHttp2Session>()
  server.on('secureConnection', (socket: TLSSocket) => {
    sockets.add(socket)
    socket.setNoDelay(true)
    socket.setKeepAlive(true, seconds(30))
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', (err) => log.debug('Connection failed', { err }))
  })
  server.on('session', (session) => {
    sessions.add(session)
    session.on('close', () => sessions.delete(session))
    closeWhenIdle(session, patience.idle, clock)
  })
  server.on('clientError', (err, socket) => refuseMalformed(err, socket, clock))
  server.on('tlsClientError', (err) => log.debug('TLS handshake failed', { err }))
  server.on('sessionError', (err) => log.debug('HTTP/2 session failed', { err }))

  let underWay = 0
  let done: (() => void) | undefined
  let closing: Promise<void> | undefined
  server.on('request', (incoming, outgoing) => {
    underWay++
    // Its client takes the next call elsewhere. HTTP/2 has a message of its own for that.
    if (closing && incoming.httpVersionMajor === 1) outgoing.setHeader('connection', 'close')
    void respond(handle, incoming, outgoing, { patience, clock, log }).finally(() => {
      if (--underWay === 0) done?.()
    })
  })

  server.listen(port, host === '' ? undefined : host)
  // Rejects with what the socket says when it cannot be had.
  await once(server, 'listening')
  server.on('error', (err) => log.error('Server failed', { err }))
  const { port: bound } = server.address() as AddressInfo

  const close = async (grace: number): Promise<void> => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    const leaving = Promise.all([...sessions].map(leave))
    // Of HTTP/1.1 connections, those that wait for a next request.
    if ('closeIdleConnections' in server) (server.closeIdleConnections as () => void)()
    const answered = new Promise<void>((resolve) => {
      done = resolve
      if (underWay === 0) resolve()
    })
    // A written response takes a moment to be sent.
    const sent = answered.then(() => within(Math.min(grace, lastWords), leaving, clock))
    await within(grace, sent, clock)
    for (const socket of sockets) socket.destroy()
    await closed
  }
  return {
    url: urlOf('https', host, bound),
    port: bound,
    renew: (serving) => server.setSecureContext(context(serving)),
    close: (grace = patience.reading) => (closing ??= close(grace)),
  }
}

/** The types of the HTTP/2 server leave them out. */
const http1Options = ({ headers, reading, idle }: Patience) => ({
  maxHeaderSize: MaxHeaderBytes,
  headersTimeout: headers,
  keepAliveTimeout: idle,
  // The time limit of a call covers a missing body; this limit covers requests after their call has ended.
  requestTimeout: headers + reading,
  connectionsCheckingInterval: headers / 4,
})

/** Malformed HTTP/1.1 is answered before the connection is closed. */
function refuseMalformed({ code = '' }: NodeJS.ErrnoException, socket: Duplex, clock: Clock): void {
  if (!socket.writable || code === 'ECONNRESET') return void socket.destroy()
  const status = code === 'HPE_HEADER_OVERFLOW' ? '431 Request Header Fields Too Large' : '400 Bad Request'
  socket.resume()
  socket.end(`HTTP/1.1 ${code === 'ERR_HTTP_REQUEST_TIMEOUT' ? '408 Request Timeout' : status}\r\nConnection: close\r\n\r\n`)
  const cut = clock.schedule(lastWords, () => socket.destroy())
  socket.once('close', () => cut.cancel())
}

/** URL that reaches the server from this machine. */
export const urlOf = (scheme: 'http' | 'https', host: string, port: number): string =>
  `${scheme}://${host === '' ? 'localhost' : host.includes(':') ? `[${host}]` : host}:${port}`

/** Resolves once it has come true, or the time is over. */
function within(limit: number, fact: Promise<unknown>, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    const timer = clock.schedule(limit, resolve)
    void fact.then(() => {
      timer.cancel()
      resolve()
    })
  })
}

/** Has the client take its next call elsewhere. Resolves once it has what it was answered. */
function leave(session: ServerHttp2Session): Promise<void> {
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

interface Site {
  readonly patience: Patience
  readonly clock: Clock
  readonly log: Logger
}

/** Resolves once the response is sent, or the client is gone. */
async function respond(
  handle: FetchHandler,
  incoming: Http2ServerRequest,
  outgoing: Http2ServerResponse,
  { patience, clock, log }: Site,
): Promise<void> {
  const gone = new AbortController()
  let isAnswered = false
  const closed = new Promise<void>((resolve) => {
    outgoing.on('close', () => {
      if (!isAnswered) gone.abort(new Error('the caller went away'))
      resolve()
    })
  })
  outgoing.on('error', () => {})
  incoming.on('error', () => {})
  // The socket of HTTP/2 belongs to others, too.
  const cutOff = () => {
    if (incoming.httpVersionMajor === 2) outgoing.stream.close(http2.NGHTTP2_INTERNAL_ERROR)
    else incoming.socket.destroy()
  }
  try {
    const response = await handle(requestOf(incoming, gone.signal))
    const body = Buffer.from(await response.arrayBuffer())
    if (gone.signal.aborted) return
    isAnswered = true
    const headers = { ...Object.fromEntries(response.headers), 'content-length': body.length }
    const answer = { status: response.status, headers, body }
    if (incoming.httpVersionMajor === 2) answerHttp2(incoming, outgoing, answer)
    else answerHttp1(incoming, outgoing, answer)
    const late = clock.schedule(patience.reading, cutOff)
    await closed
    late.cancel()
  } catch (err) {
    if (!gone.signal.aborted) log.debug('Request not answered', { err })
    // Nothing can be said to this caller: the handler logs what goes wrong in it.
    cutOff()
  }
}

interface Answer {
  readonly status: number
  readonly headers: OutgoingHttpHeaders
  readonly body: Buffer
}

function answerHttp1(incoming: Http2ServerRequest, outgoing: Http2ServerResponse, { status, headers, body }: Answer): void {
  // The rest of an answered request is not read: its connection could not be reused.
  const unread = !incoming.complete
  outgoing.writeHead(status, { ...headers, ...(unread ? { connection: 'close' } : {}) })
  outgoing.end(body, () => {
    if (!incoming.complete) incoming.socket.destroySoon?.()
  })
}

/**
 * The last piece says that it is the last one. The response of Node, which could have trailers, says so in a frame of its own: upstream's
 * client has decoded the answer by then, and resets the stream. A thousand of these are taken for an attack, and end the session with
 * all calls in it.
 */
function answerHttp2(incoming: Http2ServerRequest, { stream }: Http2ServerResponse, { status, headers, body }: Answer): void {
  const isEmpty = body.length === 0 || incoming.method === 'HEAD'
  // HTTP/2 has no such header. Upstream: net/http does as its handler says, too.
  const { connection, ...rest } = headers
  if (connection === 'close') stream.session?.close()
  stream.respond({ ':status': status, ...rest }, { endStream: isEmpty })
  if (isEmpty) stream.end()
  else stream.end(body)
  // Rather than as a callback: Node calls it with an error, and a stack, when all has gone well and the stream is closed already.
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
    // A handler that stops reading may still respond: that must not close the connection.
    ...(hasBody ? { body: ReadableStream.from(incoming.iterator({ destroyOnReturn: false })) as never, duplex: 'half' } : {}),
  }
  // Not as a reference to be resolved: `//x` is a path here, not a host.
  const url = incoming.url.startsWith('/') ? `https://localhost${incoming.url}` : incoming.url
  return new Request(url, init)
}
