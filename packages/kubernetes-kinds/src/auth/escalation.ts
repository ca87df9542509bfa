/**
 * Escalation check: to write a role, a user must have its permissions or the verb `escalate` on it. To write a binding, a user must have the
 * permissions of its role or the verb `bind` on that role. Upstream: pkg/registry/rbac, policybased storage of each kind.
 */
import {
  type ClusterRole,
  type ClusterRoleBinding,
  equal,
  type KubeObject,
  notFound,
  type PolicyRule,
  rbacGroup,
  type Role,
  type RoleBinding,
  type UnknownObject,
} from '@capstan/kube'
import {
  forbiddenTo,
  isSuperuser,
  missingPermissions,
  quotedList,
  permissionsText,
  type WriteContext,
} from '@capstan/apiserver/kinds'
import { roleOf } from './rbac.ts'

const allPermissions: readonly PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
]

type RoleKind = 'roles' | 'clusterroles'
type BindingKind = 'rolebindings' | 'clusterrolebindings'
type Write = Pick<WriteContext, 'caller' | 'namespace' | 'server'>

/** Requires that the user has the permissions that the written role grants, or the verb `escalate`. @throws StatusError Forbidden */
export const authorizeRole =
  (plural: RoleKind) =>
  (role: Role | ClusterRole, old: Role | ClusterRole | undefined, write: Write): void => {
    if (isExempt(role, old, write)) return
    requireRolePermissions(plural, role, write)
  }

/**
 * Requires that the user has the permissions that the written binding grants, or the verb `bind` on its role.
 * @throws StatusError Forbidden, or NotFound for a binding to a role that does not exist
 */
export const authorizeBinding =
  (plural: BindingKind) =>
  (binding: RoleBinding | ClusterRoleBinding, old: RoleBinding | ClusterRoleBinding | undefined, write: Write): void => {
    if (isExempt(binding, old, write)) return
    requireBindingPermissions(plural, binding, write)
  }

function isExempt(object: KubeObject, old: KubeObject | undefined, { caller }: Write): boolean {
  return isSuperuser(caller) || (old !== undefined && changesOnlyOwnership(object as UnknownObject, old as UnknownObject))
}

/**
 * Reports whether an update changes only owner references, finalizers or fields that the server sets, as updates by the garbage collector
 * do. Such an update grants no permissions.
 */
function changesOnlyOwnership(object: UnknownObject, old: UnknownObject): boolean {
  const otherFields = ({ metadata, ...fields }: UnknownObject) => {
    const {
      ownerReferences: _,
      finalizers: _f,
      resourceVersion: _r,
      managedFields: _m,
      generation: _g,
      ...otherMetadata
    } = metadata
    return { ...fields, metadata: otherMetadata }
  }
  return equal(otherFields(object), otherFields(old))
}

function requireRolePermissions(plural: RoleKind, role: Role | ClusterRole, write: Write): void {
  if (isAllowed(write, 'escalate', plural, role.metadata.name)) return
  const deny = (reason: string) => forbiddenTo({ group: rbacGroup, plural }, role.metadata.name, reason)
  const problem = escalation(write, role.rules ?? [])
  if (problem !== undefined) throw deny(problem)
  // Any rules may be aggregated into this role later, so all permissions are required.
  if ('aggregationRule' in role && role.aggregationRule && escalation(write, allPermissions) !== undefined)
    throw deny('must have cluster-admin privileges to use the aggregationRule')
}

function requireBindingPermissions(
  plural: BindingKind,
  { metadata, roleRef }: RoleBinding | ClusterRoleBinding,
  write: Write,
): void {
  const binding = { group: rbacGroup, plural }
  if (isAllowed(write, 'bind', roleRef.kind === 'Role' ? 'roles' : 'clusterroles', roleRef.name)) return
  const role = roleOf(write.server.store, roleRef, write.namespace ?? '')
  // Upstream's error has the resource of the binding and the name of the role.
  if (!role) throw notFound(binding, roleRef.name)
  const problem = escalation(write, role.rules ?? [])
  if (problem !== undefined) throw forbiddenTo(binding, metadata.name, problem)
}

const isAllowed = ({ server, caller: user, namespace }: Write, verb: string, resource: string, name: string) =>
  server.authorizer.decide({ kind: 'resource', user, verb, group: rbacGroup, resource, namespace, name }).allowed

/** Returns the error text if the user does not have all of these permissions. Upstream: ConfirmNoEscalation. */
function escalation({ server, caller, namespace }: Write, requested: readonly PolicyRule[]): string | undefined {
  const { rules, errors } = server.authorizer.rulesFor(caller, namespace ?? '')
  const missing = missingPermissions(rules, requested)
  if (missing.length === 0) return undefined
  const userText = `user ${JSON.stringify(caller.name)} (groups=${quotedList(caller.groups)})`
  const unresolved = errors.length === 0 ? '' : `; resolution errors: [${errors.join(' ')}]`
  return `${userText} is attempting to grant RBAC permissions not currently held:\n${permissionsText(missing)}${unresolved}`
}
