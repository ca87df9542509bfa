/** Converts Node's errors for failed calls to errors with Go's texts, if Go has such an error, because users search for Go's texts. */
import { isIP, isIPv6 } from 'node:net'
import { NoAnswer } from './hook-failed.ts'
import type { HookProblem } from './hook-problems.ts'

/** Error for a call that the server certainly did not process, so that it can be repeated. */
export class NotHandled extends Error {
  override readonly name = 'NotHandled'
  /** The error to report if there is no other attempt. */
  readonly reason: Error
  /** Maximum number of attempts for the call, including this attempt. */
  readonly tries: number

  constructor(reason: Error, tries: number) {
    super(reason.message, { cause: reason })
    this.reason = reason
    this.tries = tries
  }
}

type NodeError = NodeJS.ErrnoException & { cert?: { subjectaltname?: string } }

/** Returns the error with Go's text; the error itself if Go has no such error. @param url the URL of the call, or of its proxy */
export function goError(err: NodeError, url: URL): Error {
  const port = url.port === '' ? (url.protocol === 'http:' ? '80' : '443') : url.port
  const translate = knownErrors[err.code ?? ''] ?? (err.code?.startsWith('HPE_') ? malformed(err) : undefined)
  if (!translate) return err
  const names = err.cert?.subjectaltname ?? ''
  const [problem, text] = translate({ host: url.hostname, port, names, message: err.message, syscall: err.syscall })
  return new NoAnswer(problem, text, { cause: err })
}

/** Returns the error of a connection through a proxy. Its text names the proxy if the proxy is unreachable. Upstream: Transport.dialConn. */
export function goProxyError(err: NodeError, proxy: URL, url: URL): Error {
  if (err.code === 'ERR_PROXY_TUNNEL') {
    const [, status] = /: HTTP\/1\.\d \d+ (.+)$/.exec(err.message) ?? []
    return new NoAnswer('Unreachable', status ?? 'unexpected EOF', { cause: err })
  }
  if (err.syscall !== 'connect' && err.syscall !== 'getaddrinfo') return goError(err, url)
  const translated = goError(err, proxy)
  return translated instanceof NoAnswer
    ? new NoAnswer(translated.problem, `proxyconnect tcp: ${translated.message}`, { cause: err })
    : translated
}

/** Returns the error for a response that ended too early. */
export const unexpectedEnd = (cause?: unknown): NoAnswer => new NoAnswer('ConnectionReset', 'unexpected EOF', { cause })

interface FailedCall {
  readonly host: string
  readonly port: string
  /** Names in the server's certificate, in the format of Node: `DNS:a, IP Address:127.0.0.1`. */
  readonly names: string
  readonly message: string
  readonly syscall: string | undefined
}
type KnownError = (failedCall: FailedCall) => readonly [HookProblem, string]
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
  // If the server closes the connection without an error, Node reports the same code, but no failed system call.
  ECONNRESET: ({ syscall }) => ['ConnectionReset', syscall === undefined ? 'EOF' : 'connection reset by peer'],
  EPIPE: () => ['ConnectionReset', 'write: broken pipe'],
  ETIMEDOUT: ({ host, port }) => ['Unreachable', `dial tcp ${host}:${port}: connect: connection timed out`],
  EHOSTUNREACH: ({ host, port }) => ['Unreachable', `dial tcp ${host}:${port}: connect: no route to host`],
  ENETUNREACH: ({ host, port }) => ['Unreachable', `dial tcp ${host}:${port}: connect: network is unreachable`],
  ENOTFOUND: ({ host }) => ['DNS', `dial tcp: lookup ${host}: no such host`],
  EAI_AGAIN: ({ host }) => ['DNS', `dial tcp: lookup ${host}: Temporary failure in name resolution`],
  // The server uses another protocol, usually HTTP without TLS.
  ERR_SSL_WRONG_VERSION_NUMBER: notTLS,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: notTLS,
  // Like the two codes above, unless the message contains an alert: then the server rejected the handshake.
  EPROTO: (failedCall) => {
    const alert = /alert ([a-z ]+)/.exec(failedCall.message)?.[1]
    return alert === undefined ? notTLS(failedCall) : ['Unreachable', `remote error: tls: ${alert}`]
  },
  // The server requires a client certificate, or does not accept the one that it got.
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
  // The server negotiated HTTP/2, but its response is not HTTP/2.
  ERR_HTTP2_ERROR: () => ['Garbage', 'connection error: PROTOCOL_ERROR'],
  // Without the stream number of upstream's text, so that the message does not change from call to call.
  ERR_HTTP2_STREAM_ERROR: ({ message }) => ['ConnectionReset', `stream error: ${streamErrorIn(message)}`],
}

function streamErrorIn(message: string): string {
  const name = /NGHTTP2_(\w+)/.exec(message)?.[1] ?? message
  // Node also uses PROTOCOL_ERROR (for invalid responses) and ENHANCE_YOUR_CALM (for headers that are too long) for errors that
  // it detects itself: these two codes do not prove that the server reset the stream.
  return name === 'PROTOCOL_ERROR' || name === 'ENHANCE_YOUR_CALM' ? name : `${name}; received from peer`
}

/** Returns the error for a call without a complete response on a connection that the server closed with a GOAWAY. */
export const goneAway = (code: number, cause?: unknown): NoAnswer =>
  new NoAnswer('ConnectionReset', `http2: server sent GOAWAY and closed the connection; ErrCode=${http2Codes[code] ?? code}`, {
    cause,
  })

/** HTTP/2 error codes by number. Upstream: golang.org/x/net/http2, ErrCode. */
const http2Codes = [
  'NO_ERROR',
  'PROTOCOL_ERROR',
  'INTERNAL_ERROR',
  'FLOW_CONTROL_ERROR',
  'SETTINGS_TIMEOUT',
  'STREAM_CLOSED',
  'FRAME_SIZE_ERROR',
  'REFUSED_STREAM',
  'CANCEL',
  'COMPRESSION_ERROR',
  'CONNECT_ERROR',
  'ENHANCE_YOUR_CALM',
  'INADEQUATE_SECURITY',
  'HTTP_1_1_REQUIRED',
]

/**
 * Returns the text for a certificate that is not valid for the host. It lists the addresses in the certificate if the host is an address,
 * otherwise the DNS names. Upstream: crypto/x509, HostnameError, Go 1.26, which gives only the number of names if there are 100 or more.
 */
function namesText(urlHost: string, names: string): string {
  const host = urlHost.replace(/^\[(.*)\]$/, '$1')
  const isAddress = isIP(host) !== 0
  const prefix = isAddress ? 'IP Address:' : 'DNS:'
  const valid = names.split(', ').flatMap((name) => (name.startsWith(prefix) ? [name.slice(prefix.length)] : []))
  const printed = valid.map((name) => (isIPv6(name) ? shortAddress(name) : name))
  if (printed.length > 0) return `certificate is valid for ${printed.join(', ')}, not ${host}`
  return isAddress
    ? `cannot validate certificate for ${host} because it doesn't contain any IP SANs`
    : `certificate is not valid for any names, but wanted to match ${host}`
}

/** Shortens an IPv6 address: `::1` for 0:0:0:0:0:0:0:1. */
const shortAddress = (address: string): string => new URL(`https://[${address}]`).hostname.slice(1, -1)
