/**
 * Creates and completes the roles and bindings of `bootstrap-roles.ts` at start. Keeps rules and subjects that a user added, but replaces a
 * binding that refers to another role than the default binding. Does not change objects with the annotation
 * `rbac.authorization.kubernetes.io/autoupdate: "false"`. Upstream: pkg/registry/rbac/reconciliation.
 */
import {
  type Client,
  ClusterRole,
  ClusterRoleBinding,
  equal,
  isReason,
  type KubeObject,
  type Kind,
  orAbsent,
  Role,
  RoleBinding,
} from '@capstan/kube'
import { type BootstrapBinding, type BootstrapRole, bootstrapBindings, bootstrapRoles } from './bootstrap-roles.ts'
import { missingPermissions } from '@capstan/apiserver/kinds'

const autoupdate = 'rbac.authorization.kubernetes.io/autoupdate'
const metadataOf = ({ name, namespace, labels }: { name: string; namespace?: string; labels?: BootstrapRole['labels'] }) => ({
  name,
  ...(namespace === undefined ? {} : { namespace }),
  labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults', ...labels },
  annotations: { [autoupdate]: 'true' },
})

/** Creates and completes the default objects. Skips objects of a namespace that does not exist. */
export async function bootstrapRBAC(client: Client): Promise<void> {
  await Promise.all([
    ...bootstrapRoles.map((role) => retryConflicts(role, () => ensureRole(client, role))),
    ...bootstrapBindings.map((binding) => retryConflicts(binding, () => ensureBinding(client, binding))),
  ])
}

async function ensureRole(client: Client, role: BootstrapRole): Promise<void> {
  const kind = (role.namespace === undefined ? ClusterRole : Role) as Kind<ClusterRole>
  const expectedRole = {
    metadata: metadataOf(role),
    rules: [...(role.rules ?? [])],
    ...(role.aggregationRule === undefined ? {} : { aggregationRule: role.aggregationRule }),
  }
  const storedRole = await existing(client, kind, role)
  if (!storedRole) {
    await client.create(kind, expectedRole)
    return
  }
  if (hasAutoupdateDisabled(storedRole)) return
  const missing = missingPermissions(storedRole.rules ?? [], expectedRole.rules)
  const labels = { ...storedRole.metadata.labels, ...expectedRole.metadata.labels }
  if (missing.length === 0 && equal(storedRole.metadata.labels, labels)) return
  await client.update(kind, {
    ...storedRole,
    metadata: { ...storedRole.metadata, labels },
    rules: [...(storedRole.rules ?? []), ...missing],
  })
}

async function ensureBinding(client: Client, binding: BootstrapBinding): Promise<void> {
  const kind = (binding.namespace === undefined ? ClusterRoleBinding : RoleBinding) as Kind<ClusterRoleBinding>
  const { roleRef, subjects: expectedSubjects = [] } = binding
  const storedBinding = await existing(client, kind, binding)
  if (storedBinding && hasAutoupdateDisabled(storedBinding)) return
  if (storedBinding && equal(storedBinding.roleRef, roleRef)) {
    const { subjects = [] } = storedBinding
    const missing = expectedSubjects.filter((expected) => !subjects.some((storedSubject) => equal(storedSubject, expected)))
    if (missing.length > 0) await client.update(kind, { ...storedBinding, subjects: [...subjects, ...missing] })
    return
  }
  // The role of a binding is immutable, so the binding is deleted and created again.
  if (storedBinding) await client.delete(kind, storedBinding.metadata)
  await client.create(kind, { metadata: metadataOf(binding), roleRef, subjects: [...expectedSubjects] })
}

const existing = <T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  { name, namespace }: { name: string; namespace?: string },
) => orAbsent(client.get(kind, { name, ...(namespace === undefined ? {} : { namespace }) }))

const hasAutoupdateDisabled = ({ metadata }: KubeObject): boolean => metadata.annotations?.[autoupdate] === 'false'

/**
 * Repeats `ensure` after conflicts with concurrent writes, such as writes of the controller that aggregates rules. Ignores a missing namespace
 * of the object.
 */
async function retryConflicts({ namespace }: { namespace?: string }, ensure: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      return await ensure()
    } catch (err) {
      if (namespace !== undefined && isReason(err, 'NotFound')) return
      if (!isReason(err, 'Conflict', 'AlreadyExists')) throw err
    }
  }
}
