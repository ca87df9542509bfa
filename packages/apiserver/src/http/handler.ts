/**
 * The API server as a function from request to answer. Each request passes the same stages: route, authentication, authorization, body,
 * seat, content negotiation, options, verb of the engine, encoding.
 */
import type { Clock, Logger } from '@capstan/kube'
import { StatusError, silent } from '@capstan/kube'
import { type Attributes, authorize } from '../auth/authorizer.ts'
import { anonymous, impersonated } from '../auth/impersonate.ts'
import { attributesOfPath } from '../auth/request-attributes.ts'
import type { TokenIssuer } from '../auth/token.ts'
import type { Caller } from '../auth/user.ts'
import type { Engine } from '../verbs/engine.ts'
import { withCORS } from './cors.ts'
import { apiGroup, apiGroupList, apiPaths, apiResourceList, apiVersions, hasBuiltin } from './discovery/discovery.ts'
import { Documents } from './discovery/documents.ts'
import type { Identity } from '../auth/authenticate.ts'
import type { HttpAnswer, HttpHandler, HttpRequest } from './exchange.ts'
import type { HealthCheck } from './health.ts'
import { healthAnswer } from './health.ts'
import { acceptsAggregatedDiscovery, parseAccept } from './negotiate.ts'
import { methodNotAllowed, unknownResource } from '../verbs/errors.ts'
import { type Limited, limited, type Limits } from './limits/limits.ts'
import { threadSeats } from './limits/thread-seats.ts'
import { YAMLReader } from './body/read-yaml.ts'
import { unauthorized } from './errors.ts'
import { healthMetrics, metricsAnswer, RequestCounts } from './metrics.ts'
import { discovered, errorAnswer, forbiddenAnswer, json, jsonText, notFoundText } from './encode-response.ts'
import { resourceAnswer } from './resource-request.ts'
import { isPublic, type Route, routeOf } from './route.ts'
import { versionInfo } from './version.ts'
import { WatchScheduler } from './watch/watch-scheduler.ts'
import { errorOf, SharedLines, type Watched } from './watch/watch-body.ts'
import { flagsPage, statusPage } from './zpages.ts'

export interface HandlerOptions {
  readonly engine: Engine
  readonly clock: Clock
  /** Kubernetes version that `/version` reports. */
  readonly version?: string
  readonly checks?: readonly HealthCheck[]
  /** Publishes how other servers verify service account tokens. When absent, nothing is published. */
  readonly issuer?: TokenIssuer
  /** Options that the server was started with, by flag name, for `/flagz`. */
  readonly flags?: { readonly [name: string]: unknown }
  /** Limits of requests. Default: kube-apiserver's. */
  readonly limits?: Partial<Limits>
  /** Regular expressions of origins whose pages may call the server (CORS). */
  readonly allowedOrigins?: readonly string[]
  readonly log?: Logger
}

export const defaultVersion = 'v1.36.2'

export function createHandler(options: HandlerOptions): HttpHandler {
  const { engine, log = silent, version: versionName = defaultVersion } = options
  const server: Server = {
    ...options,
    engine,
    documents: new Documents(engine.resources),
    yaml: new YAMLReader(options.clock, threadSeats(options.clock)),
    watched: { lines: new SharedLines(), scheduler: new WatchScheduler(options.clock) },
    limited: limited(options.clock, options.limits),
    version: JSON.stringify(versionInfo(versionName), undefined, 2),
    versionName,
    started: options.clock.now(),
    flags: options.flags ?? {},
    requests: new RequestCounts(),
    checks: options.checks ?? [],
  }
  const handler: HttpHandler = async (request, identity) => {
    server.watched.scheduler.asked()
    try {
      return uncached(await answerTo(server, request, identity))
    } catch (err) {
      if (!(err instanceof StatusError || request.signal.aborted))
        log.error('Request failed', { method: request.method, path: pathOf(request), err })
      return uncached(errorAnswer(errorOf(err), request))
    } finally {
      server.watched.scheduler.answered()
    }
  }
  return withCORS(handler, options.allowedOrigins ?? [])
}

/** Adds headers that forbid proxies to cache an answer, unless the answer allows it. */
const uncached = (answer: HttpAnswer): HttpAnswer =>
  'cache-control' in answer.headers ? answer : { ...answer, headers: { 'cache-control': 'no-cache, private', ...answer.headers } }

interface Server {
  readonly engine: Engine
  readonly clock: Clock
  readonly documents: Documents
  readonly yaml: YAMLReader
  readonly watched: Watched
  readonly limited: Limited
  /** The body of `/version`. */
  readonly version: string
  readonly versionName: string
  readonly started: number
  readonly flags: { readonly [name: string]: unknown }
  readonly requests: RequestCounts
  readonly checks: readonly HealthCheck[]
  readonly issuer?: TokenIssuer
}

async function answerTo(server: Server, request: HttpRequest, identity: Identity): Promise<HttpAnswer> {
  const mark = request.url.indexOf('?')
  const path = mark < 0 ? request.url : request.url.slice(0, mark)
  const query = new URLSearchParams(mark < 0 ? '' : request.url.slice(mark + 1))
  const route = routeOf(path)
  // Wrong credentials are rejected on every path, public ones too.
  if (identity.kind === 'refused') throw unauthorized()
  const { authorizer } = server.engine
  // Upstream rejects anonymous requests when the authorization mode is AlwaysAllow.
  if (identity.kind === 'anonymous' && authorizer.modes.includes('AlwaysAllow') && !isPublic(route)) throw unauthorized()
  const refused = (err: unknown): HttpAnswer => {
    if (err instanceof StatusError && err.reason === 'Forbidden') return forbiddenAnswer(err, request)
    throw err
  }
  let caller: Caller
  try {
    caller = impersonated(authorizer, callerOf(identity, request), request)
  } catch (err) {
    return refused(err)
  }
  const attributes: Attributes =
    route.kind === 'resource'
      ? attributesOfPath(caller, request.method, route.path, query)
      : { kind: 'path', user: caller, verb: request.method.toLowerCase(), path }
  const count = (code: number): void => {
    if (route.kind === 'resource' && attributes.kind === 'resource')
      server.requests.add(attributes, route.path.version, query.get('dryRun') ?? '', code)
  }
  try {
    if (!isHealth(request.method, path)) authorize(authorizer, attributes)
  } catch (err) {
    count(err instanceof StatusError ? err.code : 500)
    return refused(err)
  }
  try {
    const answer = await server.limited(attributes, request, query, (received) => routed(server, route, received, query, caller))
    count(answer.status)
    return answer
  } catch (err) {
    count(err instanceof StatusError ? err.code : 500)
    throw err
  }
}

async function routed(
  server: Server,
  route: Route,
  request: HttpRequest,
  query: URLSearchParams,
  caller: Caller,
): Promise<HttpAnswer> {
  const { documents } = server
  if (route.kind === 'health') return (await healthAnswer(route, server.checks, query)) ?? notFoundText()
  if (route.kind === 'resource') return resourceAnswer(server, route.path, request, query, caller)
  if (route.kind === 'none') return notFoundText()
  if (request.method !== 'GET' && isForGETAlone(route, documents)) throw methodNotAllowed()
  switch (route.kind) {
    case 'version':
      return jsonText(server.version)
    case 'metrics':
      return metricsAnswer(route.of === 'health' ? await healthMetrics(server.checks) : server.requests.text())
    case 'statusz':
      return statusPage({ started: server.started, now: server.clock.now(), version: server.versionName })
    case 'flagz':
      return flagsPage(server.flags)
    case 'paths':
      return json(apiPaths(documents.groups))
    case 'core':
      return discoveryAnswer(request, documents, 'core', () => apiVersions(documents.group(''), addressOf(request)))
    case 'groups':
      return discoveryAnswer(request, documents, 'groups', () => apiGroupList(documents.groups))
    case 'group': {
      const group = documents.group(route.group)
      return group
        ? discovered({ kind: 'APIGroup', apiVersion: 'v1', ...apiGroup(group) }, request, { routed: false })
        : notFoundText()
    }
    case 'resources': {
      const resources = documents.version(route.group, route.version)
      if (resources) return discovered(apiResourceList(route.group, route.version, resources), request, { routed: true })
      if (!hasBuiltin(documents.group(route.group))) return notFoundText()
      throw unknownResource()
    }
    case 'jwks':
      return openIDAnswer(server.issuer?.jwks(), 'application/jwk-set+json')
    case 'openid-configuration':
      return openIDAnswer(server.issuer?.configuration(`https://${addressOf(request)}`), 'application/json')
    case 'openapi':
      return { ...jsonText(JSON.stringify(documents.openAPIIndex())), headers: { 'content-type': 'text/plain; charset=utf-8' } }
    case 'openapi-document': {
      const document = documents.openAPI(route.path)
      if (!document) return notFoundText()
      const isCurrent = query.get('hash') === document.hash
      return tagged(request, document, {
        'content-type': 'application/json',
        vary: 'Accept',
        ...(isCurrent ? { 'cache-control': 'public, immutable' } : {}),
      })
    }
    case 'openapi-v2':
      return swaggerAnswer(server, request)
  }
}

/**
 * Reports whether a route answers 405 to other methods than GET. Upstream: routes that its router serves know their methods; other
 * documents are answered for every method.
 */
const isForGETAlone = (route: Route, documents: Documents): boolean =>
  route.kind === 'resources'
    ? hasBuiltin(documents.group(route.group))
    : ['core', 'version', 'jwks', 'openid-configuration'].includes(route.kind)

const swaggerTypes = {
  '*/*': 'json',
  'application/*': 'json',
  'application/json': 'json',
  'application/com.github.proto-openapi.spec.v2.v1.0+protobuf': 'protobuf',
  'application/com.github.proto-openapi.spec.v2@v1.0+protobuf': 'protobuf',
} as const satisfies { readonly [type: string]: 'json' | 'protobuf' }

function swaggerAnswer({ documents, version }: Server, request: HttpRequest): HttpAnswer {
  const type = parseAccept(request.headers.accept).find((clause) => clause.type in swaggerTypes)?.type as
    | keyof typeof swaggerTypes
    | undefined
  if (type === undefined) return { status: 406, headers: {}, body: '' }
  const form = swaggerTypes[type]
  const { major, minor } = JSON.parse(version) as { major: string; minor: string }
  return tagged(request, documents.swagger(form, `${major}.${minor}`), {
    'content-type': form === 'json' ? 'application/json' : 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf',
    vary: 'Accept',
  })
}

/** Host and port as the client addresses the server. */
const addressOf = ({ headers }: HttpRequest): string => headers[':authority'] ?? headers.host ?? ''

function openIDAnswer(document: object | undefined, type: string): HttpAnswer {
  if (!document) return notFoundText()
  return { ...json(document), headers: { 'content-type': type, 'cache-control': 'public, max-age=3600' } }
}

function discoveryAnswer(request: HttpRequest, documents: Documents, of: 'core' | 'groups', plain: () => object): HttpAnswer {
  if (!acceptsAggregatedDiscovery(request.headers.accept)) return discovered(plain(), request, { routed: of === 'core' })
  const headers = {
    // Clients select their decoder by exactly this text.
    'content-type': 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList',
    'cache-control': 'public',
    vary: 'Accept',
  }
  return tagged(request, documents.aggregated(of), headers)
}

function tagged(
  request: HttpRequest,
  { bytes, hash }: { bytes: Buffer; hash: string },
  headers: HttpAnswer['headers'],
): HttpAnswer {
  const etag = `"${hash}"`
  if (request.headers['if-none-match'] === etag) return { status: 304, headers: { ...headers, etag }, body: '' }
  return { status: 200, headers: { ...headers, etag }, body: bytes }
}

const pathOf = ({ url }: HttpRequest): string => url.split('?', 1)[0]!

/** Health checks are answered without authorization, because monitors ask before any role exists. */
const isHealth = (method: string, path: string): boolean =>
  method === 'GET' && (path === '/healthz' || path === '/readyz' || path === '/livez')

function callerOf(identity: Identity & { kind: 'user' | 'anonymous' }, { headers }: HttpRequest): Caller {
  const agent = (headers['user-agent'] ?? 'unknown').split('/', 1)[0]!
  if (identity.kind === 'anonymous') return { name: anonymous, groups: ['system:unauthenticated'], agent }
  const { kind: _, ...user } = identity
  return { ...user, agent }
}
