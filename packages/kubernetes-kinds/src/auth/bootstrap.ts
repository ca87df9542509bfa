/**
 * Creates and completes the roles and bindings of `bootstrap-roles.ts` at start. Keeps rules, subjects, labels and annotations
 * that a user added, and selectors that a user added to a default aggregation rule. Removes an aggregation rule from a role
 * that has none by default. Replaces a binding that refers to another role than the default binding; what a user added to it is lost.
 * Does not change objects with the annotation `rbac.authorization.kubernetes.io/autoupdate: "false"`.
 * Upstream: k8s.io/component-helpers/auth/rbac/reconciliation.
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
  const { aggregationRule: stored, ...others } = storedRole
  const rules = storedRole.rules ?? []
  const missing = missingPermissions(rules, expectedRole.rules)
  const aggregationRule = completedAggregation(stored, role.aggregationRule)
  const completed = {
    ...others,
    metadata: completedMetadata(storedRole, expectedRole),
    ...(missing.length === 0 ? {} : { rules: [...rules, ...missing] }),
    ...(aggregationRule === undefined ? {} : { aggregationRule }),
  }
  if (!equal(completed, storedRole)) await client.update(kind, completed)
}

type Aggregation = ClusterRole['aggregationRule']

/** Adds the missing selectors of `expected` to the stored aggregation rule. Without `expected`, removes the rule, as upstream. */
function completedAggregation(stored: Aggregation, expected: Aggregation): Aggregation {
  if (!expected) return undefined
  const selectors = stored?.clusterRoleSelectors ?? []
  const missing = (expected.clusterRoleSelectors ?? []).filter((selector) => !selectors.some((known) => equal(known, selector)))
  return missing.length === 0 ? stored : { ...stored, clusterRoleSelectors: [...selectors, ...missing] }
}

/** Adds missing labels and annotations of `expected` to the metadata of a stored object. */
const completedMetadata = ({ metadata }: KubeObject, expected: { metadata: ReturnType<typeof metadataOf> }) => ({
  ...metadata,
  labels: { ...expected.metadata.labels, ...metadata.labels },
  annotations: { ...expected.metadata.annotations, ...metadata.annotations },
})

async function ensureBinding(client: Client, binding: BootstrapBinding): Promise<void> {
  const kind = (binding.namespace === undefined ? ClusterRoleBinding : RoleBinding) as Kind<ClusterRoleBinding>
  const { roleRef, subjects: expectedSubjects = [] } = binding
  const expectedBinding = { metadata: metadataOf(binding), roleRef, subjects: [...expectedSubjects] }
  const storedBinding = await existing(client, kind, binding)
  if (storedBinding && hasAutoupdateDisabled(storedBinding)) return
  if (storedBinding && equal(storedBinding.roleRef, roleRef)) {
    const { subjects = [] } = storedBinding
    const missing = expectedSubjects.filter((expected) => !subjects.some((storedSubject) => equal(storedSubject, expected)))
    const completed = {
      ...storedBinding,
      metadata: completedMetadata(storedBinding, expectedBinding),
      subjects: [...subjects, ...missing],
    }
    if (!equal(completed, { ...storedBinding, subjects })) await client.update(kind, completed)
    return
  }
  // The role of a binding is immutable, so the binding is deleted and created again.
  if (storedBinding) await client.delete(kind, storedBinding.metadata)
  await client.create(kind, expectedBinding)
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
