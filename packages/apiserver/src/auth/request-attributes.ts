/** What a request is about to do, read from its first line or from what in-process callers hand over. */
import { type ApiRequest, parseFieldSelector, type ResourcePath, verbOf } from '@capstan/kube'
import type { User } from '../engine.ts'
import type { ResourceAttributes } from './authorizer.ts'

/** Upstream: k8s.io/apiserver/pkg/endpoints/request, RequestInfo. */
export function attributesOfPath(user: User, method: string, path: ResourcePath, query: URLSearchParams): ResourceAttributes {
  // The method that is not allowed at a path is still somebody's wish: whoever may not have it is told that first.
  const verb = path.watch ? 'watch' : (verbOf(method === 'HEAD' ? 'GET' : method, path, query) ?? methodVerbs[method] ?? '')
  return attributes(user, { ...path, verb }, query.get('fieldSelector') ?? undefined)
}

const methodVerbs: { readonly [method: string]: string } = { POST: 'create', PUT: 'update', PATCH: 'patch' }

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
  const wanted = name ?? nameSelected(fieldSelector)
  return {
    kind: 'resource',
    user,
    verb,
    group,
    resource: plural,
    // What comes behind `proxy` is for whoever is talked to.
    subresource: subresource?.split('/', 1)[0],
    // A Namespace is inside of itself.
    namespace: group === '' && plural === 'namespaces' && name !== undefined ? name : namespace || undefined,
    name: wanted,
  }
}

/** A list or a watch of one object is a request for that object. */
function nameSelected(fieldSelector: string | undefined): string | undefined {
  if (fieldSelector === undefined || fieldSelector === '') return undefined
  try {
    return parseFieldSelector(fieldSelector).find(({ field, equals }) => field === 'metadata.name' && equals)?.value
  } catch {
    // Refused later, by whoever reads it.
    return undefined
  }
}
