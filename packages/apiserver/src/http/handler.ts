/**
 * The API server as a function from request to response. Requests arrive with the result of their authentication. A resource request
 * passes these stages: route, impersonation, authorization, reading of the body, seat, content negotiation, parsing of options and body,
 * verb of the engine, encoding. A watch needs no body and no seat.
 */
import type { Clock, Logger } from '@capstan/kube'
import { pauseIfDue, StatusError, silent } from '@capstan/kube'
import { type Attributes, authorize } from '../auth/authorizer.ts'
import { anonymous, impersonate } from '../auth/impersonate.ts'
import { attributesOfPath } from '../auth/request-attributes.ts'
import type { TokenIssuer } from '../auth/token.ts'
import type { Caller } from '../auth/user.ts'
import type { Engine } from '../verbs/engine.ts'
import { withCORS } from './cors.ts'
import { Documents } from './discovery/documents.ts'
import type { Identity } from '../auth/authenticate.ts'
import type { HttpResponse, HttpHandler, HttpRequest } from './exchange.ts'
import type { HealthCheck } from './health.ts'
import { healthResponse } from './health.ts'
import { type RunLimited, type Limits, requestLimiter } from './limits/limits.ts'
import { threadSeats } from './limits/thread-seats.ts'
import { YAMLReader } from './body/read-yaml.ts'
import { unauthorized } from './errors.ts'
import { RequestCounts } from './metrics.ts'
import { documentResponse, type PublishedInfo } from './document-routes.ts'
import { errorResponse, forbiddenResponse, notFoundText } from './encode-response.ts'
import { resourceResponse } from './resource-request.ts'
import { isPublic, type Route, routeOf } from './route.ts'
import { versionInfo } from './version.ts'
import { WatchScheduler } from './watch/watch-scheduler.ts'
import { errorOf, SharedLines, type WatchState } from './watch/watch-body.ts'

export interface HandlerOptions {
  readonly engine: Engine
  readonly clock: Clock
  /** Kubernetes version that `/version` reports. Default: `defaultVersion`. */
  readonly version?: string
  readonly checks?: readonly HealthCheck[]
  /** Publishes the configuration and keys with which other servers verify service account tokens. When absent, they are not published. */
  readonly issuer?: TokenIssuer
  /** Options that the server was started with, by flag name, for `/flagz`. */
  readonly flags?: { readonly [name: string]: unknown }
  /** Limits of requests. A limit that is absent has the default value of kube-apiserver. */
  readonly limits?: Partial<Limits>
  /** Regular expressions of origins whose pages may call the server (CORS). Default: none. */
  readonly allowedOrigins?: readonly string[]
  readonly log?: Logger
}

export const defaultVersion = 'v1.36.2'

/** Creates the handler of all requests to an API server. */
export function createHandler(options: HandlerOptions): HttpHandler {
  const { engine, log = silent, version: versionName = defaultVersion } = options
  const server: Server = {
    ...options,
    engine,
    documents: new Documents(engine.resources, options.clock),
    yaml: new YAMLReader(options.clock, threadSeats(options.clock)),
    watchState: { lines: new SharedLines(), scheduler: new WatchScheduler(options.clock) },
    runLimited: requestLimiter(options.clock, engine.resources.flowTable, options.limits),
    version: JSON.stringify(versionInfo(versionName), undefined, 2),
    versionName,
    started: options.clock.now(),
    flags: options.flags ?? {},
    requests: new RequestCounts(),
    checks: options.checks ?? [],
  }
  const handler: HttpHandler = async (request, identity) => {
    server.watchState.scheduler.requestStarted()
    try {
      return withoutCaching(await responseTo(server, request, identity))
    } catch (err) {
      if (!(err instanceof StatusError || request.signal.aborted))
        log.error('Request failed', { method: request.method, path: pathOf(request), err })
      const pause = pauseIfDue(options.clock)
      if (pause) await pause
      return withoutCaching(errorResponse(errorOf(err), request))
    } finally {
      server.watchState.scheduler.requestEnded()
    }
  }
  return withCORS(handler, options.allowedOrigins ?? [])
}

/** Forbids proxies to cache a response, unless the response has a cache-control header of its own. */
const withoutCaching = (response: HttpResponse): HttpResponse =>
  'cache-control' in response.headers
    ? response
    : { ...response, headers: { 'cache-control': 'no-cache, private', ...response.headers } }

interface Server extends PublishedInfo {
  readonly engine: Engine
  readonly yaml: YAMLReader
  readonly watchState: WatchState
  readonly runLimited: RunLimited
}

async function responseTo(server: Server, request: HttpRequest, identity: Identity): Promise<HttpResponse> {
  const queryStart = request.url.indexOf('?')
  const path = queryStart < 0 ? request.url : request.url.slice(0, queryStart)
  const query = new URLSearchParams(queryStart < 0 ? '' : request.url.slice(queryStart + 1))
  const route = routeOf(path)
  // Invalid credentials are rejected on every path, also on public ones.
  if (identity.kind === 'rejected') throw unauthorized()
  const { authorizer } = server.engine
  // As upstream, anonymous requests are rejected when the authorization mode is AlwaysAllow. Unlike upstream, health and version are public.
  if (identity.kind === 'anonymous' && authorizer.modes.includes('AlwaysAllow') && !isPublic(route)) throw unauthorized()
  const forbidden = (err: unknown): HttpResponse => {
    if (err instanceof StatusError && err.reason === 'Forbidden') return forbiddenResponse(err, request)
    throw err
  }
  let caller: Caller
  try {
    caller = impersonate(authorizer, callerOf(identity, request), request)
  } catch (err) {
    return forbidden(err)
  }
  const attributes: Attributes =
    route.kind === 'resource'
      ? attributesOfPath(caller, request.method, route.path, query)
      : { kind: 'path', user: caller, verb: request.method.toLowerCase(), path }
  try {
    if (!isHealth(request.method, path)) authorize(authorizer, attributes)
  } catch (err) {
    return forbidden(err)
  }
  const resource =
    route.kind === 'resource' ? server.engine.resources.find(route.path.group, route.path.version, route.path.plural) : undefined
  const count = (code: number): void => {
    if (resource && attributes.kind === 'resource') server.requests.add(resource, attributes, query.getAll('dryRun'), code)
  }
  try {
    const response = await server.runLimited(attributes, request, query, (requestWithBody) =>
      route.kind === 'resource'
        ? resourceResponse(server, { path: route.path, resource }, requestWithBody, query, caller)
        : routeResponse(server, route, requestWithBody, query),
    )
    count(response.status)
    return response
  } catch (err) {
    count(err instanceof StatusError ? err.code : 500)
    throw err
  }
}

async function routeResponse(
  server: Server,
  route: Exclude<Route, { kind: 'resource' }>,
  request: HttpRequest,
  query: URLSearchParams,
): Promise<HttpResponse> {
  if (route.kind === 'health') return (await healthResponse(route, server.checks, query)) ?? notFoundText()
  if (route.kind === 'none') return notFoundText()
  return documentResponse(server, route, request, query)
}

const pathOf = ({ url }: HttpRequest): string => url.split('?', 1)[0]!

/** The health endpoints (not their single checks) need no authorization, because monitors call them before any role exists. */
const isHealth = (method: string, path: string): boolean =>
  method === 'GET' && (path === '/healthz' || path === '/readyz' || path === '/livez')

function callerOf(identity: Identity & { kind: 'user' | 'anonymous' }, { headers }: HttpRequest): Caller {
  const agent = (headers['user-agent'] ?? 'unknown').split('/', 1)[0]!
  if (identity.kind === 'anonymous') return { name: anonymous, groups: ['system:unauthenticated'], agent }
  const { kind: _, ...user } = identity
  return { ...user, agent }
}
