/**
 * Nobody gives what they do not have: whoever writes a role must hold its rights, and whoever writes a binding those of the role
 * it names, unless they may `escalate` or `bind` it.
 * Upstream: pkg/registry/rbac, policybased storage of each kind.
 */
import {
  type ClusterRole,
  type ClusterRoleBinding,
  equal,
  notFound,
  type PolicyRule,
  rbacGroup,
  type Role,
  type RoleBinding,
  type UnknownObject,
} from '@capstan/kube'
import { forbiddenTo, isSuperuser } from '../auth/authorizer.ts'
import { roleOf } from '../auth/rbac.ts'
import { missingRights, quotedList, rightsText } from '../auth/rules.ts'
import type { Call, Plane } from './plane.ts'

const everything: readonly PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
]

/** @throws StatusError Forbidden, or NotFound for a binding to a role that is not there */
export function requireRights(plane: Plane, call: Call, object: UnknownObject, old: UnknownObject | undefined): void {
  const { definition, caller } = call
  if (definition.group !== rbacGroup || isSuperuser(caller)) return
  if (old && onlyLetsGo(object, old)) return
  switch (definition.plural) {
    case 'roles':
    case 'clusterroles':
      return requireRightsOfRole(plane, call, object as unknown as Role | ClusterRole)
    case 'rolebindings':
    case 'clusterrolebindings':
      return requireRightsOfBinding(plane, call, object as unknown as RoleBinding | ClusterRoleBinding)
    default:
  }
}

/** What the garbage collector does takes no rights. */
function onlyLetsGo(object: UnknownObject, old: UnknownObject): boolean {
  const rest = ({ metadata, ...fields }: UnknownObject) => {
    const { ownerReferences: _, finalizers: _f, resourceVersion: _r, managedFields: _m, generation: _g, ...kept } = metadata
    return { ...fields, metadata: kept }
  }
  return equal(rest(object), rest(old))
}

function requireRightsOfRole(plane: Plane, call: Call, role: Role | ClusterRole): void {
  if (may(plane, call, 'escalate', call.definition.plural, role.metadata.name)) return
  const refuse = (why: string) => forbiddenTo(call.definition, role.metadata.name, why)
  const problem = escalation(plane, call, role.rules ?? [])
  if (problem !== undefined) throw refuse(problem)
  // What it will gather cannot be known.
  if ('aggregationRule' in role && role.aggregationRule && escalation(plane, call, everything) !== undefined)
    throw refuse('must have cluster-admin privileges to use the aggregationRule')
}

function requireRightsOfBinding(plane: Plane, call: Call, { metadata, roleRef }: RoleBinding | ClusterRoleBinding): void {
  const plural = roleRef.kind === 'Role' ? 'roles' : 'clusterroles'
  if (may(plane, call, 'bind', plural, roleRef.name)) return
  const role = roleOf(plane.store, roleRef, call.request.namespace ?? '')
  // Upstream: it is the binding that is said to be missing.
  if (!role) throw notFound(call.definition, roleRef.name)
  const problem = escalation(plane, call, role.rules ?? [])
  if (problem !== undefined) throw forbiddenTo(call.definition, metadata.name, problem)
}

const may = (
  { authorizer }: Plane,
  { caller: user, request: { namespace } }: Call,
  verb: string,
  resource: string,
  name: string,
) => authorizer.decide({ kind: 'resource', user, verb, group: rbacGroup, resource, namespace, name }).allowed

/** What is wrong with the caller giving these rights away. Upstream: ConfirmNoEscalation. */
function escalation({ authorizer }: Plane, { caller, request }: Call, wanted: readonly PolicyRule[]): string | undefined {
  const { rules, errors } = authorizer.rulesFor(caller, request.namespace ?? '')
  const missing = missingRights(rules, wanted)
  if (missing.length === 0) return undefined
  const who = `user ${JSON.stringify(caller.name)} (groups=${quotedList(caller.groups)})`
  const unresolved = errors.length === 0 ? '' : `; resolution errors: [${errors.join(' ')}]`
  return `${who} is attempting to grant RBAC permissions not currently held:\n${rightsText(missing)}${unresolved}`
}
