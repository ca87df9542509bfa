import { ClusterRole, ConfigMap, Namespace, unknownKind } from '@capstan/kube'
import { aWidget, rejection, testServer, type TestServer, Widget } from '@capstan/kubernetes-kinds/test-server'
import { describe, expect, test } from 'vitest'

const admissionregistration = 'admissionregistration.k8s.io/v1'
const Policy = unknownKind({
  apiVersion: admissionregistration,
  kind: 'ValidatingAdmissionPolicy',
  plural: 'validatingadmissionpolicies',
  scope: 'Cluster',
})
const Binding = unknownKind({
  apiVersion: admissionregistration,
  kind: 'ValidatingAdmissionPolicyBinding',
  plural: 'validatingadmissionpolicybindings',
  scope: 'Cluster',
})

const widgetRule = { operations: ['CREATE'], apiGroups: ['shop.example.com'], apiVersions: ['v1'], resources: ['widgets'] }

/**
 * Creates a server with a policy: an object that `rule` matches must have at most as many replicas as `most` in each ConfigMap that `paramRef`
 * selects.
 */
async function serverWithPolicy(paramRef: object, rule = widgetRule): Promise<TestServer> {
  const server = await testServer()
  await server.client.create(Policy, {
    metadata: { name: 'limit' },
    spec: {
      paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
      matchConstraints: { resourceRules: [rule] },
      validations: [{ expression: 'object.spec.replicas <= int(params.data.most)' }],
    },
  } as never)
  await server.client.create(Binding, {
    metadata: { name: 'limit-widgets' },
    spec: {
      policyName: 'limit',
      validationActions: ['Deny'],
      paramRef: { parameterNotFoundAction: 'Deny', ...paramRef },
    },
  } as never)
  return server
}

const limit = (name: string, most: number, namespace = 'default', labels = {}) => ({
  metadata: { name, namespace, labels },
  data: { most: String(most) },
})
const denied =
  "422 Invalid: widgets.shop.example.com \"w\" is forbidden: ValidatingAdmissionPolicy 'limit' with binding 'limit-widgets' denied request: "
const tooMany = `${denied}failed expression: object.spec.replicas <= int(params.data.most)`

test('the params of a policy are read from the object that the paramRef of the binding names', async () => {
  const { client } = await serverWithPolicy({ name: 'limit' })
  await client.create(ConfigMap, limit('limit', 3))
  const create = (replicas: number) => rejection(client.create(Widget, aWidget('w', { replicas }), { dryRun: true }))
  expect([await create(3), await create(4)]).toEqual(['accepted', tooMany])
})

test('a paramRef to a ConfigMap without a namespace selects params in the namespace of the object', async () => {
  const { client } = await serverWithPolicy({ name: 'limit' })
  await client.create(Namespace, { metadata: { name: 'small' } })
  await client.create(ConfigMap, limit('limit', 3))
  await client.create(ConfigMap, limit('limit', 1, 'small'))
  const create = (namespace: string) => rejection(client.create(Widget, aWidget('w', { replicas: 2 }, { namespace })))
  expect([await create('default'), await create('small')]).toEqual(['accepted', tooMany])
})

test('a paramRef with a selector applies the policy with each selected object; with parameterNotFoundAction Deny, it denies the write if it selects none', async () => {
  const { client } = await serverWithPolicy({ selector: { matchLabels: { limits: 'widgets' } } })
  const create = (replicas: number) => rejection(client.create(Widget, aWidget('w', { replicas }), { dryRun: true }))
  expect(await create(1)).toBe(
    `${denied}failed to configure binding: no params found for policy binding with \`Deny\` parameterNotFoundAction`,
  )
  await client.create(ConfigMap, limit('low', 2, 'default', { limits: 'widgets' }))
  await client.create(ConfigMap, limit('high', 9, 'default', { limits: 'widgets' }))
  await client.create(ConfigMap, limit('other', 0))
  expect([await create(2), await create(3)]).toEqual(['accepted', tooMany])
})

// Upstream: CollectParams in k8s.io/apiserver, pkg/admission/plugin/policy/generic.
test('a paramRef to a ConfigMap without a namespace denies writes of cluster-scoped resources, also with parameterNotFoundAction Allow', async () => {
  const rule = { ...widgetRule, apiGroups: ['rbac.authorization.k8s.io'], resources: ['clusterroles'] }
  const { client } = await serverWithPolicy({ name: 'limit', parameterNotFoundAction: 'Allow' }, rule)
  expect(await rejection(client.create(ClusterRole, { metadata: { name: 'r' }, rules: [] }))).toContain(
    'failed to configure binding: cannot use namespaced paramRef in policy binding that matches cluster-scoped resources',
  )
})

test.each([
  ['Equivalent', 'another version of a resource', '422'],
  ['Exact', 'no other version of a resource', 'accepted'],
])('with matchPolicy %s, a rule matches %s', async (matchPolicy, _, expected) => {
  const { client } = await testServer()
  const rule = {
    operations: ['CREATE'],
    apiGroups: ['autoscaling'],
    apiVersions: ['v1'],
    resources: ['horizontalpodautoscalers'],
  }
  await client.create(Policy, {
    metadata: { name: 'none' },
    spec: { matchConstraints: { matchPolicy, resourceRules: [rule] }, validations: [{ expression: 'false' }] },
  } as never)
  await client.create(Binding, { metadata: { name: 'none' }, spec: { policyName: 'none', validationActions: ['Deny'] } } as never)
  const Autoscaler = unknownKind({
    apiVersion: 'autoscaling/v2',
    kind: 'HorizontalPodAutoscaler',
    plural: 'horizontalpodautoscalers',
    scope: 'Namespaced',
  })
  const spec = { maxReplicas: 3, scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd' } }
  const create = () => rejection(client.create(Autoscaler, { metadata: { name: 'a', namespace: 'default' }, spec } as never))
  expect((await create()).split(' ')[0]).toBe(expected)
})

describe('the limit of 5120 bytes (not characters) for texts of policies', () => {
  /** Returns a CEL string literal of `count` bytes, of which two are the quotes. */
  const literal = (count: number) => `'${'é'.repeat((count - 2) / 2)}'`
  const rule = { operations: ['CREATE'], apiGroups: ['shop.example.com'], apiVersions: ['v1'], resources: ['widgets'] }
  const policy = (spec: object) => ({ metadata: { name: 'p' }, spec: { matchConstraints: { resourceRules: [rule] }, ...spec } })

  test.each([
    [5122, `${'é'.repeat(2560)}`],
    [5124, 'failed expression: false'],
  ])('applies to the result of a messageExpression (a literal of %i bytes, two of them quotes)', async (count, message) => {
    const { client } = await testServer()
    const validations = [{ expression: 'false', messageExpression: literal(count) }]
    await client.create(Policy, policy({ validations }) as never)
    await client.create(Binding, { metadata: { name: 'b' }, spec: { policyName: 'p', validationActions: ['Deny'] } } as never)
    expect(await rejection(client.create(Widget, aWidget('w')))).toContain(`denied request: ${message}`)
  })

  test.each([
    [5120, 'accepted'],
    [5122, 'spec.auditAnnotations[0].valueExpression: Required value: must not exceed 5120 bytes in length'],
  ])('applies to the valueExpression of an audit annotation (%i bytes)', async (count, expected) => {
    const { client } = await testServer()
    const auditAnnotations = [{ key: 'k', valueExpression: literal(count) }]
    expect(await rejection(client.create(Policy, policy({ auditAnnotations }) as never))).toContain(expected)
  })
})
