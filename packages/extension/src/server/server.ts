/** An extension server as a function from Request to Response. Upstream: exp/runtime/server, v1.14. */
import type { Hook } from '@capstan/api'
import { Discovery, hookApiVersion, hookPath } from '@capstan/api'
import type { Clock, Logger } from '@capstan/kube'
import { isRecord, messageOf, silent, systemClock } from '@capstan/kube'
import type { Tracer } from '@opentelemetry/api'
import { type Answer, holdFor } from '../author/answer.ts'
import { BudgetExceeded, readBytes, TooLong } from '../wire/body.ts'
import { type Deadline, deadlineOf } from './deadline.ts'
import type { Extension, Handler } from '../author/define-extension.ts'
import { CallLimiter } from './call-limiter.ts'
import { globalTracer, serverSpan } from '../tracing.ts'
import { decodeWire, maxBodyBytes, missingFields, WireError } from '../wire/wire.ts'

export type FetchHandler = (request: Request) => Promise<Response>

export interface ServerOptions {
  /** Default: nothing is logged. */
  readonly log?: Logger
  /** Default: the system clock. */
  readonly clock?: Clock
  /** Tracer for a span per call. Default: the tracer that the program has registered. */
  readonly tracer?: Tracer
  /** Called when a call has ended, also after a timeout or an error. */
  readonly observe?: (call: ServedCall) => void
  /** Default: `defaultServerLimits`. */
  readonly limits?: Partial<ServerLimits>
}

export interface ServerLimits {
  /** Maximum number of concurrent handlers. Additional calls wait, at most for their timeout. */
  readonly inFlight: number
  /** Memory budget in bytes for the bodies of all requests in progress. */
  readonly bytes: number
}

export const defaultServerLimits: ServerLimits = { inFlight: 256, bytes: 256 * 1024 * 1024 }

/** A call of the server, for metrics. */
export interface ServedCall {
  readonly hook: string
  /** Empty for discovery. */
  readonly handler: string
  /**
   * `Success` or `Failure`: status of the response; `Error`: the handler threw or returned an invalid response; `Timeout`: the caller's
   * timeout expired; `Refused`: the request bodies in progress exceed the memory budget; `Gone`: the client disconnected.
   */
  readonly status: 'Success' | 'Failure' | 'Error' | 'Timeout' | 'Refused' | 'Gone'
  /** Milliseconds. */
  readonly took: number
}

/**
 * Returns a server for an extension's handlers and discovery. The response to a request with an invalid body is a Failure with status 200,
 * as upstream. If a handler throws or returns an invalid response, the status is 500; if the caller's timeout expires,
 * 504; if the request bodies in progress exceed the memory budget, 503. The caller's failure policy applies to these three statuses.
 */
export function extensionServer(extension: Extension, options: ServerOptions = {}): FetchHandler {
  const { log = silent, clock = systemClock, tracer = globalTracer(), observe } = options
  const limiter = new CallLimiter({ ...defaultServerLimits, ...options.limits })
  const discovery: Handler = { hook: Discovery, name: '', handle: () => ({ kind: 'proceed' }) }
  const routes = new Map(
    [discovery, ...extension.handlers].map((handler) => [hookPath(handler.hook, handler.name), handler] as const),
  )
  const groups = new Set([...routes.values()].map(({ hook }) => hook.group))
  const discoveryContent = { handlers: extension.handlers.map(discoveryEntry) }

  return async (request) => {
    const { pathname, search, searchParams } = new URL(request.url)
    const cleanPath = pathname.replace(/\/{2,}/g, '/')
    // Redirects to the path without duplicate slashes, as Go's mux does.
    if (cleanPath !== pathname) return new Response(null, { status: 301, headers: { location: cleanPath + search } })
    const handler = routes.get(pathname) ?? routes.get(belowPrefix(pathname, groups))
    if (!handler) return new Response('404 page not found\n', { status: 404 })

    const { hook, name } = handler
    return serverSpan(tracer, request, { hook, handler: name }, async (endSpan) => {
      const started = clock.elapsed()
      const deadline = deadlineOf(request.signal, searchParams.get('timeout'), clock)
      const callLog = log.child({ hook: hook.name, ...(name === '' ? {} : { handler: name }) })
      const outcome = await runCall(handler, request, { limiter, deadline, log: callLog })
      deadline.cancel()

      const response = responseTo(handler, outcome, handler === discovery ? discoveryContent : {})
      // A response that cannot be encoded as JSON is an error of the handler.
      const end: Outcome = outcome.kind === 'answer' && response.status !== 200 ? { kind: 'error' } : outcome
      const took = clock.elapsed() - started
      report(end, took, callLog, hook === Discovery ? 'debug' : 'info')
      observe?.({ hook: hook.name, handler: name, status: statusOf(end), took })
      endSpan({ code: response.status, ...(end.kind === 'answer' ? {} : { error: statusOf(end) }) })
      return response
    })
  }
}

/** The result of a call. */
type Outcome =
  | { readonly kind: 'answer'; readonly answer: Answer; readonly cluster?: string | undefined }
  | { readonly kind: 'error' | 'timeout' | 'gone' }
  | { readonly kind: 'rejected'; readonly why: string }

const statusOf = (end: Outcome): ServedCall['status'] => {
  switch (end.kind) {
    case 'answer':
      return end.answer.kind === 'fail' ? 'Failure' : 'Success'
    case 'error':
      return 'Error'
    case 'timeout':
      return 'Timeout'
    case 'rejected':
      return 'Refused'
    case 'gone':
      return 'Gone'
  }
}

/**
 * Logs one line for a call. Of request and response, it logs only the name of the Cluster, the status, the retry time and the message for
 * users.
 */
function report(end: Outcome, ms: number, log: Logger, level: 'debug' | 'info'): void {
  const status = statusOf(end)
  if (end.kind !== 'answer') {
    log.warn('Hook not answered', { status, ms, ...('why' in end ? { reason: end.why } : {}) })
    return
  }
  const { answer, cluster } = end
  log[level]('Hook answered', {
    status,
    ms,
    ...(cluster === undefined ? {} : { Cluster: cluster }),
    ...(answer.kind === 'hold' ? { retryAfterSeconds: answer.seconds } : {}),
    ...(answer.message ? { reason: answer.message } : {}),
  })
}

function responseTo({ hook, name }: Handler, end: Outcome, discoveryContent: object): Response {
  const handler = `handler ${JSON.stringify(name)}`
  switch (end.kind) {
    case 'answer': {
      const body = responseBody(hook, end.answer)
      try {
        return Response.json(end.answer.kind === 'proceed' ? { ...body, ...discoveryContent } : body)
      } catch (err) {
        return new Response(`unable to marshal response: ${messageOf(err)}\n`, { status: 500 })
      }
    }
    case 'error':
      return new Response(`${handler} failed\n`, { status: 500 })
    case 'timeout':
    case 'gone':
      return new Response(`${handler} did not respond in time\n`, { status: 504 })
    case 'rejected':
      return new Response(`${handler} was not called: ${end.why}\n`, { status: 503, headers: { 'retry-after': '1' } })
  }
}

/** Removes a prefix before the group of a hook: the URL of an ExtensionConfig may have a path. */
function belowPrefix(pathname: string, groups: ReadonlySet<string>): string {
  for (const group of groups) {
    const start = pathname.lastIndexOf(`/${group}/`)
    if (start > 0) return pathname.slice(start)
  }
  return pathname
}

const discoveryEntry = ({ hook, name, timeoutSeconds, failurePolicy }: Handler) => ({
  name,
  requestHook: { apiVersion: hookApiVersion(hook), hook: hook.name },
  ...(timeoutSeconds === undefined ? {} : { timeoutSeconds }),
  ...(failurePolicy === undefined ? {} : { failurePolicy }),
})

interface CallContext {
  readonly limiter: CallLimiter
  readonly deadline: Deadline
  readonly log: Logger
}

/** Reads the request, waits for the concurrency limit and calls the handler, all before the deadline. */
async function runCall(handler: Handler, request: Request, { limiter, deadline, log }: CallContext): Promise<Outcome> {
  const { signal } = deadline
  const bodyCount = limiter.countBody()
  const run = async (): Promise<Outcome> => {
    let decoded: Record<string, unknown>
    try {
      const body = await readBytes(request.body, maxBodyBytes, (bytes) => bodyCount.take(bytes))
      decoded = requestOf(handler.hook, body)
    } catch (err) {
      if (err instanceof BudgetExceeded)
        return { kind: 'rejected', why: 'the request bodies in progress exceed the memory budget' }
      if (err instanceof WireError) return failure(`error unmarshalling request: ${err.message}`)
      return failure(`error reading request: ${err instanceof TooLong ? 'http: request body too large' : messageOf(err)}`)
    }
    const release = await limiter.enter(signal)
    // The signal has aborted, so `aborted` determines the outcome.
    if (!release) return { kind: 'gone' }
    try {
      return { kind: 'answer', answer: await runHandler(handler, decoded, log, signal), cluster: clusterIn(decoded) }
    } catch (err) {
      if (!signal.aborted) log.error('Handler failed', { err })
      return { kind: 'error' }
    } finally {
      release()
    }
  }
  // A handler that continues after the signal has aborted counts against the concurrency limit until it ends.
  const aborted = new Promise<Outcome>((resolve) => {
    const stop = () => resolve({ kind: deadline.passed ? 'timeout' : 'gone' })
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  })
  const finished = run().finally(() => bodyCount.done())
  return Promise.race([aborted, finished])
}

async function runHandler(
  { hook, name, handle }: Handler,
  request: Record<string, unknown>,
  log: Logger,
  signal: AbortSignal,
): Promise<Answer> {
  const settings = (request.settings ?? {}) as { [name: string]: string }
  const answer: Answer | undefined = await handle({ request: request as never, settings, log, signal })
  // Untyped code may return a response of the protocol. A Failure must not be treated as success.
  if (!answer || !kinds.includes(answer.kind)) {
    throw new TypeError(
      `handler ${name} must answer with proceedNow(), proceedWith(), holdFor() or fail(): got ${shapeOf(answer)}`,
    )
  }
  if (answer.kind !== 'hold') return answer
  if (!hook.blocking) throw new TypeError(`${hook.name} cannot be held`)
  // Untyped code may create the object without `holdFor`, which validates the seconds: core rejects fractions.
  return holdFor(answer.seconds, answer.message)
}

const kinds: readonly Answer['kind'][] = ['proceed', 'hold', 'fail']

function shapeOf(value: unknown): string {
  if (isRecord(value)) return `an object with ${Object.keys(value).join(', ') || 'nothing in it'}`
  return value === undefined || value === null ? String(value) : `a ${typeof value}`
}

const failure = (message: string): Outcome => ({ kind: 'answer', answer: { kind: 'fail', message } })

/** Returns the `namespace/name` of the request's Cluster, if it has one. */
function clusterIn({ cluster }: Record<string, unknown>): string | undefined {
  const { metadata } = (cluster ?? {}) as { metadata?: { namespace?: string; name?: string } }
  return metadata?.name === undefined ? undefined : `${metadata.namespace ?? ''}/${metadata.name}`
}

/** Decodes a request. As in Go's server, kind and version are not checked. Required fields must be set, because handlers rely on them. */
function requestOf(hook: Hook, body: Uint8Array): Record<string, unknown> {
  const kind = `${hook.name}Request`
  const request = { ...decodeWire(body, hook.request, kind, 'request'), apiVersion: hookApiVersion(hook), kind }
  const missing = missingFields(request, hook.request)
  if (missing.length > 0) throw new WireError(`${kind} needs ${missing.join(', ')}`)
  return request
}

function responseBody(hook: Hook, answer: Answer): Record<string, unknown> {
  return {
    apiVersion: hookApiVersion(hook),
    kind: `${hook.name}Response`,
    status: answer.kind === 'fail' ? 'Failure' : 'Success',
    ...(answer.message ? { message: answer.message } : {}),
    ...('response' in answer ? answer.response : {}),
    ...(hook.blocking ? { retryAfterSeconds: answer.kind === 'hold' ? answer.seconds : 0 } : {}),
  }
}
