/** RBAC: rules in roles, and bindings of roles to users, groups and service accounts. */
import { appendAll } from '../lists.ts'
import { type FieldError, invalid, notSupported, required } from '../errors.ts'
import { equal } from '../json.ts'
import { defineKind, type ObjectOf } from '../kind.ts'
import { pathSegmentProblems, subdomainProblems } from '../names.ts'
import { type Infer, s } from '../schema.ts'
import { labelSelectorErrors } from '../selector.ts'
import { labelSelector } from './label-selector.ts'

export const rbacGroup = 'rbac.authorization.k8s.io'

const strings = () => s.list(s.string()).atomic()

const policyRule = s.object({
  verbs: strings().doc('Allowed verbs; `*` matches all.'),
  apiGroups: strings().optional().doc('API groups of the resources; the empty string is the core group, `*` matches all.'),
  resources: strings().optional().doc('Plural names of resources, subresources as `pods/log`; `*` matches all.'),
  resourceNames: strings().optional().doc('Names of the allowed objects; empty allows all.'),
  nonResourceURLs: strings()
    .optional()
    .doc('URL paths outside of the resource API; a trailing `*` matches any suffix. Only in ClusterRoles.'),
})
export type PolicyRule = Infer<typeof policyRule>

const subject = s.object({
  kind: s.string().doc('`User`, `Group` or `ServiceAccount`.'),
  apiGroup: s.string().optional(),
  name: s.string(),
  namespace: s.string().optional().doc('Namespace of a service account.'),
})
export type Subject = Infer<typeof subject>

const roleRef = s.object({
  // Optional, because the server sets the default, as upstream does.
  apiGroup: s.string().optional(),
  kind: s.string(),
  name: s.string(),
})
export type RoleRef = Infer<typeof roleRef>

const rules = () => s.list(policyRule).atomic().optional()
const subjects = () => s.list(subject).atomic().optional()

export const Role = defineKind({
  group: rbacGroup,
  version: 'v1',
  kind: 'Role',
  plural: 'roles',
  scope: 'Namespaced',
  doc: 'A set of permissions within a namespace.',
  fields: { rules: rules() },
  validate: (role) => (role.rules ?? []).flatMap((rule, index) => ruleErrors(rule, `rules[${index}]`, { namespaced: true })),
})
export type Role = ObjectOf<typeof Role>

export const ClusterRole = defineKind({
  group: rbacGroup,
  version: 'v1',
  kind: 'ClusterRole',
  plural: 'clusterroles',
  scope: 'Cluster',
  doc: 'A set of permissions for one namespace or the whole cluster.',
  fields: {
    rules: rules(),
    aggregationRule: s
      .object({ clusterRoleSelectors: s.list(labelSelector).atomic().optional() })
      .optional()
      .doc('Selects ClusterRoles by label; the server copies the rules of the selected ClusterRoles into this ClusterRole.'),
  },
  validate({ rules, aggregationRule }) {
    const errors = (rules ?? []).flatMap((rule, index) => ruleErrors(rule, `rules[${index}]`, { namespaced: false }))
    if (aggregationRule && (aggregationRule.clusterRoleSelectors ?? []).length === 0) {
      errors.push(
        required(
          'aggregationRule.clusterRoleSelectors',
          'at least one clusterRoleSelector required if aggregationRule is non-nil',
        ),
      )
    }
    aggregationRule?.clusterRoleSelectors?.forEach((selector, index) => {
      appendAll(errors, labelSelectorErrors(selector, `aggregationRule.clusterRoleSelectors[${index}]`))
    })
    return errors
  },
})
export type ClusterRole = ObjectOf<typeof ClusterRole>

export const RoleBinding = defineKind({
  group: rbacGroup,
  version: 'v1',
  kind: 'RoleBinding',
  plural: 'rolebindings',
  scope: 'Namespaced',
  doc: 'Grants a Role or ClusterRole to subjects within a namespace.',
  fields: { subjects: subjects(), roleRef },
  default: (binding) => defaultGroups(binding),
  validate: (binding, { oldObject }) => bindingErrors(binding, oldObject, ['Role', 'ClusterRole']),
})
export type RoleBinding = ObjectOf<typeof RoleBinding>

export const ClusterRoleBinding = defineKind({
  group: rbacGroup,
  version: 'v1',
  kind: 'ClusterRoleBinding',
  plural: 'clusterrolebindings',
  scope: 'Cluster',
  doc: 'Grants a ClusterRole to subjects in the whole cluster.',
  fields: { subjects: subjects(), roleRef },
  default: (binding) => defaultGroups(binding),
  validate: (binding, { oldObject }) => bindingErrors(binding, oldObject, ['ClusterRole']),
})
export type ClusterRoleBinding = ObjectOf<typeof ClusterRoleBinding>

interface Binding {
  readonly subjects?: Subject[]
  readonly roleRef: RoleRef
}

/** Upstream: pkg/apis/rbac/v1, SetDefaults_RoleBinding and SetDefaults_Subject. */
function defaultGroups({ roleRef: ref, subjects: boundSubjects = [] }: Binding): void {
  ref.apiGroup ||= rbacGroup
  for (const boundSubject of boundSubjects)
    if (boundSubject.kind === 'User' || boundSubject.kind === 'Group') boundSubject.apiGroup ||= rbacGroup
}

/** Upstream: pkg/apis/rbac/validation, ValidatePolicyRule. */
function ruleErrors(rule: Partial<PolicyRule>, field: string, { namespaced }: { namespaced: boolean }): FieldError[] {
  const { verbs = [], apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule
  const errors: FieldError[] = []
  if (verbs.length === 0) errors.push(required(`${field}.verbs`, 'verbs must contain at least one value'))
  if (nonResourceURLs.length > 0) {
    const reject = (problem: string) => errors.push(invalid(`${field}.nonResourceURLs`, nonResourceURLs, problem))
    if (namespaced) reject('namespaced rules cannot apply to non-resource URLs')
    if (apiGroups.length > 0 || resources.length > 0 || resourceNames.length > 0)
      reject('rules cannot apply to both regular resources and non-resource URLs')
    return errors
  }
  if (apiGroups.length === 0) errors.push(required(`${field}.apiGroups`, 'resource rules must supply at least one api group'))
  if (resources.length === 0) errors.push(required(`${field}.resources`, 'resource rules must supply at least one resource'))
  return errors
}

/** Upstream: pkg/apis/rbac/validation, ValidateRoleBinding and ValidateRoleBindingUpdate. */
function bindingErrors(
  { roleRef: ref, subjects: boundSubjects = [] }: Binding,
  old: Binding | undefined,
  kinds: readonly string[],
): FieldError[] {
  const errors: FieldError[] = []
  if (ref.apiGroup !== rbacGroup) errors.push(notSupported('roleRef.apiGroup', ref.apiGroup, [rbacGroup]))
  if (!kinds.includes(ref.kind)) errors.push(notSupported('roleRef.kind', ref.kind, kinds))
  if (ref.name === '') errors.push(required('roleRef.name'))
  else
    appendAll(
      errors,
      pathSegmentProblems(ref.name).map((problem) => invalid('roleRef.name', ref.name, problem)),
    )
  const isNamespaced = kinds.includes('Role')
  boundSubjects.forEach((boundSubject, index) =>
    appendAll(errors, subjectErrors(boundSubject, `subjects[${index}]`, isNamespaced)),
  )
  if (old && !equal(old.roleRef, ref)) {
    // Upstream prints the fields of its internal type.
    const printed = { APIGroup: ref.apiGroup, Kind: ref.kind, Name: ref.name }
    errors.push(invalid('roleRef', printed, 'cannot change roleRef'))
  }
  return errors
}

function subjectErrors({ kind, name, namespace, apiGroup = '' }: Subject, field: string, isNamespaced: boolean): FieldError[] {
  const errors: FieldError[] = []
  if (name === '') errors.push(required(`${field}.name`))
  switch (kind) {
    case 'ServiceAccount':
      if (name !== '')
        appendAll(
          errors,
          subdomainProblems(name).map((problem) => invalid(`${field}.name`, name, problem)),
        )
      if (apiGroup !== '') errors.push(notSupported(`${field}.apiGroup`, apiGroup, ['']))
      if (!isNamespaced && !namespace) errors.push(required(`${field}.namespace`))
      break
    case 'User':
    case 'Group':
      if (apiGroup !== rbacGroup) errors.push(notSupported(`${field}.apiGroup`, apiGroup, [rbacGroup]))
      break
    default:
      errors.push(notSupported(`${field}.kind`, kind, ['ServiceAccount', 'User', 'Group']))
  }
  return errors
}
