/**
 * The API server as a function from request to answer. Each request goes down one list: route, authentication, form of the
 * answer, options, body, verb of the engine, encoding.
 */
import type { ApiRequest, Clock, Logger, RequestOptions, ResourcePath, Status, Verb } from '@capstan/kube'
import { StatusError, silent, verbOf } from '@capstan/kube'
import type { Answer, Caller, Engine, Resource } from '../engine.ts'
import { deleteOptionsOf, optionsOf } from './options.ts'
import { patchTypeOf, readDeleteOptions, readObject, readPatch } from './body.ts'
import { apiGroup, apiGroupList, apiPaths, apiResourceList, apiVersions, hasDeleteCollection } from './discovery.ts'
import { Documents } from './documents.ts'
import { errorEventBytes, listBytes, objectBytes } from './encode.ts'
import type { HttpAnswer, HttpHandler, HttpRequest, Identity } from './exchange.ts'
import type { HealthCheck } from './health.ts'
import { healthAnswer } from './health.ts'
import type { Representation } from './negotiate.ts'
import { acceptsAggregatedDiscovery, parseAccept, representationOf, wantsPretty } from './negotiate.ts'
import { partialMetadata, partialMetadataList } from './partial-metadata.ts'
import { methodNotAllowed, unauthorized, unknownResource, verbNotSupported, watchNotAcceptable } from './refusal.ts'
import { isPublic, routeOf } from './route.ts'
import { includeObjectOf, tableOf } from './table.ts'
import { versionInfo } from './version.ts'
import { errorOf, watchBody } from './watch-body.ts'
import { formatYAML } from './yaml.ts'

export interface HandlerOptions {
  readonly engine: Engine
  readonly clock: Clock
  /** The Kubernetes version that the server says it is. */
  readonly version?: string
  readonly checks?: readonly HealthCheck[]
  readonly log?: Logger
}

export const defaultVersion = 'v1.36.2'

export function createHandler(options: HandlerOptions): HttpHandler {
  const { engine, log = silent } = options
  const server: Server = {
    ...options,
    engine,
    documents: new Documents(engine.resources),
    version: JSON.stringify(versionInfo(options.version ?? defaultVersion)),
    checks: options.checks ?? [],
  }
  return async (request, identity) => {
    try {
      return await answerTo(server, request, identity)
    } catch (err) {
      if (!(err instanceof StatusError)) log.error('Request failed', { method: request.method, path: pathOf(request), err })
      return errorAnswer(errorOf(err), request)
    }
  }
}

interface Server {
  readonly engine: Engine
  readonly clock: Clock
  readonly documents: Documents
  readonly version: string
  readonly checks: readonly HealthCheck[]
}

async function answerTo(server: Server, request: HttpRequest, identity: Identity): Promise<HttpAnswer> {
  const mark = request.url.indexOf('?')
  const path = mark < 0 ? request.url : request.url.slice(0, mark)
  const query = new URLSearchParams(mark < 0 ? '' : request.url.slice(mark + 1))
  const route = routeOf(path)
  // Whoever shows credentials that are wrong is told so everywhere.
  if (identity.kind === 'refused' || (identity.kind === 'anonymous' && !isPublic(route))) throw unauthorized()

  const { documents } = server
  if (route.kind === 'health') return healthAnswer(route.check, server.checks, query)
  if (route.kind === 'resource') return resourceAnswer(server, route.path, request, query, callerOf(identity, request))
  if (route.kind === 'none') return notFoundText()
  if (request.method !== 'GET') throw methodNotAllowed()
  switch (route.kind) {
    case 'version':
      return jsonText(server.version)
    case 'paths':
      return json(apiPaths(documents.groups))
    case 'core':
      return discoveryAnswer(request, documents, 'core', () =>
        apiVersions(documents.group(''), request.headers[':authority'] ?? request.headers.host ?? ''),
      )
    case 'groups':
      return discoveryAnswer(request, documents, 'groups', () => apiGroupList(documents.groups))
    case 'group': {
      const group = documents.group(route.group)
      return group ? json({ kind: 'APIGroup', apiVersion: 'v1', ...apiGroup(group) }) : notFoundText()
    }
    case 'resources': {
      const resources = documents.version(route.group, route.version)
      return resources ? json(apiResourceList(route.group, route.version, resources)) : notFoundText()
    }
    case 'openapi':
      return { ...jsonText(JSON.stringify(documents.openAPIIndex())), headers: { 'content-type': 'text/plain; charset=utf-8' } }
    case 'openapi-document': {
      const document = documents.openAPI(route.path)
      if (!document) return notFoundText()
      const isCurrent = query.get('hash') === document.hash
      return tagged(request, document, {
        'content-type': 'application/json',
        ...(isCurrent ? { 'cache-control': 'public, immutable' } : {}),
      })
    }
    case 'openapi-v2':
      // Only offered by upstream as protobuf to clients that then do without.
      return {
        status: 406,
        headers: { 'content-type': 'text/plain; charset=utf-8' },
        body: '406 not acceptable: OpenAPI v2 is not served, see /openapi/v3',
      }
  }
}

async function resourceAnswer(
  server: Server,
  path: ResourcePath,
  request: HttpRequest,
  query: URLSearchParams,
  caller: Caller,
): Promise<HttpAnswer> {
  const { engine, documents } = server
  const resource = engine.resources.find(path.group, path.version, path.plural)
  if (!resource) {
    // Upstream's router does not know groups and versions of custom resources that are not served.
    if (
      !documents.group(path.group)?.versions.some(({ version, resources }) => version === path.version || resources[0]?.builtin)
    )
      return notFoundText()
    throw unknownResource()
  }
  const verb = verbAt(request.method, path, resource, query)
  const { headers } = request
  const representation = representationOf(headers.accept, {
    pretty: verb !== 'watch' && wantsPretty(query, headers['user-agent']),
    builtin: resource.builtin,
  })
  const { request: apiRequest, warnings } = await apiRequestOf(verb, path, resource, request, query)
  if (verb === 'watch') return watchAnswer(server, apiRequest, representation, request, query, caller)
  const answer = await engine.execute(apiRequest, caller, request.signal)
  return encoded(server, resource, { ...answer, warnings: [...warnings, ...answer.warnings] }, representation, query)
}

/** @throws StatusError when the method cannot be used at the path, or the path cannot be */
function verbAt(method: string, path: ResourcePath, resource: Resource, query: URLSearchParams): Verb {
  const { name, namespace, subresource } = path
  if (resource.namespaced ? namespace === undefined && name !== undefined && !path.watch : namespace !== undefined)
    throw unknownResource()
  const verb = verbOf(method, path, query)
  if (verb === undefined) throw methodNotAllowed()
  const isEverywhere = resource.namespaced && namespace === undefined
  if (isEverywhere && verb !== 'list' && verb !== 'watch') throw methodNotAllowed()
  if (verb === 'deletecollection' && !hasDeleteCollection(resource)) throw methodNotAllowed()
  if ((subresource === 'status' || subresource === 'scale') && !['get', 'update', 'patch'].includes(verb)) {
    throw resource.builtin ? methodNotAllowed() : verbNotSupported(verb, resource)
  }
  return verb
}

async function apiRequestOf(
  verb: Verb,
  path: ResourcePath,
  resource: Resource,
  request: HttpRequest,
  query: URLSearchParams,
): Promise<{ request: ApiRequest; warnings: readonly string[] }> {
  const { watch: _, name, ...target } = path
  // The old watch path of a single object is a watch of the collection.
  const named = name === undefined ? {} : verb === 'watch' ? {} : { name }
  const make = (options: RequestOptions, more: Partial<ApiRequest> = {}): ApiRequest => ({
    verb,
    ...target,
    ...named,
    options,
    ...more,
  })
  switch (verb) {
    case 'get':
    case 'list':
      return { request: make(optionsOf(verb, query)), warnings: [] }
    case 'watch': {
      const options = optionsOf(verb, query)
      if (name !== undefined) options.fieldSelector = `metadata.name=${name}`
      return { request: make(options), warnings: [] }
    }
    case 'create':
    case 'update': {
      const options = optionsOf(verb, query)
      const { body, warnings } = await readObject(request, resource, options)
      return { request: make(options, { body }), warnings }
    }
    case 'patch': {
      const patchType = patchTypeOf(request, resource)
      const options = optionsOf(verb, query, { apply: patchType === 'application/apply-patch+yaml' })
      return { request: make(options, { body: await readPatch(request, patchType), patchType }), warnings: [] }
    }
    case 'delete':
    case 'deletecollection': {
      const { body, options } = deleteOptionsOf(await readDeleteOptions(request), query)
      return { request: make({ ...optionsOf(verb, query), ...options }, { body }), warnings: [] }
    }
  }
}

async function watchAnswer(
  { engine, clock }: Server,
  apiRequest: ApiRequest,
  representation: Representation,
  request: HttpRequest,
  query: URLSearchParams,
  caller: Caller,
): Promise<HttpAnswer> {
  if (representation.format !== 'json') throw watchNotAcceptable()
  const includeObject = includeObjectOf(query)
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-cache, private' }
  try {
    const stream = await engine.watch(apiRequest, caller, request.streamSignal)
    const tableOptions = () => ({ includeObject, version: representation.version, now: clock.now() })
    return { status: 200, headers, body: watchBody(stream, representation, tableOptions) }
  } catch (err) {
    // A start that is too old is news of a stream that was accepted, not a refusal.
    if (err instanceof StatusError && err.reason === 'Expired') return { status: 200, headers, body: errorEventBytes(err.status) }
    throw err
  }
}

function encoded(
  { clock }: Server,
  resource: Resource,
  { code, body, warnings }: Answer,
  representation: Representation,
  query: URLSearchParams,
): HttpAnswer {
  const headers = {
    'cache-control': 'no-cache, private',
    ...(warnings.length === 0 ? {} : { warning: warnings.map((text) => `299 - ${JSON.stringify(text)}`) }),
  }
  if (isStatus(body)) return send(code, body, representation, headers)
  switch (representation.as) {
    case 'Table':
      return send(
        code,
        tableOf(resource, body, { includeObject: includeObjectOf(query), version: representation.version, now: clock.now() }),
        representation,
        headers,
      )
    case 'PartialObjectMetadataList':
      if (!('items' in body)) {
        const type = `*${resource.builtin ? 'core' : 'unstructured'}.${resource.builtin ? resource.kind : 'Unstructured'}`
        throw new StatusError(
          'NotAcceptable',
          `you requested PartialObjectMetadataList, but the requested object is not a list (${type})`,
        )
      }
      return send(code, partialMetadataList(body, representation.version), representation, headers)
    case 'PartialObjectMetadata':
      return send(
        code,
        'items' in body ? partialMetadataList(body, representation.version) : partialMetadata(body, representation.version),
        representation,
        headers,
      )
    case undefined:
  }
  if (!('items' in body)) return send(code, body, representation, headers)
  // Upstream: the items of built-in lists have no type of their own.
  const typedItems = !resource.builtin
  if (representation.format === 'json' && !representation.pretty) {
    return { status: code, headers: { ...headers, 'content-type': 'application/json' }, body: listBytes(body, { typedItems }) }
  }
  return send(code, JSON.parse(listBytes(body, { typedItems }).toString()) as object, representation, headers)
}

function send(
  status: number,
  value: object,
  { format, pretty }: Pick<Representation, 'format' | 'pretty'>,
  headers: HttpAnswer['headers'] = {},
): HttpAnswer {
  if (format === 'yaml') return { status, headers: { ...headers, 'content-type': 'application/yaml' }, body: formatYAML(value) }
  const body = pretty ? `${JSON.stringify(value, null, 2)}\n` : objectBytes(value)
  return { status, headers: { ...headers, 'content-type': 'application/json' }, body }
}

function errorAnswer(error: StatusError, request: HttpRequest): HttpAnswer {
  const format = parseAccept(request.headers.accept)[0]?.type === 'application/yaml' ? 'yaml' : 'json'
  const seconds = error.details?.retryAfterSeconds
  return send(
    error.code,
    error.status,
    { format, pretty: false },
    seconds === undefined ? {} : { 'retry-after': String(seconds) },
  )
}

const isStatus = (body: Answer['body']): body is Status => body.kind === 'Status' && body.apiVersion === 'v1' && 'status' in body

function discoveryAnswer(request: HttpRequest, documents: Documents, of: 'core' | 'groups', plain: () => object): HttpAnswer {
  if (!acceptsAggregatedDiscovery(request.headers.accept)) return json(plain())
  const headers = {
    // Clients read the decoder to use from exactly this text.
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

const json = (value: object): HttpAnswer => jsonText(JSON.stringify(value))
const jsonText = (text: string): HttpAnswer => ({ status: 200, headers: { 'content-type': 'application/json' }, body: text })
const notFoundText = (): HttpAnswer => ({
  status: 404,
  headers: { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' },
  body: '404 page not found\n',
})

const pathOf = ({ url }: HttpRequest): string => url.split('?', 1)[0]!

/**
 * Who the engine sees. Whoever is known may act as somebody else, since everybody who is known may do everything.
 *
 * @throws StatusError when groups are impersonated without a user
 */
function callerOf(identity: Identity, { headers }: HttpRequest): Caller {
  const agent = (headers['user-agent'] ?? 'unknown').split('/', 1)[0]!
  const name = headers['impersonate-user']
  const groups = headers['impersonate-group']
  if (name !== undefined) return { name, groups: [...(groups?.split(/,\s*/) ?? []), 'system:authenticated'], agent }
  if (groups !== undefined) {
    throw new StatusError('BadRequest', 'requested groups without impersonating a user name')
  }
  return identity.kind === 'user'
    ? { name: identity.name, groups: identity.groups, agent }
    : { name: 'system:anonymous', groups: ['system:unauthenticated'], agent }
}
