/** Attributes of a request for authorization, from its method and path or from an in-process call. */
import { type ApiRequest, parseFieldSelector, pathSegmentProblems, type ResourcePath, verbOf } from '@capstan/kube'
import type { User } from './user.ts'
import type { ResourceAttributes } from './authorizer.ts'

/** Returns the attributes of an HTTP request for a resource. Upstream: k8s.io/apiserver/pkg/endpoints/request, RequestInfo. */
export function attributesOfPath(user: User, method: string, path: ResourcePath, query: URLSearchParams): ResourceAttributes {
  // An unsupported method is authorized before it is rejected: 403 comes before 405.
  const verb = path.watch ? 'watch' : (verbOf(method === 'HEAD' ? 'GET' : method, path, query) ?? methodVerbs[method] ?? '')
  // Upstream does not read the selector of a path with the deprecated prefix `watch`.
  return attributes(user, { ...path, verb }, path.watch ? undefined : (query.get('fieldSelector') ?? undefined))
}

const methodVerbs: { readonly [method: string]: string } = { POST: 'create', PUT: 'update', PATCH: 'patch' }

/** Returns the attributes of an `ApiRequest`, the form of a request that verbs and in-process clients use. */
export const attributesOf = (user: User, request: ApiRequest): ResourceAttributes =>
  attributes(user, request, request.options?.fieldSelector)

function attributes(
  user: User,
  {
    verb,
    group,
    plural,
    subresource,
    namespace,
    name,
  }: Pick<ApiRequest, 'group' | 'plural' | 'subresource' | 'namespace' | 'name'> & { verb: string },
  fieldSelector: string | undefined,
): ResourceAttributes {
  return {
    kind: 'resource',
    user,
    verb,
    group,
    resource: plural,
    // In `proxy/PATH`, the path belongs to the proxied request.
    subresource: subresource?.split('/', 1)[0],
    // Upstream: a request for a Namespace object is authorized in the namespace of that name.
    namespace: group === '' && plural === 'namespaces' && name !== undefined ? name : namespace || undefined,
    name: name ?? (readsMany.has(verb) ? nameSelected(fieldSelector) : undefined),
  }
}

/**
 * Verbs of reads that a field selector may limit to one object. For other verbs, the selector must not narrow the authorization: a create,
 * for example, ignores the selector.
 */
const readsMany: ReadonlySet<string> = new Set(['list', 'watch'])

/** Returns the name that a field selector selects: a list or a watch of one object is authorized for that object. */
function nameSelected(fieldSelector: string | undefined): string | undefined {
  if (fieldSelector === undefined || fieldSelector === '') return undefined
  try {
    const name = parseFieldSelector(fieldSelector).find(({ field, equals }) => field === 'metadata.name' && equals)?.value
    return name !== undefined && pathSegmentProblems(name).length === 0 ? name : undefined
  } catch {
    // The list or watch itself rejects the selector later.
    return undefined
  }
}
