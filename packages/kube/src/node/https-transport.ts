/**
 * Transport to an API server over HTTPS (HTTP/1.1) with keep-alive and JSON. It sends at most 16 requests at once; further requests wait.
 * Watches, and requests for Leases and Events, have connections of their own and are not counted: watches do not delay requests, and
 * requests delay neither Leases nor Events.
 */
import { readFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { Agent, request as httpsRequest } from 'node:https'
import type { ApiRequest, Transport, WatchEvent } from '../client.ts'
import type { Clock } from '../clock.ts'
import { minutes, seconds, sleep } from '../clock.ts'
import { StatusError } from '../errors.ts'
import { freeze, isRecord } from '../json.ts'
import { Event } from '../kinds/event.ts'
import { Lease } from '../kinds/lease.ts'
import { readJSON, writeJSON } from '../json-text.ts'
import type { ObjectList } from '../object.ts'
import type { Random } from '../random.ts'
import { methodOf, urlOf } from '../request.ts'
import { errorOfResponse } from './error-response.ts'
import { readJSONObjects } from './json-values.ts'
import { trustSystem } from './system-authorities.ts'
import type { ClusterAccess } from './kubeconfig.ts'

export interface HttpsTransportOptions {
  clock: Clock
  random: Random
  /** Default capstan. Servers use the part before the first '/' as field manager of writes without a field manager. */
  userAgent?: string
  /** Timeout of requests in milliseconds; default one minute. For a watch: the time until the server has accepted it. */
  timeout?: number
  /**
   * Milliseconds without data after which a watch fails, at most a quarter later. Default 11 minutes: the server ends each watch earlier,
   * because this transport requests a `timeoutSeconds` of at most 10 minutes, unless the caller sets it.
   */
  stallAfter?: number
  /** Size limit of responses except those to watches; default 512 MiB. */
  maxResponseBytes?: number
  /** Called for each HTTP response with its status code, and with `<error>` for a request without a response, as client-go counts them. */
  onResponse?: (method: string, code: string) => void
}

/**
 * Creates a transport. Its methods throw StatusError: the server's error; ServiceUnavailable or Timeout without a complete response;
 * InternalError for a successful response that is not JSON; RequestEntityTooLarge for a response longer than `maxResponseBytes`, or longer
 * than 32 MiB to a rejected watch. A watch event longer than 32 MiB ends the watch with ServiceUnavailable. Errors of `beforeSend`, and of
 * reading the token file, are thrown unchanged. An aborted request rejects with the reason of its signal; an open watch ends without an
 * error when it is aborted.
 */
export function httpsTransport(access: ClusterAccess, options: HttpsTransportOptions): Transport {
  return new HttpsTransport(access, options)
}

/** Media type of a list with only the metadata of items. Upstream: metadata.Client of client-go. */
const metadataOnlyType = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1'
/** Size limit of one watch event, and of the response to a rejected watch. */
const maxEventBytes = 32 << 20
/**
 * Limit of concurrent requests; further requests wait in this process. A busy server would not finish more concurrent requests sooner: they
 * would delay the requests of other clients, and the webhook calls of each write, which have a time limit.
 */
const MaxConcurrent = 16
/** Limit of retries when the server sends Retry-After. Upstream: client-go's rest.Request. */
const maxRetries = 10

class HttpsTransport implements Transport {
  readonly #access: ClusterAccess
  readonly #options: Required<HttpsTransportOptions>
  readonly #url: URL
  readonly #agent: Agent
  /**
   * Agent for requests that must not wait for other requests. A Lease that is renewed late is lost. A manager sends Events one after the
   * other, so that each wait would delay all later Events.
   */
  readonly #directAgent: Agent
  readonly #watchAgent: Agent
  #token: { value: string; readAt: number } | undefined

  constructor(access: ClusterAccess, options: HttpsTransportOptions) {
    this.#access = access
    this.#options = {
      userAgent: 'capstan',
      timeout: minutes(1),
      stallAfter: minutes(11),
      maxResponseBytes: 512 << 20,
      onResponse: () => {},
      ...options,
    }
    this.#url = new URL(access.server)
    const client = {
      ...(access.certificate === undefined ? {} : { cert: access.certificate }),
      ...(access.key === undefined ? {} : { key: access.key }),
    }
    const connection = {
      ...client,
      keepAlive: true,
      keepAliveMsecs: seconds(30),
      scheduling: 'lifo' as const,
      rejectUnauthorized: access.insecure !== true,
      // Upstream: Go accepts the server's own certificate as the CA certificate, even if another CA issued it.
      ...(access.ca === undefined ? trustSystem(client) : { ca: access.ca, allowPartialTrustChain: true }),
      ...(access.servername === undefined ? {} : { servername: access.servername }),
    }
    this.#agent = new Agent({ ...connection, maxSockets: MaxConcurrent })
    this.#directAgent = new Agent(connection)
    this.#watchAgent = new Agent(connection)
  }

  async send(request: ApiRequest, signal?: AbortSignal): Promise<unknown> {
    const { clock, timeout, maxResponseBytes } = this.#options
    const isDirect = request.plural === Lease.plural || request.plural === Event.plural
    const agent = isDirect ? this.#directAgent : this.#agent
    const timedOut = new AbortController()
    const timer = clock.schedule(timeout, () => {
      timedOut.abort(this.#unreachable('Timeout', request, `timed out after ${timeout / 1000} s`))
    })
    const anySignal = signal ? AbortSignal.any([signal, timedOut.signal]) : timedOut.signal
    try {
      for (let retries = 0; ; retries++) {
        const response = await this.#open(request, agent, anySignal)
        const body = await this.#read(response, request, maxResponseBytes, anySignal)
        const code = response.statusCode ?? 500
        // Some servers respond to `/` without JSON. Upstream's health probe of a cluster also ignores this body.
        if (code < 300) return request.version === '' ? {} : withItemTypes(request, this.#parse(body, request))
        const retryAfter = Number(response.headers['retry-after'])
        const mayRetry = (code === 429 || code === 503) && retryAfter >= 1 && retries < maxRetries
        if (!mayRetry) throw errorOfResponse(request, code, body)
        await sleep(clock, seconds(retryAfter), anySignal)
      }
    } catch (err) {
      if (signal?.aborted) throw signal.reason
      throw err
    } finally {
      timer.cancel()
    }
  }

  async watch(request: ApiRequest, signal: AbortSignal): Promise<AsyncIterable<WatchEvent>> {
    const { random, timeout, clock } = this.#options
    // Upstream: client-go requests a random timeout of 5 to 10 minutes, so that not all watches reconnect at the same time.
    const timeoutSeconds = request.options?.timeoutSeconds ?? Math.floor(300 * (1 + random.next()))
    const timedOut = new AbortController()
    const timer = clock.schedule(timeout, () => {
      timedOut.abort(this.#unreachable('Timeout', request, `timed out after ${timeout / 1000} s`))
    })
    try {
      const timedRequest = { ...request, options: { ...request.options, timeoutSeconds } }
      const response = await this.#open(timedRequest, this.#watchAgent, AbortSignal.any([signal, timedOut.signal]))
      if (response.statusCode !== 200) {
        const body = await this.#read(response, request, maxEventBytes, AbortSignal.any([signal, timedOut.signal]))
        throw errorOfResponse(request, response.statusCode ?? 500, body)
      }
      return this.#events(response, request, signal)
    } finally {
      timer.cancel()
    }
  }

  close(): void {
    this.#agent.destroy()
    this.#directAgent.destroy()
    this.#watchAgent.destroy()
  }

  async *#events(response: IncomingMessage, request: ApiRequest, signal: AbortSignal): AsyncGenerator<WatchEvent> {
    const { clock, stallAfter } = this.#options
    // Time at which the wait for data from the server began; `undefined` while the reader processes data.
    let waitingSince: number | undefined = clock.elapsed()
    const check = () => {
      if (waitingSince !== undefined && clock.elapsed() - waitingSince >= stallAfter)
        response.destroy(this.#unreachable('Timeout', request, `the server sent no data for ${stallAfter / 1000} s`))
      else timer = clock.schedule(stallAfter / 4, check)
    }
    let timer = clock.schedule(stallAfter / 4, check)
    const abort = () => response.destroy()
    signal.addEventListener('abort', abort, { once: true })
    try {
      if (signal.aborted) return
      for await (const texts of readJSONObjects(response, maxEventBytes)) {
        waitingSince = undefined
        for (const text of texts) {
          const event = this.#parse(text, request) as WatchEvent | { type: 'ERROR'; object: never }
          if (event.type === 'ERROR') throw StatusError.from(event.object)
          yield freeze(event)
        }
        waitingSince = clock.elapsed()
      }
    } catch (err) {
      if (signal.aborted) return
      if (err instanceof SyntaxError) throw this.#notJson(request, err)
      throw err instanceof StatusError ? err : this.#unreachable('ServiceUnavailable', request, causeText(err), err)
    } finally {
      timer.cancel()
      signal.removeEventListener('abort', abort)
      response.destroy()
    }
  }

  /** Sends a request and resolves with the response, before its body is read. */
  async #open(request: ApiRequest, agent: Agent, signal: AbortSignal): Promise<IncomingMessage> {
    const authorization = await this.#authorization()
    signal.throwIfAborted()
    const body = request.body === undefined ? undefined : Buffer.from(writeJSON(request.body))
    const { hostname, port, pathname } = this.#url
    const method = methodOf(request.verb)
    const attempt = () =>
      new Promise<IncomingMessage>((resolve, reject) => {
        const outgoing = httpsRequest({
          agent,
          method,
          host: hostname.startsWith('[') ? hostname.slice(1, -1) : hostname,
          port: port === '' ? 443 : Number(port),
          path: (pathname === '/' ? '' : pathname) + urlOf(request),
          headers: {
            accept: request.metadataOnly ? `${metadataOnlyType},application/json` : 'application/json',
            'user-agent': this.#options.userAgent,
            ...(authorization === undefined ? {} : { authorization }),
            ...(body === undefined
              ? {}
              : { 'content-type': request.patchType ?? 'application/json', 'content-length': body.length }),
          },
        })
        let errorOfBeforeSend: unknown
        const end = () => {
          try {
            request.beforeSend?.()
            outgoing.end(body)
          } catch (err) {
            errorOfBeforeSend = err
            outgoing.destroy(err as Error)
          }
        }
        const abort = () => outgoing.destroy(signal.reason instanceof Error ? signal.reason : new Error('aborted'))
        signal.addEventListener('abort', abort, { once: true })
        outgoing.on('response', (response) => {
          signal.removeEventListener('abort', abort)
          this.#options.onResponse(method, String(response.statusCode))
          resolve(response)
        })
        outgoing.on('error', (err: NodeJS.ErrnoException) => {
          signal.removeEventListener('abort', abort)
          if (errorOfBeforeSend !== undefined) return reject(errorOfBeforeSend)
          // The server may close an idle connection while the request is being sent. Only reads are sent again.
          const mayRepeat = outgoing.reusedSocket && err.code === 'ECONNRESET' && method === 'GET'
          this.#options.onResponse(method, '<error>')
          if (signal.aborted) reject(signal.reason)
          else if (mayRepeat) resolve(attempt())
          else reject(this.#unreachable('ServiceUnavailable', request, causeText(err), err))
        })
        // The request may wait for a connection, and a new connection for its TLS handshake. `beforeSend` is called after these waits.
        if (request.beforeSend === undefined) outgoing.end(body)
        else outgoing.on('socket', (socket) => (socket.connecting ? socket.once('secureConnect', end) : end()))
      })
    return attempt()
  }

  async #read(response: IncomingMessage, request: ApiRequest, limit: number, signal: AbortSignal): Promise<Buffer> {
    const abort = () => response.destroy()
    signal.addEventListener('abort', abort, { once: true })
    try {
      const chunks: Buffer[] = []
      let size = 0
      for await (const chunk of response as AsyncIterable<Buffer>) {
        size += chunk.length
        if (size > limit)
          throw new StatusError(
            'RequestEntityTooLarge',
            `${describe(request)}: the response of ${this.#url.origin} is longer than ${limit} bytes`,
          )
        chunks.push(chunk)
      }
      return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
    } catch (err) {
      if (signal.aborted) throw signal.reason
      throw err instanceof StatusError ? err : this.#unreachable('ServiceUnavailable', request, causeText(err), err)
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }

  #parse(body: Buffer, request: ApiRequest): unknown {
    try {
      return readJSON(body.toString('utf8'))
    } catch (cause) {
      throw this.#notJson(request, cause)
    }
  }

  #notJson(request: ApiRequest, cause: unknown): StatusError {
    const message = `${describe(request)}: the response of ${this.#url.origin} is not JSON`
    return new StatusError('InternalError', message, { cause })
  }

  async #authorization(): Promise<string | undefined> {
    const { token, tokenFile, basic } = this.#access
    if (basic) return `Basic ${Buffer.from(`${basic.username}:${basic.password}`).toString('base64')}`
    if (token !== undefined) return `Bearer ${token}`
    if (tokenFile === undefined) return undefined
    const now = this.#options.clock.elapsed()
    if (!this.#token || now - this.#token.readAt > minutes(1)) {
      const value = (await readFile(tokenFile, 'utf8')).trim()
      this.#token = { value, readAt: now }
    }
    return `Bearer ${this.#token.value}`
  }

  #unreachable(reason: 'ServiceUnavailable' | 'Timeout', request: ApiRequest, problem: string, cause?: unknown): StatusError {
    return new StatusError(reason, `${describe(request)}: cannot reach ${this.#url.origin}: ${problem}`, { cause })
  }
}

function describe(request: ApiRequest): string {
  const { verb, plural, group, name } = request
  if (plural === '') return `${verb} ${urlOf(request)}`
  return `${verb} ${group === '' ? plural : `${plural}.${group}`}${name === undefined ? '' : ` ${name}`}`
}

const causeText = (err: unknown): string =>
  err instanceof Error ? err.message || (err as NodeJS.ErrnoException).code || err.name : 'failed'

/** Adds the apiVersion and kind of list items, which servers omit for built-in kinds, and `items` if it is absent. Freezes the response. */
function withItemTypes(request: ApiRequest, response: unknown): unknown {
  if (request.verb === 'list') {
    if (!isRecord(response)) throw new StatusError('InternalError', `${describe(request)}: the response is not a list`)
    const list = response as unknown as ObjectList
    // A list without a kind is accepted, as by client-go.
    const { apiVersion, kind } = list as Partial<ObjectList>
    const itemKind = kind?.replace(/List$/, '')
    list.items ??= []
    for (const item of list.items) {
      if (apiVersion !== undefined) item.apiVersion ??= apiVersion
      if (itemKind !== undefined) item.kind ??= itemKind
    }
  }
  return freeze(response)
}
