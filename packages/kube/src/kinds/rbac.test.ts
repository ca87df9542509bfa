import { expect, test } from 'vitest'
import { ClusterRole, ClusterRoleBinding, type PolicyRule, Role, RoleBinding } from './rbac.ts'

const context = { operation: 'CREATE' as const, oldObject: undefined, dryRun: false }
const object = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: '', metadata: { name: 'x' } as ClusterRole['metadata'] }
const texts = (errors: readonly { field: string; text: string }[]) => errors.map(({ field, text }) => `${field}: ${text}`)

test.each<[string, PolicyRule, string[]]>([
  ['a rule for resources', { verbs: ['get'], apiGroups: [''], resources: ['pods'] }, []],
  [
    'a rule without verbs',
    { verbs: [], apiGroups: [''], resources: ['pods'] },
    ['rules[0].verbs: Required value: verbs must contain at least one value'],
  ],
  [
    'a rule without groups',
    { verbs: ['get'], resources: ['pods'] },
    ['rules[0].apiGroups: Required value: resource rules must supply at least one api group'],
  ],
  [
    'a rule without resources',
    { verbs: ['get'], apiGroups: [''] },
    ['rules[0].resources: Required value: resource rules must supply at least one resource'],
  ],
  [
    'a rule for non-resource URLs',
    { verbs: ['get'], nonResourceURLs: ['/x'] },
    ['rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs'],
  ],
])('Role.validate returns the expected errors for %s', (_, rule, errors) => {
  expect(texts(Role.validate!({ ...object, rules: [rule] }, context))).toEqual(errors)
})

test.each<[string, Pick<ClusterRole, 'rules' | 'aggregationRule'>, string[]]>([
  ['a rule for non-resource URLs', { rules: [{ verbs: ['get'], nonResourceURLs: ['/x'] }] }, []],
  [
    'a rule for non-resource URLs and resources',
    { rules: [{ verbs: ['get'], nonResourceURLs: ['/x'], resources: ['pods'] }] },
    ['rules[0].nonResourceURLs: Invalid value: ["/x"]: rules cannot apply to both regular resources and non-resource URLs'],
  ],
  [
    'an empty aggregationRule',
    { aggregationRule: {} },
    [
      'aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil',
    ],
  ],
])('ClusterRole.validate returns the expected errors for %s', (_, role, errors) => {
  expect(texts(ClusterRole.validate!({ ...object, ...role }, context))).toEqual(errors)
})

const group = 'rbac.authorization.k8s.io'
const invalidSubject = [
  'subjects[0].name: Required value',
  'subjects[0].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"',
]
const view = { apiGroup: group, kind: 'ClusterRole', name: 'view' }

test.each<[string, Omit<RoleBinding, keyof typeof object>, string[], string[]]>([
  ['a subject of kind User', { roleRef: view, subjects: [{ kind: 'User', apiGroup: group, name: 'a' }] }, [], []],
  [
    'a subject of kind ServiceAccount without a namespace',
    { roleRef: view, subjects: [{ kind: 'ServiceAccount', name: 'a' }] },
    [],
    ['subjects[0].namespace: Required value'],
  ],
  ['a subject of an unknown kind', { roleRef: view, subjects: [{ kind: 'Robot', name: '' }] }, invalidSubject, invalidSubject],
  [
    'a roleRef to a Role',
    { roleRef: { ...view, kind: 'Role' } },
    [],
    ['roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"'],
  ],
])(
  'RoleBinding.validate and ClusterRoleBinding.validate return the expected errors for %s',
  (_, binding, namespaced, cluster) => {
    expect(texts(RoleBinding.validate!({ ...object, ...binding }, context))).toEqual(namespaced)
    expect(texts(ClusterRoleBinding.validate!({ ...object, ...binding }, context))).toEqual(cluster)
  },
)

test('the apiGroup of a roleRef and of a subject of kind Group is defaulted, and a roleRef is immutable', () => {
  const binding = { ...object, roleRef: { kind: 'ClusterRole', name: 'view' }, subjects: [{ kind: 'Group', name: 'devs' }] }
  RoleBinding.default!(binding, context)
  expect(binding).toMatchObject({ roleRef: { apiGroup: group }, subjects: [{ apiGroup: group }] })
  const changed = { ...binding, roleRef: { ...view, name: 'edit' } }
  const update = { operation: 'UPDATE' as const, oldObject: binding, dryRun: false }
  expect(texts(RoleBinding.validate!(changed, update))).toEqual([
    'roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"ClusterRole","Name":"edit"}: cannot change roleRef',
  ])
})
