/** Requests for resources: from method, path, query and body to a request to the engine, and back. */
import { isConnection } from '../verbs/connect.ts'
import type { ApiRequest, Clock, RequestOptions, ResourcePath, Verb } from '@capstan/kube'
import { StatusError, verbOf } from '@capstan/kube'
import type { Caller, Engine, Resource } from '../engine.ts'
import { patchTypeOf, readDeleteOptions, readObject, readPatch } from './body.ts'
import { hasBuiltin } from './discovery.ts'
import type { Documents } from './documents.ts'
import { errorEventBytes } from './encode.ts'
import type { HttpAnswer, HttpRequest } from './exchange.ts'
import type { Representation } from './negotiate.ts'
import { representationOf, wantsPretty } from './negotiate.ts'
import { deleteOptionsOf, optionsOf } from './options.ts'
import { methodNotAllowed, unknownResource, verbNotSupported } from '../verbs/refusal.ts'
import { watchNotAcceptable } from './refusal.ts'
import { notFoundText, represented } from './represent.ts'
import type { YAMLReader } from './read-yaml.ts'
import { includeObjectOf } from './table.ts'
import { type Watched, watchBody } from './watch-body.ts'

interface Server {
  readonly engine: Engine
  readonly clock: Clock
  readonly documents: Documents
  readonly yaml: YAMLReader
  readonly watched: Watched
}

export async function resourceAnswer(
  server: Server,
  path: ResourcePath,
  request: HttpRequest,
  query: URLSearchParams,
  caller: Caller,
): Promise<HttpAnswer> {
  const { engine, documents } = server
  const resource = engine.resources.find(path.group, path.version, path.plural)
  if (!resource) {
    if (!hasBuiltin(documents.group(path.group))) return notFoundText()
    throw unknownResource()
  }
  const verb = verbAt(request.method, path, resource, query)
  const { headers } = request
  const representation = representationOf(headers.accept, {
    pretty: verb !== 'watch' && wantsPretty(query, headers['user-agent']),
    builtin: resource.builtin,
  })
  const { request: apiRequest, warnings } = await apiRequestOf(server, verb, path, resource, request, query)
  if (verb === 'watch') return watchAnswer(server, apiRequest, representation, request, query, caller)
  if (isConnection(path.subresource) && resource.builtin) {
    const container = query.get('container')
    await engine.execute({ ...apiRequest, body: container === null ? {} : { container } }, caller, request.signal)
    return { status: 204, headers: { 'cache-control': 'no-cache, private' }, body: '' }
  }
  try {
    const answer = await engine.execute(apiRequest, caller, request.signal)
    return represented(server.clock, resource, { ...answer, warnings: [...warnings, ...answer.warnings] }, representation, query)
  } catch (err) {
    if (err instanceof StatusError) err.warnings = [...warnings, ...err.warnings]
    throw err
  }
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
  if (resource.verbs?.includes(verb) === false) throw methodNotAllowed()
  if ((subresource === 'status' || subresource === 'scale') && !['get', 'update', 'patch'].includes(verb)) {
    throw resource.builtin ? methodNotAllowed() : verbNotSupported(verb, resource)
  }
  return verb
}

async function apiRequestOf(
  { yaml }: Server,
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
      if (isConnection(path.subresource)) return { request: make(options), warnings: [] }
      const { body, warnings } = await readObject(request, resource, options, yaml)
      return { request: make(options, { body }), warnings }
    }
    case 'patch': {
      const patchType = patchTypeOf(request, resource)
      const options = optionsOf(verb, query, { apply: patchType === 'application/apply-patch+yaml' })
      return { request: make(options, { body: await readPatch(request, patchType, yaml), patchType }), warnings: [] }
    }
    case 'delete':
    case 'deletecollection': {
      const { body, options } = deleteOptionsOf(await readDeleteOptions(request, yaml), query)
      return { request: make({ ...optionsOf(verb, query), ...options }, { body }), warnings: [] }
    }
  }
}

async function watchAnswer(
  { engine, clock, watched }: Server,
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
    return { status: 200, headers, body: watchBody(stream, representation, tableOptions, watched) }
  } catch (err) {
    // A start that is too old is news of a stream that was accepted, not a refusal.
    if (err instanceof StatusError && err.reason === 'Expired') return { status: 200, headers, body: errorEventBytes(err.status) }
    throw err
  }
}
