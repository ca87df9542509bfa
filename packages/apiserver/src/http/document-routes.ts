/** Responses that are documents about the server: discovery, OpenAPI, version, metrics, status pages, keys of the token issuer. */
import type { Clock } from '@capstan/kube'
import type { TokenIssuer } from '../auth/token.ts'
import { methodNotAllowed, unknownResource } from '../verbs/errors.ts'
import { apiGroup, apiGroupList, apiPaths, apiResourceList, apiVersions, hasBuiltin } from './discovery/discovery.ts'
import type { Documents } from './discovery/documents.ts'
import { encodeDiscovery, json, jsonText, notFoundText } from './encode-response.ts'
import type { HttpResponse, HttpRequest } from './exchange.ts'
import type { HealthCheck } from './health.ts'
import { healthMetrics, metricsResponse, type RequestCounts } from './metrics.ts'
import { acceptsAggregatedDiscovery, parseAccept } from './negotiate.ts'
import type { Route } from './route.ts'
import { flagsPage, statusPage } from './zpages.ts'

/** Information that a server publishes about itself. */
export interface PublishedInfo {
  readonly documents: Documents
  readonly clock: Clock
  /** The body of `/version`. */
  readonly version: string
  /** Kubernetes version, such as `v1.36.2`. */
  readonly versionName: string
  /** Start of the server, in milliseconds since the Unix epoch. */
  readonly started: number
  /** Options of the server, by flag name. */
  readonly flags: { readonly [name: string]: unknown }
  readonly requests: RequestCounts
  readonly checks: readonly HealthCheck[]
  /** Absent: keys and configuration of the issuer are not published. */
  readonly issuer?: TokenIssuer
}

type DocumentRoute = Exclude<Route, { kind: 'health' | 'resource' | 'none' }>

/**
 * Returns the document for a route; a 304 response when the client has it already, a 404 response when there is none, and for OpenAPI v2 a
 * 406 response when the Accept header has no supported media type.
 *
 * @throws StatusError for an unsupported method, an unknown version of a group with built-in kinds, or a discovery request whose Accept
 *   header has no supported media type
 */
export async function documentResponse(
  server: PublishedInfo,
  route: DocumentRoute,
  request: HttpRequest,
  query: URLSearchParams,
): Promise<HttpResponse> {
  const { documents } = server
  if (request.method !== 'GET' && supportsOnlyGET(route, documents)) throw methodNotAllowed()
  switch (route.kind) {
    case 'version':
      return jsonText(server.version)
    case 'metrics':
      return metricsResponse(route.of === 'health' ? await healthMetrics(server.checks) : server.requests.text())
    case 'statusz':
      return statusPage({ started: server.started, now: server.clock.now(), version: server.versionName })
    case 'flagz':
      return flagsPage(server.flags)
    case 'paths':
      return json(apiPaths(documents.groups))
    case 'core':
      return discoveryResponse(request, documents, 'core', () => apiVersions(documents.group(''), addressOf(request)))
    case 'groups':
      return discoveryResponse(request, documents, 'groups', () => apiGroupList(documents.groups))
    case 'group': {
      const group = documents.group(route.group)
      return group
        ? encodeDiscovery({ kind: 'APIGroup', apiVersion: 'v1', ...apiGroup(group) }, request, { routed: false })
        : notFoundText()
    }
    case 'resources': {
      const resources = documents.resourcesOf(route.group, route.version)
      if (resources) return encodeDiscovery(apiResourceList(route.group, route.version, resources), request, { routed: true })
      if (!hasBuiltin(documents.group(route.group))) return notFoundText()
      throw unknownResource()
    }
    case 'jwks':
      return openIDResponse(server.issuer?.jwks(), 'application/jwk-set+json')
    case 'openid-configuration':
      return openIDResponse(server.issuer?.configuration(`https://${addressOf(request)}`), 'application/json')
    case 'openapi':
      return {
        ...jsonText(JSON.stringify(await documents.openAPIIndex())),
        headers: { 'content-type': 'text/plain; charset=utf-8' },
      }
    case 'openapi-document': {
      const document = await documents.openAPI(route.path)
      if (!document) return notFoundText()
      const isCurrent = query.get('hash') === document.hash
      return withETag(request, document, {
        'content-type': 'application/json',
        vary: 'Accept',
        ...(isCurrent ? { 'cache-control': 'public, immutable' } : {}),
      })
    }
    case 'openapi-v2':
      return swaggerResponse(server, request)
  }
}

/**
 * Reports whether a route responds with 405 to methods other than GET. Upstream: the router checks the method for its own routes; other
 * documents are returned for every method.
 */
const supportsOnlyGET = (route: DocumentRoute, documents: Documents): boolean =>
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

async function swaggerResponse({ documents, version }: PublishedInfo, request: HttpRequest): Promise<HttpResponse> {
  const type = parseAccept(request.headers.accept).find((clause) => Object.hasOwn(swaggerTypes, clause.type))?.type as
    | keyof typeof swaggerTypes
    | undefined
  if (type === undefined) return { status: 406, headers: {}, body: '' }
  const encoding = swaggerTypes[type]
  const { major, minor } = JSON.parse(version) as { major: string; minor: string }
  return withETag(request, await documents.swagger(encoding, `${major}.${minor}`), {
    'content-type': encoding === 'json' ? 'application/json' : 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf',
    vary: 'Accept',
  })
}

/** Host and port as the client addresses the server. */
const addressOf = ({ headers }: HttpRequest): string => headers[':authority'] ?? headers.host ?? ''

function openIDResponse(document: object | undefined, type: string): HttpResponse {
  if (!document) return notFoundText()
  return { ...json(document), headers: { 'content-type': type, 'cache-control': 'public, max-age=3600' } }
}

function discoveryResponse(
  request: HttpRequest,
  documents: Documents,
  scope: 'core' | 'groups',
  unaggregated: () => object,
): HttpResponse {
  if (!acceptsAggregatedDiscovery(request.headers.accept))
    return encodeDiscovery(unaggregated(), request, { routed: scope === 'core' })
  const headers = {
    // Clients select their decoder by exactly this text.
    'content-type': 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList',
    'cache-control': 'public',
    vary: 'Accept',
  }
  return withETag(request, documents.aggregated(scope), headers)
}

function withETag(
  request: HttpRequest,
  { bytes, hash }: { bytes: Buffer; hash: string },
  headers: HttpResponse['headers'],
): HttpResponse {
  const etag = `"${hash}"`
  if (request.headers['if-none-match'] === etag) return { status: 304, headers: { ...headers, etag }, body: '' }
  return { status: 200, headers: { ...headers, etag }, body: bytes }
}
