/** Listens for HTTP/2 and HTTP/1.1 over TLS on one port, for one API server or for several, selected by server name (SNI). */
import { constants } from 'node:crypto'
import { once } from 'node:events'
import type { ServerHttp2Session } from 'node:http2'
import { createSecureServer } from 'node:http2'
import { type AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import type { Clock, Logger } from '@capstan/kube'
import { seconds, silent, StatusError } from '@capstan/kube'
import type { HttpRequest } from './http/exchange.ts'
import { BodyBudget, type BodyShare } from './body-budget.ts'
import { Connections, defaultContext, type EndpointFor } from './connections.ts'
import { clientDisconnected, readBody, type Req, type Res, respond } from './node-exchange.ts'

/**
 * Responds to a malformed or incomplete HTTP/1.1 request and closes the connection. Node would close it at once, usually before the response
 * is sent. Remaining input is read and discarded, because closing a socket with unread data makes the kernel drop the response.
 */
function rejectMalformed(err: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable || err.code === 'ECONNRESET') return void socket.destroy()
  const status = malformedStatuses[err.code ?? ''] ?? '400 Bad Request'
  socket.resume()
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\n\r\n`)
  if (socket instanceof Socket) socket.setTimeout(seconds(1), () => socket.destroy())
}

const malformedStatuses: { readonly [code: string]: string } = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
}

export interface ListenOptions {
  /** Address to listen on. Default: loopback. */
  readonly host?: string
  /** Port to listen on. 0 selects a free port. */
  readonly port: number
  /** Returns the API server for a server name (SNI). */
  readonly endpointFor: EndpointFor
  readonly clock: Clock
  /** Default: nothing is logged. */
  readonly log?: Logger
  /** Maximum number of concurrent requests on one HTTP/2 connection. Default: 1000. Upstream: --http2-max-streams-per-connection. */
  readonly maxStreams?: number
  /** Overrides of the default timeouts. */
  readonly timeouts?: Partial<Timeouts>
  /** Minimum TLS version. Default: 1.2. */
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3'
}

export interface Listener {
  readonly host: string
  readonly port: number
  /** https://HOST:PORT */
  readonly url: string
  /** Stops accepting connections, ends watches, waits up to `grace` ms (default: 5000) for requests, then closes connections. */
  close(grace?: number): Promise<void>
}

/** Timeouts of a client, in milliseconds. */
export interface Timeouts {
  /** Timeout of the TLS handshake. */
  readonly handshake: number
  /** Timeout of the request headers. The default is upstream's value. */
  readonly headers: number
  /** Timeout of a client that does not read its response, or the events of its watch. */
  readonly reading: number
}

const defaultTimeouts: Timeouts = { handshake: seconds(10), headers: seconds(32), reading: seconds(60) }

/** Upstream: http.DefaultMaxHeaderBytes. */
const MaxHeaderBytes = 1024 * 1024
const MaxConnections = 10_000
/** Budget in bytes for the bodies of all requests together, except those of superusers; the limit for one request is 3 MiB. */
const MaxBodyBytes = 256 * 1024 * 1024

/** Interval of HTTP/2 pings. The connection is closed if the response to a ping takes longer. */
const pingInterval = seconds(30)
const IdleTime = seconds(120)

/** Starts to listen. @throws Error that names host and port, for example when the port is in use */
export async function listen({
  host = '127.0.0.1',
  port,
  endpointFor,
  clock,
  log = silent,
  minVersion = 'TLSv1.2',
  timeouts: timeoutOverrides,
  maxStreams = 1000,
}: ListenOptions): Promise<Listener> {
  const timeouts = { ...defaultTimeouts, ...timeoutOverrides }
  const stopping = new AbortController()
  const budget = new BodyBudget(MaxBodyBytes)
  const connections = new Connections(endpointFor, clock)
  const server = createSecureServer({
    allowHTTP1: true,
    minVersion,
    // A resumed session would keep the verification result of the client certificate, even from another API server on this port.
    secureOptions: constants.SSL_OP_NO_TICKET,
    requestCert: true,
    rejectUnauthorized: false,
    SNICallback: (servername, done) => connections.context(servername, done),
    ...defaultContext(endpointFor(undefined)),
    handshakeTimeout: timeouts.handshake,
    settings: { maxConcurrentStreams: maxStreams, initialWindowSize: 1 << 20, maxHeaderListSize: MaxHeaderBytes },
    // Megabytes buffered for one connection; above this limit, new streams are rejected.
    maxSessionMemory: 128,
    // Clients end watches by resetting streams, hundreds at a time when they stop. A client that resets more is disconnected.
    streamResetBurst: 1500,
    streamResetRate: 200,
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
    socket.on('error', (err) => log.debug('Connection failed', { err }))
  })
  server.on('clientError', rejectMalformed)
  server.on('tlsClientError', (err) => log.debug('TLS handshake failed', { err }))
  server.on('sessionError', (err) => log.debug('HTTP/2 session failed', { err }))
  server.on('session', (session) => {
    sessions.add(session)
    session.on('close', () => sessions.delete(session))
    keepAlive(session, clock)
  })
  let pending = 0
  let onIdle: (() => void) | undefined
  server.on('request', (req, res) => {
    pending++
    const share = budget.share()
    const options = { connections, stopping: stopping.signal, log, clock, timeout: timeouts.reading, budget: share }
    void serve(req, res as unknown as Res, options).finally(() => {
      share.free()
      if (--pending === 0) onIdle?.()
    })
  })

  server.listen(port, host)
  try {
    await once(server, 'listening')
  } catch (err) {
    const { code } = err as NodeJS.ErrnoException
    if (code === 'EADDRINUSE')
      throw new Error(`Cannot listen on ${host}:${port}: the port is in use by another process`, { cause: err })
    throw new Error(`Cannot listen on ${host}:${port}: ${code ?? String(err)}`, { cause: err })
  }
  server.on('error', (err) => log.error('Server failed', { err }))
  const boundPort = (server.address() as AddressInfo).port
  return {
    host,
    port: boundPort,
    url: `https://${host.includes(':') ? `[${host}]` : host}:${boundPort}`,
    async close(grace = seconds(5)) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      stopping.abort()
      // GOAWAY: clients send their next requests over another connection.
      for (const session of sessions) session.close()
      if (pending > 0) {
        await new Promise<void>((resolve) => {
          const timer = clock.schedule(grace, resolve)
          onIdle = () => {
            timer.cancel()
            resolve()
          }
        })
      }
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

const http1Options = ({ headers, reading }: Timeouts) => ({
  maxHeaderSize: MaxHeaderBytes,
  // Longer than clients keep idle connections, so that the client closes first.
  keepAliveTimeout: IdleTime,
  headersTimeout: headers,
  // A slow body is handled by the timeout of its request; this timeout is for a body that no handler reads.
  requestTimeout: headers + reading,
  connectionsCheckingInterval: headers / 4,
})

/** Pings a session, and closes it when the client is unresponsive or the session is idle for too long. */
function keepAlive(session: ServerHttp2Session, clock: Clock): void {
  let isPingAcknowledged = true
  let streams = 0
  let idleIntervals = 0
  session.on('stream', (stream) => {
    streams++
    idleIntervals = 0
    stream.on('close', () => streams--)
  })
  const onInterval = () => {
    if (session.destroyed) return
    if (streams === 0 && ++idleIntervals * pingInterval > IdleTime) {
      session.close()
      return
    }
    if (!isPingAcknowledged) {
      session.destroy()
      return
    }
    isPingAcknowledged = false
    session.ping(() => {
      isPingAcknowledged = true
    })
    timer = clock.schedule(pingInterval, onInterval)
  }
  let timer = clock.schedule(pingInterval, onInterval)
  session.on('close', () => timer.cancel())
}

interface ServeOptions {
  readonly connections: Connections
  readonly stopping: AbortSignal
  readonly log: Logger
  readonly clock: Clock
  readonly timeout: number
  readonly budget: BodyShare
}

async function serve(req: Req, res: Res, { connections, stopping, log, clock, timeout, budget }: ServeOptions): Promise<void> {
  res.on('error', () => {})
  if (stopping.aborted && req.httpVersionMajor === 1) res.setHeader('connection', 'close')
  const connection = connections.of(req)
  if (!connection) {
    res.writeHead(421, { 'content-type': 'text/plain; charset=utf-8' })
    res.end('421 the API server of this connection has been removed or replaced\n')
    return
  }
  const { endpoint, certificate } = connection
  const { authorization } = req.headers
  const closed = new AbortController()
  const streamEnd = new AbortController()
  const stop = () => streamEnd.abort(clientDisconnected)
  res.on('close', () => {
    // A complete response. Node also emits `close` when the client disconnects or resets the stream.
    if (res.writableEnded && res.writableFinished) return
    closed.abort(clientDisconnected)
    stop()
  })
  if (stopping.aborted) stop()
  stopping.addEventListener('abort', stop, { once: true })
  try {
    const identity = endpoint.authenticate({
      ...(certificate === undefined ? {} : { certificate }),
      ...(authorization === undefined ? {} : { authorization }),
    })
    const response = await endpoint.handler(requestOf(req, closed.signal, streamEnd.signal, budget), identity)
    await respond(response, req, res, { clock, timeout, closed: closed.signal })
  } catch (err) {
    const statusError = err instanceof StatusError ? err : undefined
    if (!statusError && !closed.signal.aborted) log.error('Request failed', { method: req.method, err })
    if (!res.headersSent) res.writeHead(statusError?.code ?? 500, { 'content-type': 'application/json' })
    res.end(statusError && JSON.stringify(statusError.status))
  } finally {
    stopping.removeEventListener('abort', stop)
  }
}

function requestOf(req: Req, signal: AbortSignal, streamSignal: AbortSignal, budget: ServeOptions['budget']): HttpRequest {
  return {
    method: req.method ?? 'GET',
    url: req.url ?? '/',
    headers: req.headers as { [name: string]: string | undefined },
    valuesOf: (name) => valuesIn(req.rawHeaders, name),
    signal,
    streamSignal,
    body: (limit, requester) => readBody(req, limit, budget, requester),
  }
}

/** Returns the values of a header. Node joins repeated headers with commas, which a value may contain, too. */
const valuesIn = (raw: readonly string[], name: string): string[] =>
  raw.filter((_, index) => index % 2 === 1 && raw[index - 1]!.toLowerCase() === name)
