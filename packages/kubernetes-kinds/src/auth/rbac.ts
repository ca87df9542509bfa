/** RBAC authorizer: finds the bindings in a store that apply to a user, and the rules that they grant. */
import {
  type ClusterRole,
  type ClusterRoleBinding,
  notFound,
  type PolicyRule,
  rbacGroup,
  type Role,
  type RoleBinding,
  type RoleRef,
  type Subject,
} from '@capstan/kube'
import { type User, type Store, type Attributes, type Authorizer, allows, appliesTo } from '@capstan/apiserver/kinds'

const storageName = (plural: string): string => `${plural}.${rbacGroup}`

/** A binding that applies to the user: its rules, or an error when its role does not exist. */
interface Grant {
  readonly rules: readonly PolicyRule[]
  readonly error?: string
  /** Returns a text such as `ClusterRoleBinding "x" of ClusterRole "y" to User "z"`. */
  describe(): string
}

export function rbacAuthorizer(store: Store): Pick<Authorizer, 'decide' | 'rulesFor'> {
  return {
    decide(attributes) {
      const errors: string[] = []
      for (const { rules, error, describe } of grants(store, attributes.user, namespaceOf(attributes))) {
        if (error !== undefined) errors.push(error)
        if (rules.some((rule) => allows(rule, attributes))) return { allowed: true, reason: `RBAC: allowed by ${describe()}` }
      }
      return { allowed: false, reason: errors.length === 0 ? '' : `RBAC: ${aggregated(errors)}` }
    },
    rulesFor(user, namespace) {
      const userGrants = [...grants(store, user, namespace)]
      return {
        rules: userGrants.flatMap(({ rules }) => rules),
        errors: userGrants.flatMap(({ error }) => (error === undefined ? [] : [error])),
      }
    },
  }
}

const namespaceOf = (attributes: Attributes): string => (attributes.kind === 'resource' ? (attributes.namespace ?? '') : '')

/** Yields the bindings that apply to a user. As upstream, ClusterRoleBindings come first. */
function* grants(store: Store, user: User, namespace: string): Generator<Grant> {
  for (const binding of store.list(storageName('clusterrolebindings')) as readonly ClusterRoleBinding[]) {
    const subject = binding.subjects?.find((candidate) => appliesTo(candidate, user, ''))
    if (!subject) continue
    yield {
      ...rulesOf(store, binding.roleRef, ''),
      describe: () => `ClusterRoleBinding ${describe(binding.metadata.name, binding.roleRef, subject, '')}`,
    }
  }
  if (namespace === '') return
  for (const binding of store.list(storageName('rolebindings'), namespace) as readonly RoleBinding[]) {
    const subject = binding.subjects?.find((candidate) => appliesTo(candidate, user, namespace))
    if (!subject) continue
    yield {
      ...rulesOf(store, binding.roleRef, namespace),
      describe: () => `RoleBinding ${describe(`${binding.metadata.name}/${namespace}`, binding.roleRef, subject, namespace)}`,
    }
  }
}

function rulesOf(store: Store, ref: RoleRef, namespace: string): Pick<Grant, 'rules' | 'error'> {
  const role = roleOf(store, ref, namespace)
  // Upstream reads roles from a cache, whose error names the resource in the singular.
  const missing = () => notFound({ group: rbacGroup, plural: ref.kind.toLowerCase() }, ref.name).message
  return role ? { rules: role.rules ?? [] } : { rules: [], error: missing() }
}

/**
 * Returns the Role or ClusterRole that a binding references; `undefined` if it does not exist. `namespace` is the namespace of a RoleBinding,
 * empty for a ClusterRoleBinding.
 */
export function roleOf(store: Store, ref: RoleRef, namespace: string): Role | ClusterRole | undefined {
  const isRole = ref.kind === 'Role'
  return store.get({
    resource: storageName(isRole ? 'roles' : 'clusterroles'),
    namespace: isRole ? namespace : '',
    name: ref.name,
  }) as Role | ClusterRole | undefined
}

function describe(binding: string, { kind, name }: RoleRef, subject: Subject, namespace: string): string {
  const subjectName = subject.kind === 'ServiceAccount' ? `${subject.name}/${subject.namespace || namespace}` : subject.name
  return `${JSON.stringify(binding)} of ${kind} ${JSON.stringify(name)} to ${subject.kind} ${JSON.stringify(subjectName)}`
}

/** Joins error texts like Go's aggregate error: without duplicates, and in brackets if there are several. */
export function aggregated(errors: readonly string[]): string {
  const texts = [...new Set(errors)]
  return texts.length === 1 ? texts[0]! : `[${texts.join(', ')}]`
}
