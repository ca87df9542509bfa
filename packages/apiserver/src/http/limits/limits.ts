/** Limits the duration of requests and the number of concurrent requests. */
import { badRequest, type Clock, messageOf, parseDuration, seconds } from '@capstan/kube'
import type { Attributes } from '../../auth/authorizer.ts'
import { type Requester, type HttpResponse, type HttpRequest, maxBodyBytes, TooManyRequests } from '../exchange.ts'
import type { FlowTable } from '../../registry/flow-schema.ts'
import { flowControl, type FlowControlOptions, isAmong } from './flow-control.ts'
import { memoryCeiling } from './memory-ceiling.ts'

export interface Limits extends FlowControlOptions {
  /** Milliseconds after which a request other than a watch times out. Upstream: --request-timeout. */
  readonly requestTimeout: number
  /** Minimum duration in milliseconds of a watch without a timeout. Upstream: --min-request-timeout. */
  readonly minRequestTimeout: number
}

/** Upstream: the defaults of kube-apiserver. */
export const defaultLimits: Limits = {
  maxRequestsInflight: 400,
  maxMutatingRequestsInflight: 200,
  priorityAndFairness: true,
  requestTimeout: seconds(60),
  minRequestTimeout: seconds(1800),
}

type Work = (request: HttpRequest) => Promise<HttpResponse>

/** Runs the work of a request within limits. */
export type RunLimited = (attributes: Attributes, request: HttpRequest, query: URLSearchParams, work: Work) => ReturnType<Work>

/** Returns the limiter of a server. `isMemoryFull` reports whether requests are to be rejected because memory is nearly used up. */
export function requestLimiter(
  clock: Clock,
  table: FlowTable,
  options: Partial<Limits> = {},
  isMemoryFull = memoryCeiling(clock),
): RunLimited {
  const limits = { ...defaultLimits, ...options }
  const flow = flowControl(limits, table, clock, limits.requestTimeout / 4)
  let watches = 0

  async function runInSeat(attributes: Attributes, request: HttpRequest, ending: Ending, work: Work): Promise<HttpResponse> {
    const requester = flow.requester(attributes)
    if (!requester.isExempt && !isAmong(table.urgent, attributes) && isMemoryFull()) throw new TooManyRequests()
    const received = await withBody(request, requester, ending)
    const release = await flow.seat(attributes, requester, () => ending.signal)
    try {
      // The request timed out, or its client disconnected, while the body was read or the request waited for its seat.
      if (ending.hasEnded) throw new TooManyRequests()
      return await work(received)
    } finally {
      release()
    }
  }

  return async (attributes, request, query, work) => {
    if (attributes.kind === 'resource' && attributes.verb === 'watch') {
      if (Number(query.get('timeoutSeconds')) <= 0) query.set('timeoutSeconds', String(watchSeconds(limits, watches++)))
      return work(request)
    }
    const timeout = timeoutOf(query, limits.requestTimeout)
    const ending = new Ending(request.signal)
    try {
      return await withTimeout(clock, timeout, runInSeat(attributes, request, ending, work), () => ending.end())
    } catch (err) {
      if (err instanceof TooManyRequests) return tooManyRequests
      throw err
    }
  }
}

/** Duration of a watch without a timeout: one to two times the minimum, so that watches that began together end at different times. */
const watchSeconds = ({ minRequestTimeout }: Limits, index: number): number =>
  Math.floor((minRequestTimeout / 1000) * (1 + ((index * goldenRatio) % 1)))
const goldenRatio = 0.618034

/**
 * Returns the timeout of a request in milliseconds: the query's timeout, at most `longest`; `longest` if the query has no
 * timeout above 0. Upstream: k8s.io/apiserver/pkg/endpoints/filters/request_deadline.go.
 *
 * @throws StatusError BadRequest for an invalid timeout
 */
function timeoutOf(query: URLSearchParams, longest: number): number {
  const timeoutText = query.get('timeout')
  if (timeoutText === null || timeoutText === '') return longest
  let timeout: number
  try {
    timeout = parseDuration(timeoutText)
  } catch (err) {
    throw badRequest(`invalid timeout specified in the request URL - ${messageOf(err)}`)
  }
  return timeout > 0 ? Math.min(timeout, longest) : longest
}

/** Reads the body first, so that a slow client occupies no seat. Errors of the body are thrown when the handler reads it. */
async function withBody(request: HttpRequest, requester: Requester, ending: Ending): Promise<HttpRequest> {
  const ended = () => ending.signal
  if (request.method === 'GET' || request.method === 'HEAD') return { ...request, ended }
  const body = request.body(maxBodyBytes, requester)
  await body.catch(() => {})
  return { ...request, body: () => body, requester, ended }
}

/** Signal for the end of a request, when the client disconnects or `end` is called. Created on first use. */
class Ending {
  readonly #disconnected: AbortSignal
  #timedOut: AbortController | undefined
  #isOver = false

  constructor(disconnected: AbortSignal) {
    this.#disconnected = disconnected
  }

  get hasEnded(): boolean {
    return this.#isOver || this.#disconnected.aborted
  }

  get signal(): AbortSignal {
    this.#timedOut ??= new AbortController()
    if (this.#isOver) this.#timedOut.abort()
    return AbortSignal.any([this.#disconnected, this.#timedOut.signal])
  }

  end(): void {
    this.#isOver = true
    this.#timedOut?.abort()
  }
}

/**
 * Responds with 504 after the timeout. `end` cancels the waits for a seat and for a resourceVersion, the reading of YAML, and calls of
 * admission webhooks and, for lists, of conversion webhooks; other work continues.
 */
function withTimeout(clock: Clock, timeout: number, work: Promise<HttpResponse>, end: () => void): Promise<HttpResponse> {
  return new Promise((resolve, reject) => {
    const timer = clock.schedule(timeout, () => {
      end()
      resolve(timedOut)
    })
    work.then(
      (response) => {
        timer.cancel()
        resolve(response)
      },
      (err: unknown) => {
        timer.cancel()
        reject(err)
      },
    )
  })
}

const textHeaders = { 'cache-control': 'no-cache, private', 'content-type': 'text/plain; charset=utf-8' }

/** Upstream's response is a Status without kind and apiVersion. */
const timedOut: HttpResponse = {
  status: 504,
  headers: textHeaders,
  body: '{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout","reason":"Timeout","details":{},"code":504}\n',
}

/** Upstream's response is plain text; its Retry-After makes clients retry after a second. */
export const tooManyRequests: HttpResponse = {
  status: 429,
  headers: { ...textHeaders, 'retry-after': '1', 'x-content-type-options': 'nosniff' },
  body: 'Too many requests, please try again later.\n',
}
