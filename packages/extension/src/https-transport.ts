/** Calls extension servers over HTTPS with connections that are kept. Upstream: internal/runtime/client, v1.14. */
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { isIP } from 'node:net'
import type { Target } from './client-config.ts'
import { type HookProblem, NoAnswer } from './hook-failed.ts'
import type { HookTransport, HttpAnswer } from './transport.ts'

export interface ClientCertificate {
  /** PEM. */
  readonly certificate: string
  /** PEM. A secret. */
  readonly key: string
}

/** Connections are shared by calls to the same host with the same authorities, and by no others. */
export function httpsHookTransport(client?: ClientCertificate): HookTransport {
  const agents = new Map<string, Agent>()
  const agentFor = ({ url, ca }: Target): Agent => {
    const key = `${url.hostname}/${ca ?? ''}`
    const known = agents.get(key)
    if (known) return known
    const host = url.hostname.replace(/^\[|\]$/g, '')
    const agent = new Agent({
      keepAlive: true,
      minVersion: 'TLSv1.2',
      timeout: idleTimeout,
      // Names are checked against the host of the URL, whatever the connection says; addresses have no server name.
      ...(isIP(host) ? {} : { servername: host }),
      ...(ca === undefined ? {} : { ca }),
      ...(client ? { cert: client.certificate, key: client.key } : {}),
    })
    agents.set(key, agent)
    return agent
  }

  const send = (target: Target, payload: Buffer, signal: AbortSignal, retried: boolean): Promise<HttpAnswer> =>
    new Promise((resolve, reject) => {
      const outgoing = request(target.url, {
        method: 'POST',
        agent: agentFor(target),
        signal,
        headers: { 'content-type': 'application/json', 'content-length': payload.length },
      })
      outgoing.on('response', (incoming: IncomingMessage) => {
        resolve({ status: incoming.statusCode ?? 0, body: incoming as AsyncIterable<Uint8Array> })
      })
      outgoing.on('error', (err: NodeJS.ErrnoException) => {
        if (signal.aborted) return reject(signal.reason)
        // The server closed a kept connection at the moment it was used again: that says nothing about the server.
        if (outgoing.reusedSocket && err.code === 'ECONNRESET' && !retried) {
          return resolve(send(target, payload, signal, true))
        }
        reject(asGoSaysIt(err, target.url))
      })
      outgoing.end(payload)
    })

  return {
    post: (target, body, signal) => send(target, Buffer.from(body), signal, false),
    close() {
      for (const agent of agents.values()) agent.destroy()
      agents.clear()
    },
  }
}

const idleTimeout = 90_000

/** People search for these texts: they are those of Go where it has one. */
function asGoSaysIt(err: NodeJS.ErrnoException & { cert?: { subjectaltname?: string } }, url: URL): Error {
  const port = url.port === '' ? '443' : url.port
  const known = knownErrors[err.code ?? '']
  if (!known) return err
  const [problem, text] = known({ host: url.hostname, port, names: err.cert?.subjectaltname ?? '' })
  return new NoAnswer(problem, text, { cause: err })
}

type KnownError = (of: { host: string; port: string; names: string }) => readonly [HookProblem, string]
const notVerified = 'tls: failed to verify certificate: x509:'
const unverified: KnownError = () => ['UnknownAuthority', `${notVerified} certificate signed by unknown authority`]
const expired: KnownError = () => ['CertificateExpired', `${notVerified} certificate has expired or is not yet valid`]

const knownErrors: { readonly [code: string]: KnownError } = {
  ECONNREFUSED: ({ host, port }) => ['ConnectionRefused', `dial tcp ${host}:${port}: connect: connection refused`],
  ECONNRESET: () => ['ConnectionReset', 'connection reset by peer'],
  ENOTFOUND: ({ host }) => ['DNS', `dial tcp: lookup ${host}: no such host`],
  EAI_AGAIN: ({ host }) => ['DNS', `dial tcp: lookup ${host}: Temporary failure in name resolution`],
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: unverified,
  UNABLE_TO_GET_ISSUER_CERT: unverified,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: unverified,
  SELF_SIGNED_CERT_IN_CHAIN: unverified,
  DEPTH_ZERO_SELF_SIGNED_CERT: unverified,
  CERT_SIGNATURE_FAILURE: unverified,
  CERT_HAS_EXPIRED: expired,
  CERT_NOT_YET_VALID: expired,
  ERR_TLS_CERT_ALTNAME_INVALID: ({ host, names }) => [
    'TLSName',
    names === ''
      ? `${notVerified} certificate is not valid for any names, but wanted to match ${host}`
      : `${notVerified} certificate is valid for ${names.replace(/(DNS|IP Address):/g, '')}, not ${host}`,
  ],
}
