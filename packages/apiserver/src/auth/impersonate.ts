/**
 * Impersonation. Each part of the requested identity is authorized: user, groups, uid, extras. Upstream:
 * k8s.io/apiserver/pkg/endpoints/filters/impersonation.
 */
import { StatusError } from '@capstan/kube'
import type { Caller } from './user.ts'
import { authorize, type Authorizer, type ResourceAttributes } from './authorizer.ts'

export const anonymous = 'system:anonymous'
const authenticated = 'system:authenticated'
const unauthenticated = 'system:unauthenticated'

/** Headers of a request; `valuesOf` returns all values of a repeated header. */
interface SentHeaders {
  readonly headers: { readonly [name: string]: string | undefined }
  readonly valuesOf?: (name: string) => readonly string[]
}

interface RequestedIdentity {
  readonly name: string
  readonly groups: readonly string[]
  readonly uid: string | undefined
  readonly extra: { readonly [key: string]: readonly string[] }
}

/**
 * Returns the caller after impersonation: `caller` itself when the headers request no impersonation.
 * @throws StatusError Forbidden, or BadRequest when the headers request impersonation without a user name
 */
export function impersonate(authorizer: Authorizer, caller: Caller, headers: SentHeaders): Caller {
  const requested = requestedIdentity(headers)
  if (!requested) return caller
  const check = (resource: string, attributes: Partial<ResourceAttributes>) =>
    authorize(authorizer, { kind: 'resource', user: caller, verb: 'impersonate', group: '', resource, ...attributes })
  const account = serviceAccountOf(requested.name)
  if (account) check('serviceaccounts', account)
  else check('users', { name: requested.name })
  for (const name of requested.groups) check('groups', { name })
  for (const [key, values] of Object.entries(requested.extra)) {
    for (const name of values) check('userextras', { group: 'authentication.k8s.io', subresource: key, name })
  }
  if (requested.uid !== undefined) check('uids', { group: 'authentication.k8s.io', name: requested.uid })
  return {
    name: requested.name,
    groups: groupsOf(requested, account?.namespace),
    agent: caller.agent,
    ...(requested.uid === undefined ? {} : { uid: requested.uid }),
    ...(Object.keys(requested.extra).length === 0 ? {} : { extra: requested.extra }),
  }
}

function requestedIdentity({ headers, valuesOf }: SentHeaders): RequestedIdentity | undefined {
  const values = (header: string): readonly string[] => valuesOf?.(header) ?? [headers[header] ?? '']
  const name = headers['impersonate-user'] ?? ''
  const uid = headers['impersonate-uid']
  const extra: { [key: string]: readonly string[] } = {}
  for (const header of Object.keys(headers)) {
    if (!header.startsWith('impersonate-extra-') || headers[header] === undefined) continue
    extra[decodeKey(header.slice('impersonate-extra-'.length))] = values(header)
  }
  const groups = headers['impersonate-group'] === undefined ? [] : values('impersonate-group').filter(Boolean)
  if (name !== '') return { name, groups, uid, extra }
  if (groups.length === 0 && uid === undefined && Object.keys(extra).length === 0) return undefined
  throw new StatusError('BadRequest', `requested ${goStructText({ name, groups, uid, extra })} without impersonating a user name`)
}

/** Formats the requested identity as Go prints a struct. */
function goStructText({ groups, uid, extra }: RequestedIdentity): string {
  const list = (texts: readonly string[]) => `{${texts.map((text) => JSON.stringify(text)).join(', ')}}`
  const slice = groups.length === 0 ? '[]string(nil)' : `[]string${list(groups)}`
  const entries = Object.entries(extra).map(([key, values]) => `${JSON.stringify(key)}:[]string${list(values)}`)
  const map = entries.length === 0 ? 'map[string][]string(nil)' : `map[string][]string{${entries.sort().join(', ')}}`
  return `&user.DefaultInfo{Name:"", UID:${JSON.stringify(uid ?? '')}, Groups:${slice}, Extra:${map}}`
}

/** Decodes the key of an extra. Keys are percent-encoded, because a header name cannot contain every character of a key. */
function decodeKey(key: string): string {
  try {
    return decodeURIComponent(key)
  } catch {
    return key
  }
}

function serviceAccountOf(user: string): { namespace: string; name: string } | undefined {
  const [, namespace, name] = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(user) ?? []
  return namespace === undefined || name === undefined ? undefined : { namespace, name }
}

/**
 * Returns the requested groups or, for a service account without requested groups, the groups that its tokens have. For the anonymous user,
 * adds `system:unauthenticated`. For any other user, adds `system:authenticated`, unless the request names one of these two groups.
 */
function groupsOf({ name, groups }: RequestedIdentity, namespace: string | undefined): readonly string[] {
  const impersonatedGroups =
    groups.length === 0 && namespace !== undefined ? ['system:serviceaccounts', `system:serviceaccounts:${namespace}`] : groups
  if (name === anonymous)
    return impersonatedGroups.includes(unauthenticated) ? impersonatedGroups : [...impersonatedGroups, unauthenticated]
  return impersonatedGroups.includes(authenticated) || impersonatedGroups.includes(unauthenticated)
    ? impersonatedGroups
    : [...impersonatedGroups, authenticated]
}
