/**
 * RBAC rules, without I/O: which actions a rule allows, to which users a binding applies, and which permissions are missing. Upstream:
 * pkg/registry/rbac/validation and plugin/pkg/auth/authorizer/rbac, v1.36.
 */
import { appendAll, type PolicyRule, StatusError, type Subject } from '@capstan/kube'
import type { User } from './user.ts'
import type { Attributes } from './authorizer.ts'

/** Rules that apply to a user in a namespace. */
export interface Rules {
  readonly rules: readonly PolicyRule[]
  /** Errors of bindings whose role does not exist. If there are any, `rules` is incomplete. */
  readonly errors: readonly string[]
}

/** `Attributes` without the user. */
type Action = Attributes extends infer A ? (A extends unknown ? Omit<A, 'user'> : never) : never

export function allows(rule: PolicyRule, action: Action): boolean {
  if (!hasOrAll(rule.verbs, action.verb)) return false
  if (action.kind === 'path') return (rule.nonResourceURLs ?? []).some((pattern) => pathMatches(pattern, action.path))
  const { group, resource, subresource, name } = action
  return (
    hasOrAll(rule.apiGroups, group) &&
    resourceMatches(rule.resources ?? [], resource, subresource) &&
    (isEmpty(rule.resourceNames) || rule.resourceNames!.includes(name ?? ''))
  )
}

const isEmpty = (list: readonly string[] | undefined): boolean => (list ?? []).length === 0
const hasOrAll = (list: readonly string[] | undefined, value: string): boolean =>
  list !== undefined && (list.includes('*') || list.includes(value))

function resourceMatches(allowed: readonly string[], resource: string, subresource: string | undefined): boolean {
  if (allowed.includes('*')) return true
  if (!subresource) return allowed.includes(resource)
  return allowed.includes(`${resource}/${subresource}`) || allowed.includes(`*/${subresource}`)
}

function pathMatches(pattern: string, path: string): boolean {
  if (pattern === path) return true
  let end = pattern.length
  while (pattern[end - 1] === '*') end--
  return end < pattern.length && path.startsWith(pattern.slice(0, end))
}

/**
 * Reports whether a subject of a binding applies to a user. `namespace` is the namespace of the binding, empty for a ClusterRoleBinding. It
 * is the default for service accounts without a namespace.
 */
export function appliesTo(
  { kind, name, namespace: subjectNamespace }: Subject,
  { name: user, groups }: User,
  namespace: string,
): boolean {
  switch (kind) {
    case 'User':
      return name === user
    case 'Group':
      return groups.includes(name)
    case 'ServiceAccount': {
      const accountNamespace = subjectNamespace || namespace
      return accountNamespace !== '' && user === serviceAccountUser(accountNamespace, name)
    }
    default:
      return false
  }
}

export const serviceAccountUser = (namespace: string, name: string): string => `system:serviceaccount:${namespace}:${name}`

export const serviceAccountGroups = (namespace: string): string[] => [
  'system:serviceaccounts',
  `system:serviceaccounts:${namespace}`,
]

/** Maximum number of permissions to compare. A rule has a permission for each combination of the items of its lists, possibly millions. */
const MaxPermissions = 100_000

/**
 * Returns the permissions in `wanted` that the rules in `held` do not grant, each as a rule with one permission.
 *
 * @throws StatusError Forbidden for more than 100,000 permissions, unless a rule in `held` grants every verb on every resource and `wanted`
 * has no paths
 */
export function missingPermissions(held: readonly PolicyRule[], wanted: readonly PolicyRule[]): PolicyRule[] {
  if (held.some(grantsEverything) && wanted.every(({ nonResourceURLs }) => isEmpty(nonResourceURLs))) return []
  const count = wanted.reduce((sum, rule) => sum + permissionsIn(rule), 0)
  if (count > MaxPermissions)
    throw new StatusError(
      'Forbidden',
      `the rules contain ${count} permissions: at most ${MaxPermissions} can be granted by a user`,
    )
  return wanted.flatMap(splitRule).filter((permission) => !held.some((rule) => covers(rule, permission)))
}

const grantsEverything = ({ verbs, apiGroups, resources, resourceNames }: PolicyRule): boolean =>
  isEmpty(resourceNames) && [verbs, apiGroups, resources].every((list) => list?.includes('*'))

const permissionsIn = ({ verbs, apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] }: PolicyRule): number =>
  verbs.length * (apiGroups.length * resources.length * (resourceNames.length || 1) + nonResourceURLs.length)

/** Splits a rule into rules with one verb on one path, or on one resource of one API group, with at most one object name. */
function splitRule({
  verbs,
  apiGroups = [],
  resources = [],
  resourceNames = [],
  nonResourceURLs = [],
}: PolicyRule): PolicyRule[] {
  const permissions: PolicyRule[] = []
  for (const apiGroup of apiGroups) {
    for (const resource of resources) {
      for (const verb of verbs) {
        const permission = { apiGroups: [apiGroup], resources: [resource], verbs: [verb] }
        if (resourceNames.length === 0) permissions.push(permission)
        else for (const name of resourceNames) permissions.push({ ...permission, resourceNames: [name] })
      }
    }
  }
  for (const url of nonResourceURLs) for (const verb of verbs) permissions.push({ nonResourceURLs: [url], verbs: [verb] })
  return permissions
}

function covers(rule: PolicyRule, permission: PolicyRule): boolean {
  if (!hasOrAll(rule.verbs, permission.verbs[0]!)) return false
  const url = permission.nonResourceURLs?.[0]
  if (url !== undefined) return (rule.nonResourceURLs ?? []).some((pattern) => pathMatches(pattern, url))
  const [resource = '', subresource] = permission.resources![0]!.split('/')
  return (
    hasOrAll(rule.apiGroups, permission.apiGroups![0]!) &&
    resourceMatches(rule.resources ?? [], resource, subresource) &&
    (isEmpty(rule.resourceNames) ||
      (!isEmpty(permission.resourceNames) && rule.resourceNames!.includes(permission.resourceNames![0]!)))
  )
}

/**
 * Formats permissions for an error message. Permissions on a resource that differ only in the verb share one line; every other permission
 * has its own. Upstream: CompactRules and CompactString.
 */
export function permissionsText(permissions: readonly PolicyRule[]): string {
  const byTarget = new Map<string, PolicyRule & { verbs: string[] }>()
  for (const permission of permissions) {
    const { verbs, ...target } = permission
    const key = permission.nonResourceURLs ? JSON.stringify(permission) : JSON.stringify(target)
    const sameTarget = byTarget.get(key)
    if (sameTarget) appendAll(sameTarget.verbs, verbs)
    else byTarget.set(key, { ...permission, verbs: [...verbs] })
  }
  return [...byTarget.values()].map(ruleText).sort().join('\n')
}

const ruleParts = [
  ['APIGroups', 'apiGroups'],
  ['Resources', 'resources'],
  ['NonResourceURLs', 'nonResourceURLs'],
  ['ResourceNames', 'resourceNames'],
  ['Verbs', 'verbs'],
] as const

const ruleText = (rule: PolicyRule): string =>
  `{${ruleParts
    .filter(([, member]) => !isEmpty(rule[member]))
    .map(([name, member]) => `${name}:${quotedList(rule[member]!)}`)
    .join(', ')}}`

/** Formats a list of strings as Go's `%q` does, if all characters of the strings are printable. */
export const quotedList = (texts: readonly string[]): string => `[${texts.map((text) => JSON.stringify(text)).join(' ')}]`
