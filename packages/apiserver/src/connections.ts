/** The API server, the TLS context and the client certificate of each connection to a port. */
import { constants, X509Certificate } from 'node:crypto'
import type { PeerCertificate, SecureContext, SecureContextOptions, TLSSocket } from 'node:tls'
import type { Clock } from '@capstan/kube'
import type { Authenticate, Credentials } from './auth/authenticate.ts'
import type { HttpHandler } from './http/exchange.ts'
import type { Req } from './node-exchange.ts'

/** One API server behind the port. */
export interface Endpoint {
  readonly handler: HttpHandler
  readonly authenticate: Authenticate
  /** Serving certificate chain and its key, or a function that creates them when a client first selects the server by server name. */
  readonly serving: ServingKey | (() => Promise<ServingKey>)
  /** Certificate authority of client certificates, PEM. When absent, clients cannot authenticate by certificate. */
  readonly clientCA?: string
}

/** PEM text of a serving certificate chain and of its private key. */
export interface ServingKey {
  readonly certificate: string
  readonly key: string
}

/**
 * Returns the API server for the server name (SNI) of a client; the server name is `undefined` if the client sends none. Returns
 * `undefined` if there is no such API server.
 */
export type EndpointFor = (servername: string | undefined) => Endpoint | undefined

/** Maximum number of cached TLS contexts, one for each API server. A context takes 35 KB of memory, and half a millisecond to create. */
const MaxContexts = 64

/**
 * Returns the options of the TLS context for clients that send no server name. `endpoint` is their API server. If it is `undefined`, or a
 * function creates its certificate, the options are empty: these clients cannot connect.
 */
export function defaultContext(endpoint: Endpoint | undefined): object {
  if (!endpoint || typeof endpoint.serving === 'function') return {}
  return contextOf(endpoint, endpoint.serving)
}

const contextOf = ({ clientCA }: Endpoint, { certificate, key }: ServingKey) => ({
  cert: certificate,
  key,
  ciphers,
  ...(clientCA === undefined ? {} : { ca: clientCA }),
})

/** The first cipher suite, as in Go servers: AES-128 takes less CPU time than AES-256, which is first in the list of Node. */
const FirstCipher = 'TLS_AES_128_GCM_SHA256'
const ciphers = [FirstCipher, ...constants.defaultCipherList.split(':').filter((name) => name !== FirstCipher)].join(':')

/** Keeps the API server and the client certificate of each connection, and the TLS contexts of API servers. */
export class Connections {
  readonly #endpointFor: EndpointFor
  readonly #clock: Clock
  /**
   * Serving keys of the API servers that clients have selected by server name. A TLS context is ten times as large as its key, so
   * contexts are cached only for the latest servers.
   */
  readonly #keys = new WeakMap<Endpoint, Promise<ServingKey>>()
  readonly #contexts = new Map<Endpoint, SecureContext>()
  readonly #connections = new WeakMap<object, { readonly endpoint: Endpoint; readonly certificate: Credentials['certificate'] }>()

  constructor(endpointFor: EndpointFor, clock: Clock) {
    this.#endpointFor = endpointFor
    this.#clock = clock
  }

  /** Passes the TLS context of the API server with this server name to `done`, or the error with which the handshake fails. */
  context(servername: string, done: (err: Error | null, context?: SecureContext) => void): void {
    const endpoint = this.#endpointFor(servername)
    if (!endpoint) return done(new Error(`there is no API server for the server name ${servername}`))
    this.#contextOf(endpoint).then(
      (context) => done(null, context),
      (err: Error) => {
        this.#keys.delete(endpoint)
        done(err)
      },
    )
  }

  async #contextOf(endpoint: Endpoint): Promise<SecureContext> {
    const cached = this.#contexts.get(endpoint)
    this.#contexts.delete(endpoint)
    const context = cached ?? (await secureContext(contextOf(endpoint, await this.#keyOf(endpoint))))
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

  /** Returns the API server and the client certificate of a request's connection; `undefined` when that server was removed or replaced. */
  of(req: Req): { endpoint: Endpoint; certificate: Credentials['certificate'] } | undefined {
    const session = 'stream' in req ? req.stream.session : undefined
    const socket = (session ? session.socket : req.socket) as TLSSocket
    const name = (socket as { servername?: string | false }).servername
    const endpoint = this.#endpointFor(name === false || name === '' ? undefined : name)
    if (!endpoint) return undefined
    const key = session ?? socket
    const cached = this.#connections.get(key)
    if (cached) return cached.endpoint === endpoint ? cached : undefined
    const connection = { endpoint, certificate: certificateOf(socket, endpoint, this.#clock) }
    this.#connections.set(key, connection)
    return connection
  }
}

/** Creates a TLS context. Loads the TLS module on first use, because the module reads all CA certificates that Node ships. */
const secureContext = async (options: SecureContextOptions): Promise<SecureContext> =>
  (await import('node:tls')).createSecureContext(options)

/** Returns the client certificate of a connection; `undefined` if there is none, or if it is not valid for the API server. */
function certificateOf(socket: TLSSocket, { clientCA }: Endpoint, clock: Clock): Credentials['certificate'] {
  if (clientCA === undefined) return undefined
  const peer = socket.getPeerCertificate()
  if (!socket.authorized && !isForAnyUse(socket, peer, clientCA, clock.now())) return undefined
  // Node returns an attribute that occurs more than once as a list.
  const subject = peer.subject as { CN?: string | string[]; O?: string | string[] } | undefined
  if (!subject) return undefined
  return {
    commonName: [subject.CN ?? []].flat()[0] ?? '',
    organizations: [subject.O ?? []].flat(),
    fingerprint: peer.fingerprint256.replaceAll(':', '').toLowerCase(),
  }
}

/**
 * Reports whether a client certificate is valid except for its usage anyExtendedKeyUsage, which Go accepts and OpenSSL does not. OpenSSL
 * reports only one of several problems, so the issuer and the dates are checked here again.
 */
function isForAnyUse(socket: TLSSocket, { raw }: PeerCertificate, clientCA: string, now: number): boolean {
  if ((socket.authorizationError as unknown) !== 'INVALID_PURPOSE' || !raw) return false
  const certificate = new X509Certificate(raw)
  const authorities = clientCA.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  return (
    certificate.keyUsage?.includes(AnyExtendedKeyUsage) === true &&
    isValidAt(certificate, now) &&
    authorities
      .map((pem) => new X509Certificate(pem))
      .some((ca) => ca.ca && isValidAt(ca, now) && certificate.checkIssued(ca) && certificate.verify(ca.publicKey))
  )
}

const AnyExtendedKeyUsage = '2.5.29.37.0'

const isValidAt = ({ validFrom, validTo }: X509Certificate, now: number): boolean =>
  Date.parse(validFrom) <= now && now <= Date.parse(validTo)
