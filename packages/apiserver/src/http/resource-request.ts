/** Handles resource requests: builds the engine's request from method, path, query and body, and the HTTP response from the result. */
import type { ApiRequest, Clock, RequestOptions, ResourcePath, Verb } from '@capstan/kube'
import { badRequest, pauseIfDue, StatusError, verbOf } from '@capstan/kube'
import type { Caller } from '../auth/user.ts'
import type { Engine } from '../verbs/engine.ts'
import type { Resource } from '../registry/resource.ts'
import { readDeleteOptions, readObject } from './body/body.ts'
import { patchTypeOf, readPatch } from './body/patch.ts'
import { hasBuiltin } from './discovery/discovery.ts'
import type { Documents } from './discovery/documents.ts'
import { errorEventBytes } from './encode.ts'
import type { HttpResponse, HttpRequest } from './exchange.ts'
import type { Representation } from './negotiate.ts'
import { representationOf, wantsPretty } from './negotiate.ts'
import { deleteOptionsOf } from './delete-options.ts'
import { optionsOf } from './options.ts'
import { methodNotAllowed, unknownResource, verbNotSupported } from '../verbs/errors.ts'
import { watchNotAcceptable } from './errors.ts'
import { notFoundText, encodeResponse } from './encode-response.ts'
import { warningHeaders } from './warning-headers.ts'
import type { YAMLReader } from './body/read-yaml.ts'
import { includeObjectOf } from './table/table.ts'
import { type WatchState, watchBody } from './watch/watch-body.ts'

interface Server {
  readonly engine: Engine
  readonly clock: Clock
  readonly documents: Documents
  readonly yaml: YAMLReader
  readonly watchState: WatchState
}

/** Path of a request and the resource in this path. The resource is `undefined` if it is not served. */
export interface RequestTarget {
  readonly path: ResourcePath
  readonly resource: Resource | undefined
}

export async function resourceResponse(
  server: Server,
  { path: requestedPath, resource }: RequestTarget,
  request: HttpRequest,
  query: URLSearchParams,
  caller: Caller,
): Promise<HttpResponse> {
  const { engine, documents } = server
  if (!resource) {
    if (!hasBuiltin(documents.group(requestedPath.group))) return notFoundText()
    throw unknownResource()
  }
  // Upstream: custom resources have no routes of their own; a path that does not fit the scope of the resource is not found (404).
  if (!resource.builtin && isMisplaced(request.method, requestedPath, resource)) return notFoundText()
  const path = withoutEmptyNamespace(request.method, requestedPath, resource)
  const verb = verbAt(request.method, path, resource, query)
  const { headers } = request
  const representation = representationOf(headers.accept, {
    pretty: verb !== 'watch' && wantsPretty(query, headers['user-agent']),
    builtin: resource.builtin,
    collection: path.name === undefined,
    tables: hasTables(resource, path.subresource),
  })
  const apiRequest = await apiRequestOf(server, verb, path, resource, request, query)
  // Decoding a long body may have blocked the event loop.
  const pause = pauseIfDue(server.clock)
  if (pause) await pause
  const ended = request.ended ?? (() => request.signal)
  if (verb === 'watch') return watchResponse(server, resource, apiRequest, representation, request, query, caller)
  if (engine.resources.isConnection(path.subresource) && resource.builtin) {
    const container = query.get('container')
    await engine.execute({ ...apiRequest, body: container === null ? {} : { container } }, caller, ended)
    return { status: 204, headers: {}, body: '' }
  }
  const result = await engine.execute(apiRequest, caller, ended)
  // Encoding a long object may block the event loop again, so waiting work runs first.
  const encodePause = pauseIfDue(server.clock)
  if (encodePause) await encodePause
  return encodeResponse(server.clock, resource, result, representation, query)
}

/** Reports whether objects can be requested as a Table. Upstream: kinds that implement rest.TableConvertor. */
const hasTables = ({ verbs }: Resource, subresource: string | undefined): boolean =>
  subresource === undefined
    ? !(verbs?.length === 1 && verbs[0] === 'create')
    : subresource === 'status' || subresource === 'scale'

/**
 * Reports whether the path has a namespace although the resource is cluster-scoped, or lacks a namespace that the request needs. Exception:
 * `verbAt` rejects a DELETE of the objects in all namespaces.
 */
const isMisplaced = (method: string, { namespace, name, watch }: ResourcePath, { namespaced }: Resource): boolean =>
  namespaced
    ? namespace === undefined && !watch && (name !== undefined || !['GET', 'HEAD', 'DELETE'].includes(method))
    : namespace !== undefined

/**
 * Removes an empty namespace from a path: `GET namespaces//pods` lists or watches the pods of all namespaces, as upstream.
 *
 * @throws StatusError BadRequest for another method, and if the path has a name
 */
function withoutEmptyNamespace(method: string, path: ResourcePath, { namespaced }: Resource): ResourcePath {
  if (path.namespace !== '' || !namespaced) return path
  if (path.name !== undefined || method !== 'GET') throw badRequest('Namespace parameter required.')
  const { namespace: _, ...pathInAllNamespaces } = path
  return pathInAllNamespaces
}

/** Returns the verb of a request. @throws StatusError when the path is invalid, or does not support the method */
function verbAt(method: string, path: ResourcePath, resource: Resource, query: URLSearchParams): Verb {
  const { name, namespace, subresource } = path
  if (resource.namespaced ? namespace === undefined && name !== undefined && !path.watch : namespace !== undefined)
    throw unknownResource()
  // Kinds that only support create have no stored objects.
  if (name !== undefined && subresource === undefined && resource.verbs?.length === 1 && resource.verbs[0] === 'create')
    throw unknownResource()
  const verb = verbOf(method, path, query)
  if (verb === undefined) throw methodNotAllowed()
  const isInAllNamespaces = resource.namespaced && namespace === undefined
  if (isInAllNamespaces && verb !== 'list' && verb !== 'watch') throw methodNotAllowed()
  if (resource.verbs?.includes(verb) === false) throw methodNotAllowed()
  if ((subresource === 'status' || subresource === 'scale') && !['get', 'update', 'patch'].includes(verb)) {
    throw resource.builtin ? methodNotAllowed() : verbNotSupported(verb, resource)
  }
  const problem = verb === 'get' || verb === 'patch' || verb === 'delete' ? segmentProblem(name) : undefined
  if (problem !== undefined) throw badRequest(`Name parameter invalid: ${JSON.stringify(name)}: ${problem}`)
  return verb
}

/** Returns why a name is not valid in a path; `undefined` for a valid name. Upstream: IsValidPathSegmentName of k8s.io/apimachinery. */
function segmentProblem(name: string | undefined): string | undefined {
  if (name === '.' || name === '..') return `may not be '${name}'`
  return name?.includes('%') ? "may not contain '%'" : undefined
}

async function apiRequestOf(
  { engine, yaml, clock }: Server,
  verb: Verb,
  path: ResourcePath,
  resource: Resource,
  request: HttpRequest,
  query: URLSearchParams,
): Promise<ApiRequest> {
  const { watch: _, name, ...target } = path
  const readers = { yaml: yaml.for(request), protobufMessages: engine.resources.protobufMessages, clock }
  // The deprecated watch path of a single object is a watch of the collection with a field selector.
  const nameOfRequest = name === undefined || verb === 'watch' ? {} : { name }
  const make = (options: RequestOptions, body: Partial<ApiRequest> = {}): ApiRequest => ({
    verb,
    ...target,
    ...nameOfRequest,
    options,
    ...body,
  })
  switch (verb) {
    case 'get':
    case 'list':
      return make(optionsOf(verb, query))
    case 'watch': {
      const options = optionsOf(verb, query)
      if (name !== undefined) options.fieldSelector = `metadata.name=${name}`
      return make(options)
    }
    case 'create':
    case 'update': {
      const options = optionsOf(verb, query)
      if (engine.resources.isConnection(path.subresource)) return make(options)
      // The body of a scale subresource is a Scale, for every resource.
      const bodyResource = path.subresource === 'scale' && resource.scale ? engine.resources.scale : resource
      return make(options, await readObject(request, bodyResource, options, readers))
    }
    case 'patch': {
      const patchType = patchTypeOf(request, resource)
      const options = optionsOf(verb, query, { apply: patchType === 'application/apply-patch+yaml' })
      return make(options, { ...(await readPatch(request, patchType, options, readers)), patchType })
    }
    case 'delete':
    case 'deletecollection': {
      const { body, options } = deleteOptionsOf(await readDeleteOptions(request, readers), query)
      return make({ ...optionsOf(verb, query), ...options }, { body })
    }
  }
}

async function watchResponse(
  { engine, clock, watchState }: Server,
  { deprecation }: Resource,
  apiRequest: ApiRequest,
  representation: Representation,
  request: HttpRequest,
  query: URLSearchParams,
  caller: Caller,
): Promise<HttpResponse> {
  if (representation.format !== 'json') throw watchNotAcceptable()
  const includeObject = includeObjectOf(query)
  const headers = {
    'content-type': 'application/json',
    ...(deprecation === undefined ? {} : { warning: warningHeaders([deprecation]) }),
  }
  try {
    const stream = await engine.watch(apiRequest, caller, request.streamSignal)
    const tableOptions = () => ({ includeObject, version: representation.version, now: clock.now() })
    return { status: 200, headers, body: watchBody(stream, representation, tableOptions, watchState) }
  } catch (err) {
    // A watch from an expired resourceVersion gets status 200 and an ERROR event, as upstream.
    if (err instanceof StatusError && err.reason === 'Expired') return { status: 200, headers, body: errorEventBytes(err.status) }
    throw err
  }
}
