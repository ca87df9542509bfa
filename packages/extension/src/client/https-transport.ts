/** Calls extension servers over HTTPS with connections that are kept. Upstream: internal/runtime/client, v1.14. */
import type { ClientRequest, IncomingMessage } from 'node:http'
import { Agent, type AgentOptions, request } from 'node:https'
import { isIP, isIPv6, type LookupFunction } from 'node:net'
import type { Target } from './client-config.ts'
import { NoAnswer } from './hook-failed.ts'
import type { HookProblem } from './hook-problems.ts'
import { type ProxyEnvironment, proxyFor } from './proxy.ts'
import type { HookTransport, HttpAnswer } from './transport.ts'

export interface ClientCertificate {
  /** PEM. */
  readonly certificate: string
  /** PEM. A secret. */
  readonly key: string
}

export interface HttpsHookTransport extends HookTransport {
  /** New connections present this certificate; those that presented another are not used any more. */
  present(client: ClientCertificate): void
}

export interface HttpsHookTransportOptions {
  /** What every server gets to see that wants a certificate of its clients. */
  readonly client?: ClientCertificate | undefined
  /** How names become addresses; as the system does when absent. */
  readonly lookup?: LookupFunction
  /** Whose HTTPS_PROXY and NO_PROXY count; nobody's when absent. */
  readonly env?: ProxyEnvironment
}

/** Connections are shared by calls to the same host with the same authorities, and by no others. */
export function httpsHookTransport({ client, lookup, env = {} }: HttpsHookTransportOptions = {}): HttpsHookTransport {
  const pools = new Map<string, Pool>()
  let presented = client

  const poolFor = (target: Target): Pool => {
    const key = poolKey(target)
    const known = pools.get(key)
    if (known) return known
    const { url, ca } = target
    const proxy = proxyFor(url, env)
    const host = url.hostname.replace(/^\[|\]$/g, '')
    const pool = new Pool({
      keepAlive: true,
      minVersion: 'TLSv1.2',
      timeout: idleTimeout,
      // A session that is resumed brings its old verdict along: a certificate that has expired meanwhile would go on being trusted.
      maxCachedSessions: 0,
      // Names are checked against the host of the URL, whatever the connection says; addresses have no server name.
      ...(isIP(host) ? {} : { servername: host }),
      ...(ca === undefined ? {} : { ca }),
      ...(presented ? { cert: presented.certificate, key: presented.key } : {}),
      ...(lookup ? { lookup } : {}),
      ...(proxy === undefined ? {} : { proxyEnv: { HTTPS_PROXY: proxy } }),
    })
    pools.set(key, pool)
    return pool
  }
  const retire = (isWanted: (key: string) => boolean): void => {
    for (const [key, pool] of pools) {
      if (isWanted(key)) continue
      pools.delete(key)
      pool.retire()
    }
  }

  const send = (target: Target, payload: Buffer, signal: AbortSignal, headers: Headers, retried: boolean): Promise<HttpAnswer> =>
    new Promise((resolve, reject) => {
      const pool = poolFor(target)
      const outgoing = request(target.url, {
        method: 'POST',
        agent: pool.agent,
        headers: { ...headers, 'content-type': 'application/json', 'content-length': payload.length },
      })
      pool.watch(outgoing)
      // Rather than as an option: Node watches for it in a way that costs a twentieth of a call.
      const abort = () => outgoing.destroy(signal.reason as Error)
      if (signal.aborted) abort()
      else signal.addEventListener('abort', abort, { once: true })
      outgoing.once('close', () => signal.removeEventListener('abort', abort))
      outgoing.on('response', (incoming: IncomingMessage) => {
        resolve({ status: incoming.statusCode ?? 0, body: bodyOf(incoming, target.url) })
      })
      outgoing.on('error', (err: NodeJS.ErrnoException) => {
        if (signal.aborted) return reject(signal.reason)
        // The server closed a kept connection at the moment it was used again: that says nothing about the server.
        if (outgoing.reusedSocket && (err.code === 'ECONNRESET' || err.code === 'EPIPE') && !retried) {
          return resolve(send(target, payload, signal, headers, true))
        }
        reject(asGoSaysIt(err, target.url))
      })
      outgoing.end(payload)
    })

  return {
    post: (target, body, signal, headers = {}) => send(target, Buffer.from(body), signal, headers, false),
    retain(targets) {
      const wanted = new Set(targets.map(poolKey))
      retire((key) => wanted.has(key))
    },
    present(next) {
      presented = next
      retire(() => false)
    },
    close() {
      for (const { agent } of pools.values()) agent.destroy()
      pools.clear()
    },
  }
}

interface Headers {
  readonly [name: string]: string
}

const poolKey = ({ url, ca }: Target): string => `${url.host}/${ca ?? ''}`

/** The connections to one host. Once retired it takes no new calls, and is gone with its last one. */
class Pool {
  readonly agent: Agent
  #calls = 0
  #retired = false

  constructor(options: AgentOptions) {
    this.agent = new PoolAgent(options)
  }

  watch(outgoing: ClientRequest): void {
    this.#calls++
    outgoing.once('close', () => {
      this.#calls--
      this.#endIfUnused()
    })
  }

  retire(): void {
    this.#retired = true
    this.#endIfUnused()
  }

  #endIfUnused(): void {
    if (this.#retired && this.#calls === 0) this.agent.destroy()
  }
}

/** All connections of a pool are alike but for their port. The name that Node gives them has the authorities in it, for each call anew. */
class PoolAgent extends Agent {
  override getName({ port }: { port?: number | string | null } = {}): string {
    return String(port)
  }
}

/** A reader that stops early ends the connection with it. */
async function* bodyOf(incoming: IncomingMessage, url: URL): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of incoming) yield chunk as Uint8Array
  } catch (err) {
    const { code } = err as NodeJS.ErrnoException
    throw brokenOff.has(code ?? '')
      ? new NoAnswer('ConnectionReset', 'unexpected EOF', { cause: err })
      : asGoSaysIt(err as Error, url)
  }
}

const brokenOff: ReadonlySet<string> = new Set(['ECONNRESET', 'ERR_STREAM_PREMATURE_CLOSE'])

const idleTimeout = 90_000

/** People search for these texts: they are those of Go where it has one. */
function asGoSaysIt(err: NodeJS.ErrnoException & { cert?: { subjectaltname?: string } }, url: URL): Error {
  const port = url.port === '' ? '443' : url.port
  const known = knownErrors[err.code ?? ''] ?? (err.code?.startsWith('HPE_') ? malformed(err) : undefined)
  if (!known) return err
  const [problem, text] = known({ host: url.hostname, port, names: err.cert?.subjectaltname ?? '', message: err.message })
  return new NoAnswer(problem, text, { cause: err })
}

type KnownError = (of: { host: string; port: string; names: string; message: string }) => readonly [HookProblem, string]
const notVerified = 'tls: failed to verify certificate: x509:'
const unverified: KnownError = () => ['UnknownAuthority', `${notVerified} certificate signed by unknown authority`]
const expired: KnownError = () => ['CertificateExpired', `${notVerified} certificate has expired or is not yet valid`]

const malformed =
  (err: Error): KnownError =>
  () => ['Garbage', `net/http: HTTP/1.x transport connection broken: malformed HTTP response: ${err.message}`]
const notTLS: KnownError = () => ['NotTLS', 'tls: first record does not look like a TLS handshake']
const refused =
  (alert: string): KnownError =>
  () => ['ClientCertificate', `remote error: tls: ${alert}`]

const knownErrors: { readonly [code: string]: KnownError } = {
  ECONNREFUSED: ({ host, port }) => ['ConnectionRefused', `dial tcp ${host}:${port}: connect: connection refused`],
  ECONNRESET: () => ['ConnectionReset', 'connection reset by peer'],
  EPIPE: () => ['ConnectionReset', 'write: broken pipe'],
  ETIMEDOUT: ({ host, port }) => ['Unreachable', `dial tcp ${host}:${port}: connect: connection timed out`],
  EHOSTUNREACH: ({ host, port }) => ['Unreachable', `dial tcp ${host}:${port}: connect: no route to host`],
  ENETUNREACH: ({ host, port }) => ['Unreachable', `dial tcp ${host}:${port}: connect: network is unreachable`],
  ENOTFOUND: ({ host }) => ['DNS', `dial tcp: lookup ${host}: no such host`],
  EAI_AGAIN: ({ host }) => ['DNS', `dial tcp: lookup ${host}: Temporary failure in name resolution`],
  // Somebody who speaks something else, HTTP without TLS most of the time.
  ERR_SSL_WRONG_VERSION_NUMBER: notTLS,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: notTLS,
  // Either of the two again, or what the server has against the handshake.
  EPROTO: (of) => {
    const alert = /alert ([a-z ]+)/.exec(of.message)?.[1]
    return alert === undefined ? notTLS(of) : ['Unreachable', `remote error: tls: ${alert}`]
  },
  // The server wants a certificate of its clients, and not what it got.
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: refused('certificate required'),
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: refused('unknown certificate authority'),
  'ERR_SSL_SSL/TLS_ALERT_BAD_CERTIFICATE': refused('bad certificate'),
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: unverified,
  UNABLE_TO_GET_ISSUER_CERT: unverified,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: unverified,
  SELF_SIGNED_CERT_IN_CHAIN: unverified,
  DEPTH_ZERO_SELF_SIGNED_CERT: unverified,
  CERT_SIGNATURE_FAILURE: unverified,
  CERT_HAS_EXPIRED: expired,
  CERT_NOT_YET_VALID: expired,
  ERR_TLS_CERT_ALTNAME_INVALID: ({ host, names }) => ['TLSName', `${notVerified} ${namesText(host, names)}`],
}

/** Which names a certificate has of the kind that was wanted. Upstream: crypto/x509, HostnameError, Go 1.26. */
function namesText(host: string, names: string): string {
  const address = isIP(host) !== 0
  const prefix = address ? 'IP Address:' : 'DNS:'
  const valid = names.split(', ').flatMap((name) => (name.startsWith(prefix) ? [name.slice(prefix.length)] : []))
  const shown = valid.map((name) => (isIPv6(name) ? shortAddress(name) : name))
  if (shown.length > 0) return `certificate is valid for ${shown.join(', ')}, not ${host}`
  return address
    ? `cannot validate certificate for ${host} because it doesn't contain any IP SANs`
    : `certificate is not valid for any names, but wanted to match ${host}`
}

/** `::1` for 0:0:0:0:0:0:0:1. */
const shortAddress = (address: string): string => new URL(`https://[${address}]`).hostname.slice(1, -1)
