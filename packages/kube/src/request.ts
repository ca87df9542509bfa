/** Builds the HTTP method and URL of an `ApiRequest`, and parses method and path of a request. No I/O. */
import type { ApiRequest, RequestOptions, Verb } from './client.ts'
import { apiVersionOf } from './object.ts'

const methods: { readonly [verb in Verb]: string } = {
  get: 'GET',
  list: 'GET',
  watch: 'GET',
  create: 'POST',
  update: 'PUT',
  patch: 'PATCH',
  delete: 'DELETE',
  deletecollection: 'DELETE',
}

export const methodOf = (verb: Verb): string => methods[verb]

/** Returns the path and query of a request, such as `/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines/m1?fieldManager=x`. */
export function urlOf(request: ApiRequest): string {
  const { group, version, namespace, plural, name, subresource, options = {} } = request
  if (version === '') return '/'
  const segments = [group === '' ? '/api' : '/apis', apiVersionOf(request)]
  if (namespace !== undefined && namespace !== '') segments.push('namespaces', encodeURIComponent(namespace))
  if (plural !== '') segments.push(plural)
  if (name !== undefined) segments.push(encodeURIComponent(name))
  if (subresource !== undefined) segments.push(subresource)
  const query = queryOf(options)
  if (request.verb === 'watch') query.set('watch', 'true')
  const text = query.toString()
  return segments.join('/') + (text === '' ? '' : `?${text}`)
}

function queryOf({ dryRun, ...options }: RequestOptions): URLSearchParams {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(options)) if (value !== undefined && value !== '') query.set(name, String(value))
  if (dryRun) query.set('dryRun', 'All')
  return query
}

/** The resource that a path names. `verbOf` returns the verb for a method. */
export interface ResourcePath {
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly namespace?: string
  readonly name?: string
  readonly subresource?: string
  /** Present if the path contains the deprecated segment `/watch/`: a GET is then a watch, independent of the query. */
  readonly watch?: true
}

/**
 * Parses a path below `/api/VERSION` or `/apis/GROUP/VERSION`. Returns `undefined` for other paths, for discovery documents, and if there is
 * an invalid escape, or an empty segment other than the namespace, after the version. A slash at the end is ignored. All segments after the
 * name are the subresource.
 * Upstream: k8s.io/apiserver/pkg/endpoints/request, RequestInfoFactory.
 */
export function parseResourcePath(path: string): ResourcePath | undefined {
  const parts = path.slice(1).split('/')
  if (parts.at(-1) === '') parts.pop()
  const root = parts.shift()
  if (root !== 'api' && root !== 'apis') return undefined
  const group = root === 'api' ? '' : parts.shift()
  const version = parts.shift()
  if (group === undefined || version === undefined) return undefined
  const watch = parts[0] === 'watch' && parts.length > 1
  if (watch) parts.shift()

  let decoded: string[]
  try {
    decoded = parts.map(decodeURIComponent)
  } catch {
    return undefined
  }
  // An empty segment is allowed only for the namespace: `namespaces//pods`.
  if (
    decoded.length === 0 ||
    decoded.some((part, index) => part === '' && !(index === 1 && decoded[0] === 'namespaces' && decoded.length > 2))
  )
    return undefined
  const head = { group, version, ...(watch ? { watch: true as const } : {}) }

  // In the core group, `namespaces/x`, `namespaces/x/status` and `namespaces/x/finalize` name the Namespace itself. All other paths below
  // `namespaces/x` name resources in the namespace.
  const [first, namespace, third] = decoded
  const isInNamespace =
    first === 'namespaces' && third !== undefined && !(group === '' && namespaceSubresources.has(third) && decoded.length === 3)
  const [plural, name, ...subresourceSegments] = isInNamespace ? decoded.slice(2) : decoded
  if (plural === undefined) return undefined
  return {
    ...head,
    plural,
    ...(isInNamespace && namespace !== undefined ? { namespace } : {}),
    ...(name === undefined ? {} : { name }),
    ...(subresourceSegments.length === 0 ? {} : { subresource: subresourceSegments.join('/') }),
  }
}

const namespaceSubresources: ReadonlySet<string> = new Set(['status', 'finalize'])

/** Returns the verb of a method at a path; `undefined` when the method is not allowed. */
export function verbOf(method: string, path: ResourcePath, query: URLSearchParams): Verb | undefined {
  const isCollection = path.name === undefined
  switch (method) {
    case 'GET':
      if (path.watch || (isCollection && isWatchRequested(query))) return 'watch'
      return isCollection ? 'list' : 'get'
    case 'POST':
      return isCollection || path.subresource !== undefined ? 'create' : undefined
    case 'PUT':
      return isCollection ? undefined : 'update'
    case 'PATCH':
      return isCollection ? undefined : 'patch'
    case 'DELETE':
      return isCollection ? 'deletecollection' : 'delete'
    default:
      return undefined
  }
}

/** Upstream: every value except false and 0 counts as true. */
function isWatchRequested(query: URLSearchParams): boolean {
  const value = query.get('watch')
  return value !== null && value.toLowerCase() !== 'false' && value !== '0'
}
