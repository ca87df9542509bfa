/**
 * The sockets: HTTP/2 and HTTP/1.1 over TLS on one port, for one plane or for many that are told apart by the name a client asks
 * for (SNI). Everything else is in `http/`.
 */
import { constants } from 'node:crypto'
import { once } from 'node:events'
import type { ServerHttp2Session } from 'node:http2'
import { createSecureServer } from 'node:http2'
import { type AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { SecureContext, SecureContextOptions, TLSSocket } from 'node:tls'
import type { Clock, Logger } from '@capstan/kube'
import { seconds, silent, StatusError } from '@capstan/kube'
import type { Authenticate, Credentials } from './auth/authenticate.ts'
import type { HttpHandler, HttpRequest } from './http/exchange.ts'
import { BodyRoom, clientGone, readBody, type Req, type Res, respond } from './node-exchange.ts'

/**
 * What cannot be read as HTTP/1.1 is answered and let go. Node would close at once, and mostly before the answer is sent; whatever
 * still comes is read over meanwhile, since a connection that is closed with something unread takes the answer back.
 */
function refuseMalformed(err: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable || err.code === 'ECONNRESET') return void socket.destroy()
  const status = malformed[err.code ?? ''] ?? '400 Bad Request'
  socket.resume()
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\n\r\n`)
  if (socket instanceof Socket) socket.setTimeout(seconds(1), () => socket.destroy())
}

const malformed: { readonly [code: string]: string } = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
}

/** One API server behind the port. */
export interface Endpoint {
  readonly handler: HttpHandler
  readonly authenticate: Authenticate
  /** Serving certificate chain and its key, PEM; or how to make them when the first client asks by name. */
  readonly serving: ServingKey | (() => Promise<ServingKey>)
  /** Authority that client certificates must chain to, PEM. Without it nobody is known by certificate. */
  readonly clientCA?: string
}

export interface ServingKey {
  readonly certificate: string
  readonly key: string
}

export interface ListenOptions {
  /** Loopback when absent. */
  readonly host?: string
  /** Any free port when 0. */
  readonly port: number
  /** Who answers for a name that a client asks for; `undefined` when it asks for none. Nobody: the handshake is refused. */
  readonly planes: (servername: string | undefined) => Endpoint | undefined
  readonly clock: Clock
  readonly log?: Logger
  /** Requests that may be open on one HTTP/2 connection; 1000 when absent. Upstream: --http2-max-streams-per-connection. */
  readonly maxStreams?: number
  /** As upstream has it, as far as it has any, when absent. */
  readonly patience?: Partial<Patience>
  /** The oldest version of TLS that is spoken; 1.2 when absent. */
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3'
}

export interface Listener {
  readonly host: string
  readonly port: number
  /** https://HOST:PORT */
  readonly url: string
  /** Stops taking connections, ends watches, lets other requests finish for `grace` milliseconds, then closes what is left. */
  close(grace?: number): Promise<void>
}

/** How long the other side may take, in milliseconds. */
export interface Patience {
  /** To speak TLS. */
  readonly handshake: number
  /** To say what it wants. Upstream: as long. */
  readonly headers: number
  /** To take something of an answer; also of a watch. */
  readonly reading: number
}

const defaultPatience: Patience = { handshake: seconds(10), headers: seconds(32), reading: seconds(60) }

/** Upstream: http.DefaultMaxHeaderBytes. */
const MaxHeaderBytes = 1024 * 1024
const MaxConnections = 10_000
/** For planes beyond the one that everybody calls. One costs 35 KB to keep and half a millisecond to make again. */
const MaxContexts = 64
/** Of all requests together; each may have 3 MiB. */
const MaxBodyBytes = 256 * 1024 * 1024

/** Go clients drop a connection that does not answer pings; so do we. */
const pingEvery = seconds(30)
const IdleTime = seconds(120)

/** @throws Error naming the port when it is taken */
export async function listen({
  host = '127.0.0.1',
  port,
  planes,
  clock,
  log = silent,
  minVersion = 'TLSv1.2',
  patience: given,
  maxStreams = 1000,
}: ListenOptions): Promise<Listener> {
  const patience = { ...defaultPatience, ...given }
  const stopping = new AbortController()
  const room = new BodyRoom(MaxBodyBytes)
  const connections = new Connections(planes)
  const server = createSecureServer({
    allowHTTP1: true,
    minVersion,
    // A resumed session would bring the verdict on its client certificate along, from whichever plane it was made with.
    secureOptions: constants.SSL_OP_NO_TICKET,
    requestCert: true,
    rejectUnauthorized: false,
    SNICallback: (servername, done) => connections.context(servername, done),
    ...defaultContext(planes(undefined)),
    handshakeTimeout: patience.handshake,
    settings: { maxConcurrentStreams: maxStreams, initialWindowSize: 1 << 20, maxHeaderListSize: MaxHeaderBytes },
    // Megabytes that are held for one connection: beyond them it gets no more streams.
    maxSessionMemory: 128,
    // Clients end watches by resetting streams, hundreds at a time when they stop. Who goes on like that is told to go.
    streamResetBurst: 1500,
    streamResetRate: 200,
    ...http1Options(patience),
  })
  server.maxConnections = MaxConnections
  server.setTimeout(0)
  const sockets = new Set<TLSSocket>()
  const sessions = new Set<ServerHttp2Session>()
  server.on('secureConnection', (socket: TLSSocket) => {
    sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', (err) => log.debug('Connection failed', { err }))
  })
  server.on('clientError', refuseMalformed)
  server.on('tlsClientError', (err) => log.debug('TLS handshake failed', { err }))
  server.on('sessionError', (err) => log.debug('HTTP/2 session failed', { err }))
  server.on('session', (session) => {
    sessions.add(session)
    session.on('close', () => sessions.delete(session))
    keepAlive(session, clock)
  })
  let pending = 0
  let idle: (() => void) | undefined
  server.on('request', (req, res) => {
    pending++
    const share = room.share()
    const site = { connections, stopping: stopping.signal, log, clock, patience: patience.reading, room: share }
    void serve(req, res as unknown as Res, site).finally(() => {
      share.free()
      if (--pending === 0) idle?.()
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
  const bound = (server.address() as AddressInfo).port
  return {
    host,
    port: bound,
    url: `https://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    async close(grace = seconds(5)) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      stopping.abort()
      // Clients are told to take their next requests elsewhere.
      for (const session of sessions) session.close()
      if (pending > 0) {
        await new Promise<void>((resolve) => {
          const timer = clock.schedule(grace, resolve)
          idle = () => {
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

function defaultContext(endpoint: Endpoint | undefined): object {
  if (!endpoint || typeof endpoint.serving === 'function') return {}
  return contextOf(endpoint, endpoint.serving)
}

const contextOf = ({ clientCA }: Endpoint, { certificate, key }: ServingKey) => ({
  cert: certificate,
  key,
  ciphers,
  ...(clientCA === undefined ? {} : { ca: clientCA }),
})

/** Node's, in the order of Go's servers: of two that are as good, the one that costs less comes first. */
const First = 'TLS_AES_128_GCM_SHA256'
const ciphers = [First, ...constants.defaultCipherList.split(':').filter((name) => name !== First)].join(':')

const http1Options = ({ headers, reading }: Patience) => ({
  maxHeaderSize: MaxHeaderBytes,
  // Longer than clients keep idle connections, so that it is they who close them.
  keepAliveTimeout: IdleTime,
  headersTimeout: headers,
  // A body that comes slowly is answered for after the time that a request may take; this is for one that nobody waits for.
  requestTimeout: headers + reading,
  connectionsCheckingInterval: headers / 4,
})

function keepAlive(session: ServerHttp2Session, clock: Clock): void {
  let answered = true
  let streams = 0
  let idleBeats = 0
  session.on('stream', (stream) => {
    streams++
    idleBeats = 0
    stream.on('close', () => streams--)
  })
  const beat = () => {
    if (session.destroyed) return
    if (streams === 0 && ++idleBeats * pingEvery > IdleTime) {
      session.close()
      return
    }
    if (!answered) {
      session.destroy()
      return
    }
    answered = false
    session.ping(() => {
      answered = true
    })
    timer = clock.schedule(pingEvery, beat)
  }
  let timer = clock.schedule(pingEvery, beat)
  session.on('close', () => timer.cancel())
}

/** What is known of each connection: which plane it is with, and who is at the other end. */
class Connections {
  readonly #planes: ListenOptions['planes']
  /** Keys of planes that somebody has called, and for those called last what TLS makes of them, which weighs ten times as much. */
  readonly #keys = new WeakMap<Endpoint, Promise<ServingKey>>()
  readonly #contexts = new Map<Endpoint, SecureContext>()
  readonly #known = new WeakMap<object, { readonly endpoint: Endpoint; readonly certificate: Credentials['certificate'] }>()

  constructor(planes: ListenOptions['planes']) {
    this.#planes = planes
  }

  context(servername: string, done: (err: Error | null, context?: SecureContext) => void): void {
    const endpoint = this.#planes(servername)
    if (!endpoint) return done(new Error(`nobody answers for ${servername}`))
    this.#contextOf(endpoint).then(
      (context) => done(null, context),
      (err: Error) => {
        this.#keys.delete(endpoint)
        done(err)
      },
    )
  }

  async #contextOf(endpoint: Endpoint): Promise<SecureContext> {
    const known = this.#contexts.get(endpoint)
    this.#contexts.delete(endpoint)
    const context = known ?? (await secureContext(contextOf(endpoint, await this.#keyOf(endpoint))))
    this.#contexts.set(endpoint, context)
    if (this.#contexts.size > MaxContexts) this.#contexts.delete(this.#contexts.keys().next().value!)
    return context
  }

  #keyOf(endpoint: Endpoint): Promise<ServingKey> {
    let key = this.#keys.get(endpoint)
    if (!key) {
      const { serving } = endpoint
      this.#keys.set(endpoint, (key = typeof serving === 'function' ? serving() : Promise.resolve(serving)))
    }
    return key
  }

  /** `undefined` when the plane that the connection was made with is gone. */
  of(req: Req): { endpoint: Endpoint; certificate: Credentials['certificate'] } | undefined {
    const session = 'stream' in req ? req.stream.session : undefined
    const socket = (session ? session.socket : req.socket) as TLSSocket
    const name = (socket as { servername?: string | false }).servername
    const endpoint = this.#planes(name === false || name === '' ? undefined : name)
    if (!endpoint) return undefined
    const key = session ?? socket
    const known = this.#known.get(key)
    if (known) return known.endpoint === endpoint ? known : undefined
    const connection = { endpoint, certificate: certificateOf(socket, endpoint) }
    this.#known.set(key, connection)
    return connection
  }
}

/** The module is loaded when somebody calls: it reads all the authorities that Node knows. */
const secureContext = async (options: SecureContextOptions): Promise<SecureContext> =>
  (await import('node:tls')).createSecureContext(options)

function certificateOf(socket: TLSSocket, { clientCA }: Endpoint): Credentials['certificate'] {
  if (clientCA === undefined || !socket.authorized) return undefined
  const peer = socket.getPeerCertificate()
  // Members that occur more than once come as lists.
  const subject = peer.subject as { CN?: string | string[]; O?: string | string[] } | undefined
  if (!subject) return undefined
  return {
    commonName: [subject.CN ?? []].flat()[0] ?? '',
    organizations: [subject.O ?? []].flat(),
    fingerprint: peer.fingerprint256.replaceAll(':', '').toLowerCase(),
  }
}

interface Site {
  readonly connections: Connections
  readonly stopping: AbortSignal
  readonly log: Logger
  readonly clock: Clock
  readonly patience: number
  readonly room: { take(bytes: number): boolean }
}

async function serve(req: Req, res: Res, { connections, stopping, log, clock, patience, room }: Site): Promise<void> {
  res.on('error', () => {})
  if (stopping.aborted && req.httpVersionMajor === 1) res.setHeader('connection', 'close')
  const connection = connections.of(req)
  if (!connection) {
    res.writeHead(421, { 'content-type': 'text/plain; charset=utf-8' })
    res.end('421 the server behind this connection is gone\n')
    return
  }
  const { endpoint, certificate } = connection
  const { authorization } = req.headers
  const gone = new AbortController()
  const streamEnd = new AbortController()
  const stop = () => streamEnd.abort(clientGone)
  res.on('close', () => {
    // A stream that its client has reset counts as finished, too.
    if (res.writableEnded && res.writableFinished) return
    gone.abort(clientGone)
    stop()
  })
  if (stopping.aborted) stop()
  stopping.addEventListener('abort', stop, { once: true })
  try {
    const identity = endpoint.authenticate({
      ...(certificate === undefined ? {} : { certificate }),
      ...(authorization === undefined ? {} : { authorization }),
    })
    const answer = await endpoint.handler(requestOf(req, gone.signal, streamEnd.signal, room), identity)
    await respond(answer, req, res, { clock, patience, gone: gone.signal })
  } catch (err) {
    const refusal = err instanceof StatusError ? err : undefined
    if (!refusal && !gone.signal.aborted) log.error('Request failed', { method: req.method, err })
    if (!res.headersSent) res.writeHead(refusal?.code ?? 500, { 'content-type': 'application/json' })
    res.end(refusal && JSON.stringify(refusal.status))
  } finally {
    stopping.removeEventListener('abort', stop)
  }
}

function requestOf(req: Req, signal: AbortSignal, streamSignal: AbortSignal, room: Site['room']): HttpRequest {
  return {
    method: req.method ?? 'GET',
    url: req.url ?? '/',
    headers: req.headers as { [name: string]: string | undefined },
    signal,
    streamSignal,
    body: (limit) => readBody(req, limit, room),
  }
}
