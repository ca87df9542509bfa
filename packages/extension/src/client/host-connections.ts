/**
 * The connections to one host. The protocol of a connection is negotiated with the server (ALPN). If the server chose HTTP/1.1, further
 * calls use HTTP/1.1 without a negotiation as long as an HTTP/1.1 connection exists.
 */
import { Agent } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import type { Duplex } from 'node:stream'
import type { ConnectionOptions, TLSSocket } from 'node:tls'
import { type Clock, seconds } from '@capstan/kube'
import { trustSystem } from '@capstan/kube/node'
import type { Target } from './client-config.ts'
import { goError, goProxyError } from './connection-errors.ts'
import { exchangeHttp1 } from './http1-exchange.ts'
import { type Http2Connection, openHttp2 } from './http2-connection.ts'
import { proxyAt } from './proxy.ts'
import type { HttpResponse } from './transport.ts'

/** One HTTP request. */
export interface Exchange {
  readonly url: URL
  readonly payload: Buffer
  readonly headers: { readonly [name: string]: string }
  readonly signal: AbortSignal
}

interface HostConnectionOptions {
  /** Client certificate and key, PEM, for a server that requests them. */
  readonly client?: { readonly certificate: string; readonly key: string } | undefined
  readonly lookup?: LookupFunction | undefined
  /** URL of the proxy for the host. */
  readonly proxy?: string | undefined
  /** Protocols offered to the server, in order of preference. */
  readonly protocols: readonly string[]
  readonly clock: Clock
}

/**
 * Connections to a host: calls share HTTP/2 connections; HTTP/1.1 needs one connection for each call in progress. After
 * `retire` the caller must start no new calls; the connections are closed after the last call.
 */
export class HostConnections {
  readonly #agent: HostAgent
  readonly #connect: ConnectionOptions
  readonly #url: URL
  readonly #proxy: URL | undefined
  readonly #clock: Clock
  readonly #http2 = new Set<Http2Connection>()
  #attempt: Attempt | undefined
  #lastAttemptAhead = -Infinity
  #calls = 0
  #retired = false

  constructor({ url, ca }: Target, { client, lookup, proxy, protocols, clock }: HostConnectionOptions) {
    this.#proxy = proxy === undefined ? undefined : proxyAt(proxy)
    const host = url.hostname.replace(/^\[|\]$/g, '')
    const minVersion = 'TLSv1.2'
    const identity = client ? { cert: client.certificate, key: client.key } : {}
    const shared = {
      minVersion,
      timeout: idleTimeout,
      // The certificate is verified against the host of the URL; addresses have no server name.
      ...(isIP(host) ? {} : { servername: host }),
      ...identity,
      ...(ca === undefined ? trustSystem({ minVersion, ...identity }) : { ca }),
      ...(lookup ? { lookup } : {}),
    } as const
    this.#agent = new HostAgent({
      ...shared,
      keepAlive: true,
      // A resumed session skips the verification: a certificate that has expired in the meantime would still be trusted.
      maxCachedSessions: 0,
      ...(this.#proxy ? { proxyEnv: { HTTPS_PROXY: this.#proxy.href } } : {}),
    })
    this.#connect = { ...shared, host, port: Number(url.port || 443), ALPNProtocols: [...protocols] }
    this.#url = url
    this.#clock = clock
  }

  /** Sends a request. @throws NotHandled if the server certainly did not process it, so that it can be repeated */
  async exchange(call: Exchange): Promise<HttpResponse> {
    this.#calls++
    let isUnderWay = true
    const endCall = () => {
      if (!isUnderWay) return
      isUnderWay = false
      this.#calls--
      this.#closeIfUnused()
    }
    try {
      let connection = this.#openConnection()
      while (connection === undefined) {
        await this.#waitForConnection(call.signal)
        connection = this.#openConnection()
      }
      return await (connection === 'http/1.1' ? exchangeHttp1(this.#agent, call, endCall) : connection.exchange(call, endCall))
    } catch (err) {
      endCall()
      throw err
    }
  }

  retire(): void {
    this.#retired = true
    this.#closeIfUnused()
  }

  /** Closes all connections, which aborts calls in progress. */
  destroy(): void {
    this.#attempt?.cancel()
    this.#agent.destroy()
    for (const connection of this.#http2) connection.destroy()
  }

  /**
   * Returns an open HTTP/2 connection for a call, or `http/1.1` if the call can use HTTP/1.1. Starts to open another connection if all
   * HTTP/2 connections that accept calls have many calls.
   */
  #openConnection(): Http2Connection | 'http/1.1' | undefined {
    let leastUsed: Http2Connection | undefined
    for (const connection of this.#http2) {
      if (!connection.isOpen) this.#http2.delete(connection)
      else if (connection.acceptsCalls && (!leastUsed || connection.calls < leastUsed.calls)) leastUsed = connection
    }
    if (leastUsed && leastUsed.calls >= manyCalls) this.#connectAhead()
    // Without a usable HTTP/2 connection, HTTP/1.1 is used as long as an HTTP/1.1 connection exists. When none exists, the protocol is
    // negotiated again, because the server may have been replaced.
    return leastUsed ?? (this.#agent.hasSockets ? 'http/1.1' : undefined)
  }

  /** Waits for a connection; concurrent callers share an attempt. @throws the error of the attempt, or the reason of the signal */
  #waitForConnection(signal: AbortSignal): Promise<void> {
    const attempt = this.#attempt
    if (attempt && this.#clock.elapsed() - attempt.since < maxSharedAge) return attempt.wait(signal)
    return this.#startAttempt().wait(signal)
  }

  /**
   * Opens another connection for later calls; the current call does not wait for this connection. Does nothing while another attempt is
   * pending, or less than `maxSharedAge` after the start of an attempt for later calls that has failed.
   */
  #connectAhead(): void {
    const now = this.#clock.elapsed()
    if (this.#attempt || now - this.#lastAttemptAhead < maxSharedAge) return
    this.#lastAttemptAhead = now
    const attempt = this.#startAttempt()
    const timer = this.#clock.schedule(maxSharedAge, () => attempt.cancel())
    const stopTimer = () => timer.cancel()
    attempt.done.then(() => {
      this.#lastAttemptAhead = -Infinity
      stopTimer()
    }, stopTimer)
  }

  #startAttempt(): Attempt {
    const attempt = new Attempt(this.#clock.elapsed(), (opened) => this.#open(opened))
    this.#attempt = attempt
    const finish = () => {
      if (this.#attempt === attempt) this.#attempt = undefined
      this.#closeIfUnused()
    }
    attempt.done.then(finish, finish)
    return attempt
  }

  async #open(opened: (socket: Duplex) => void): Promise<void> {
    const socket = await this.#secureSocket(opened).catch((err: Error) => {
      throw this.#proxy ? goProxyError(err, this.#proxy, this.#url) : goError(err, this.#url)
    })
    // Without a listener, an error of a socket that no call uses yet would end the process.
    socket.on('error', () => {})
    if (socket.alpnProtocol !== 'h2') return this.#agent.give(socket)
    this.#http2.add(await openHttp2(socket, this.#url, this.#clock))
  }

  #secureSocket(opened: (socket: Duplex) => void): Promise<TLSSocket> {
    return new Promise((resolve, reject) => {
      const options = { ...this.#agent.options, ...this.#connect }
      if (this.#proxy) {
        opened(
          this.#agent.connect(options, (err, socket) => {
            if (!err) return resolve(socket as TLSSocket)
            socket?.destroy()
            reject(err)
          }),
        )
        return
      }
      const socket = this.#agent.connect(options) as TLSSocket
      opened(socket)
      socket.once('error', reject)
      socket.once('secureConnect', () => resolve(socket))
    })
  }

  #closeIfUnused(): void {
    if (this.#retired && this.#calls === 0) {
      this.#agent.destroy()
      for (const connection of this.#http2) connection.close()
    }
  }
}

const idleTimeout = seconds(90)

/**
 * If every HTTP/2 connection that accepts calls has this number of calls or more in progress, another connection is opened. With a single connection,
 * client and server process long batches of calls in turns, and each waits while the other works.
 */
const manyCalls = 8

/**
 * Maximum age of a pending attempt that further callers may join. An attempt is aborted when all its callers have given up: without this
 * limit, new callers could keep a hanging attempt alive. An attempt for later calls (`#connectAhead`) is aborted at this age. If it
 * fails, at least this time passes between its start and the next attempt for later calls.
 */
const maxSharedAge = seconds(10)

/** An attempt to connect. It is aborted when the last of its waiting callers gives up. */
class Attempt {
  readonly since: number
  readonly done: Promise<void>
  #socket: Duplex | undefined
  #waiting = 0

  constructor(since: number, open: (opened: (socket: Duplex) => void) => Promise<void>) {
    this.since = since
    this.done = open((socket) => {
      this.#socket = socket
    })
  }

  wait(signal: AbortSignal): Promise<void> {
    this.#waiting++
    return new Promise((resolve, reject) => {
      const abort = () => {
        reject(signal.reason)
        if (--this.#waiting === 0) this.cancel()
      }
      if (signal.aborted) return abort()
      signal.addEventListener('abort', abort, { once: true })
      const removeAbortListener = () => signal.removeEventListener('abort', abort)
      this.done.then(resolve, reject).finally(removeAbortListener)
    })
  }

  cancel(): void {
    this.#socket?.destroy()
  }
}

/** Agent for HTTP/1.1. `give` passes a socket that was opened to negotiate the protocol: the next new connection is this socket. */
class HostAgent extends Agent {
  #given: TLSSocket | undefined

  get hasSockets(): boolean {
    return this.#given !== undefined || Object.keys(this.sockets).length > 0 || Object.keys(this.freeSockets).length > 0
  }

  give(socket: TLSSocket): void {
    this.#given?.destroy()
    this.#given = socket
    socket.once('close', () => {
      if (this.#given === socket) this.#given = undefined
    })
  }

  connect(options: object, connected?: (err: Error | null, socket: Duplex | undefined) => void): Duplex {
    return super.createConnection(options as never, connected as never) as Duplex
  }

  override createConnection(...args: Parameters<Agent['createConnection']>): Duplex | null | undefined {
    const given = this.#given
    this.#given = undefined
    return given ?? super.createConnection(...args)
  }

  /**
   * Returns the port as the key of the connections of this agent. Node's default key contains the certificate authorities, and is
   * computed for each call.
   */
  override getName({ port }: { port?: number | string | null } = {}): string {
    return String(port)
  }

  override destroy(): void {
    this.#given?.destroy()
    super.destroy()
  }
}
