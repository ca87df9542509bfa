/**
 * Calls webhooks: sends a JSON document over HTTPS to a URL or to a Service, and returns the JSON document of the response. Most errors
 * have the texts of client-go and Go's HTTP client, because users search for these texts.
 */
import { posix } from 'node:path'
import { Agent, request as httpsRequest } from 'node:https'
import {
  type Clock,
  inPieces,
  isLong,
  isRecord,
  notAnObjectText,
  readJSON,
  seconds,
  type WebhookClientConfig,
  writeJSON,
  writingJSON,
} from '@capstan/kube'
import { trustSystem } from '@capstan/kube/node'

/** Returns the address of a Service; `undefined` when the Service does not exist. */
export type ResolveService = (namespace: string, name: string, port: number) => URL | undefined

export interface WebhookTarget {
  readonly url: URL
  /** CA certificates in PEM format; default: the CA certificates of the system. */
  readonly ca: string | undefined
  /** Name that the certificate must contain; default: the host of the URL. */
  readonly servername: string | undefined
}

export interface WebhookHttpResponse {
  readonly status: number
  readonly contentType: string
  readonly body: Buffer
}

/** Sends requests to webhooks. `post` throws an Error with the reason when a request fails. */
export interface WebhookTransport {
  post(target: WebhookTarget, body: string, signal: AbortSignal): Promise<WebhookHttpResponse>
  close(): void
}

export interface WebhookCallerOptions {
  readonly clock: Clock
  /** Default: HTTPS. */
  readonly transport?: WebhookTransport
  /** Without it, calls to Services fail. */
  readonly resolveService?: ResolveService
}

/** Error for a failed call of a webhook: there is no response, its status is not 200 to 206, it is too long, or it is not a JSON object. */
export class WebhookCallError extends Error {
  override readonly name = 'WebhookCallError'
}

/** Calls webhooks. `close` cancels the calls in progress. */
export class WebhookCaller {
  readonly #clock: Clock
  readonly #transport: WebhookTransport
  readonly #resolve: ResolveService | undefined
  readonly #closing = new AbortController()

  constructor({ clock, transport = httpsWebhooks(), resolveService }: WebhookCallerOptions) {
    this.#clock = clock
    this.#transport = transport
    this.#resolve = resolveService
  }

  /**
   * Sends `review` to a webhook, and returns the JSON document of the response.
   * @param review an object, or its JSON
   * @throws WebhookCallError
   */
  async call(
    config: WebhookClientConfig,
    timeoutSeconds: number,
    review: object | string,
    signal?: AbortSignal,
  ): Promise<unknown> {
    const calledUrl = urlText(config, timeoutSeconds)
    const fail = (reason: string) => new WebhookCallError(`Post ${JSON.stringify(calledUrl)}: ${reason}`)
    const target = this.#target(config, timeoutSeconds)
    if (typeof target === 'string') throw fail(target)

    const body =
      typeof review === 'string' ? review : isLong(review) ? await inPieces(this.#clock, writingJSON(review)) : writeJSON(review)
    const ending = new AbortController()
    const cancel = () => ending.abort(new Error('context canceled'))
    const timer = this.#clock.schedule(seconds(timeoutSeconds), () => ending.abort(new Error('context deadline exceeded')))
    const sources = [this.#closing.signal, ...(signal ? [signal] : [])]
    for (const source of sources) {
      if (source.aborted) cancel()
      source.addEventListener('abort', cancel, { once: true })
    }
    let response: WebhookHttpResponse
    try {
      response = await unlessAborted(this.#transport.post(target, body, ending.signal), ending.signal)
    } catch (err) {
      throw fail(ending.signal.aborted ? (ending.signal.reason as Error).message : (err as Error).message)
    } finally {
      timer.cancel()
      for (const source of sources) source.removeEventListener('abort', cancel)
    }
    return documentOf(response)
  }

  close(): void {
    this.#closing.abort()
    this.#transport.close()
  }

  #target({ url, service, caBundle }: WebhookClientConfig, timeoutSeconds: number): WebhookTarget | string {
    const ca = caBundle ? Buffer.from(caBundle, 'base64').toString('utf8') : undefined
    let to: URL
    let servername: string | undefined
    if (service) {
      const { namespace, name, port = 443, path = '' } = service
      if (!this.#resolve) {
        return `service ${JSON.stringify(name)} cannot be reached: this server has no network of Services, use clientConfig.url`
      }
      const address = this.#resolve(namespace, name, port)
      if (!address) return `service ${JSON.stringify(name)} not found`
      to = new URL(address)
      to.pathname = cleanPath(path)
      servername = `${name}.${namespace}.svc`
    } else {
      to = new URL(url!)
      to.pathname = cleanPath(to.pathname)
    }
    to.searchParams.set('timeout', `${timeoutSeconds}s`)
    return { url: to, ca, servername }
  }
}

function urlText({ url, service }: WebhookClientConfig, timeoutSeconds: number): string {
  const { namespace = '', name = '', port = 443, path = '' } = service ?? {}
  const [, origin = '', urlPath = ''] = /^(https:..[^/]+)(.*)$/.exec(url ?? '') ?? []
  const address = service ? `https://${name}.${namespace}.svc:${port}${cleanPath(path)}` : `${origin}${cleanPath(urlPath)}`
  return `${address}?timeout=${timeoutSeconds}s`
}

/**
 * Cleans a path as Go's path.Join does. envtest configures `https://HOST//PATH`, which the webhook server of controller-runtime would
 * redirect.
 */
const cleanPath = (path: string): string => posix.join('/', path).replace(/(.)\/$/, '$1')

function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

/** Returns the JSON object of the body. @throws WebhookCallError when the status is not 200 to 206, or the body is not a JSON object */
function documentOf({ status, contentType, body }: WebhookHttpResponse): unknown {
  if (status < 200 || status > 206) throw new WebhookCallError(statusText(status, contentType, body))
  if (body.length === 0)
    throw new WebhookCallError(`0-length response with status code: ${status} and content type: ${contentType}`)
  let document: unknown
  try {
    document = readJSON(body.toString('utf8'))
  } catch {
    // Upstream parses a body that is not JSON as YAML, where plain text is a string.
    document = ''
  }
  if (isRecord(document)) return document
  throw new WebhookCallError(`couldn't get version/kind; json parse error: ${notAnObjectText(document)}`)
}

/**
 * Returns the error text of client-go for a response without a Status. Exception: for 406 and 415, the text is fixed, whereas client-go uses
 * the body if it is text. Upstream: NewGenericServerResponse.
 */
function statusText(status: number, contentType: string, body: Buffer): string {
  const isText = contentType === '' || contentType.startsWith('text/')
  const bodyText = (isText && body.subarray(0, 2048).toString('utf8').trim()) || 'unknown'
  const standardText = byStatus[status]
  if (standardText !== undefined) return standardText
  if (status === 403) return bodyText
  if (status >= 500) return `an error on the server (${JSON.stringify(bodyText)}) has prevented the request from succeeding`
  return `the server responded with the status code ${status} but did not return more information`
}

const byStatus: { readonly [status: number]: string } = {
  400: 'the server rejected our request for an unknown reason',
  401: 'the server has asked for the client to provide credentials',
  404: 'the server could not find the requested resource',
  405: 'the server does not allow this method on the requested resource',
  406: 'the server was unable to respond with a content type that the client supports',
  409: 'the server reported a conflict',
  415: 'the server was unable to respond with a content type that the client supports',
  422: 'the server rejected our request due to an error in our request',
  429: 'the server has received too many requests and has asked us to try again later',
  503: 'the server is currently unable to handle the request',
  504: 'the server was unable to return a response in the time allotted, but may still be processing the request',
}

/** Maximum number of concurrent connections of one agent (see `httpsWebhooks`); further requests wait. */
const MaxSockets = 64
/** Maximum number of agents. The least recently used agent is closed first. */
const MaxAgents = 64
/**
 * Number of bytes by which a response may exceed twice the size of its request: a webhook returns changed objects, or a patch in base64.
 */
const ResponseAllowance = 2 << 20

/** Sends requests over HTTPS. Each combination of origin, server name and CA certificates has an agent with persistent connections. */
export function httpsWebhooks(): WebhookTransport {
  const agents = new Map<string, Agent>()

  function agentFor({ url, ca, servername }: WebhookTarget): Agent {
    const key = `${url.origin} ${servername ?? ''} ${ca ?? ''}`
    let agent = agents.get(key)
    if (agent) agents.delete(key)
    else {
      agent = new Agent({
        keepAlive: true,
        keepAliveMsecs: seconds(30),
        maxSockets: MaxSockets,
        // Go accepts the server's own certificate as CA bundle, independent of its issuer. envtest relies on this.
        ...(ca === undefined ? trustSystem() : { ca, allowPartialTrustChain: true }),
        ...(servername === undefined ? {} : { servername }),
      })
    }
    // Inserts the agent as the newest entry, so that the first entry is the least recently used one.
    agents.set(key, agent)
    const oldest = agents.size > MaxAgents ? agents.entries().next().value : undefined
    if (oldest) {
      agents.delete(oldest[0])
      oldest[1].destroy()
    }
    return agent
  }

  return {
    async post(target, body, signal) {
      try {
        return await post(target, agentFor(target), Buffer.from(body), signal)
      } catch (err) {
        throw new Error(goErrorText(err as NodeJS.ErrnoException, target), { cause: err })
      }
    },
    close() {
      for (const agent of agents.values()) agent.destroy()
      agents.clear()
    },
  }
}

function post({ url }: WebhookTarget, agent: Agent, body: Buffer, signal: AbortSignal): Promise<WebhookHttpResponse> {
  return new Promise((resolve, reject) => {
    const outgoing = httpsRequest(url, {
      agent,
      method: 'POST',
      headers: {
        accept: 'application/json, */*',
        'content-type': 'application/json',
        'content-length': body.length,
        'user-agent': 'kube-apiserver-admission',
      },
    })
    const abort = () => outgoing.destroy(new Error('aborted'))
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    const removeAbortListener = () => signal.removeEventListener('abort', abort)
    outgoing.on('error', (err: NodeJS.ErrnoException) => {
      removeAbortListener()
      // The webhook may close an idle connection just as it is reused. Repeating is safe: a review may be sent twice.
      if (outgoing.reusedSocket && (err.code === 'ECONNRESET' || err.code === 'EPIPE') && !signal.aborted) {
        resolve(post({ url } as WebhookTarget, agent, body, signal))
      } else reject(err)
    })
    outgoing.on('response', (response) => {
      const chunks: Buffer[] = []
      const limit = ResponseAllowance + 2 * body.length
      let size = 0
      response.on('data', (chunk: Buffer) => {
        size += chunk.length
        if (size > limit) outgoing.destroy(new Error(`the response is longer than ${limit} bytes`))
        else chunks.push(chunk)
      })
      response.on('end', () => {
        removeAbortListener()
        resolve({
          status: response.statusCode ?? 500,
          contentType: response.headers['content-type'] ?? '',
          body: Buffer.concat(chunks),
        })
      })
      response.on('error', (err) => {
        removeAbortListener()
        reject(err)
      })
    })
    outgoing.end(body)
  })
}

const unknownAuthority = 'tls: failed to verify certificate: x509: certificate signed by unknown authority'

function goErrorText(
  err: NodeJS.ErrnoException & { address?: string; port?: number; reason?: string },
  { url, ca }: WebhookTarget,
) {
  switch (err.code) {
    case 'ECONNREFUSED':
      return `dial tcp ${err.address ?? url.hostname}:${err.port ?? (url.port || 443)}: connect: connection refused`
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `dial tcp: lookup ${url.hostname}: no such host`
    case 'ECONNRESET':
      return 'EOF'
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
    case 'UNABLE_TO_GET_ISSUER_CERT':
    case 'SELF_SIGNED_CERT_IN_CHAIN':
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
    case 'CERT_SIGNATURE_FAILURE':
      return unknownAuthority
    case 'CERT_HAS_EXPIRED':
    case 'CERT_NOT_YET_VALID':
      return 'tls: failed to verify certificate: x509: certificate has expired or is not yet valid'
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return `tls: failed to verify certificate: x509: ${err.reason ?? err.message}`
    case undefined:
    default:
      return ca !== undefined && err.code?.startsWith('ERR_OSSL_')
        ? 'unable to load root certificates: unable to parse bytes as PEM block'
        : err.message || err.code || 'failed'
  }
}
