/** Authorization over HTTP: RBAC, impersonation and access reviews, with the errors and headers of a real server. */
import {
  type Client,
  ClusterRole,
  ClusterRoleBinding,
  ConfigMap,
  createClient,
  Role,
  RoleBinding,
  seededRandom,
  VirtualClock,
} from '@capstan/kube'
import { afterEach, expect, test } from 'vitest'
import { type ApiServerOptions, createApiServer } from '@capstan/kubernetes-kinds'
import { quiet } from '@capstan/kubernetes-kinds/test-server'
import type { Identity } from '../auth/authenticate.ts'
import { createHandler } from './handler.ts'
import { webHandler } from './web.ts'

const closeServers: (() => Promise<void>)[] = []
afterEach(async () => {
  await Promise.all(closeServers.splice(0).map((close) => close()))
})

const user = (name: string, ...groups: string[]): Identity => ({
  kind: 'user',
  name,
  groups: [...groups, 'system:authenticated'],
})
const identities: { readonly [name: string]: Identity } = {
  root: user('root', 'system:masters'),
  bob: user('bob', 'devs'),
  anonymous: { kind: 'anonymous' },
  wrong: { kind: 'rejected' },
}

async function start(options: Partial<ApiServerOptions> = {}) {
  const clock = new VirtualClock()
  const server = createApiServer({ clock, random: seededRandom(1), authorization: ['RBAC'], ...options })
  closeServers.push(() => server.close())
  await server.ready
  await quiet()
  const handle = webHandler(createHandler({ engine: server.engine, clock }))
  /** Returns the code and message of an error response, `ok` otherwise. */
  const messageOf = async (
    userName: string,
    method: string,
    path: string,
    body?: object,
    headers: Record<string, string> = {},
  ) => {
    const response = await send(userName, method, path, body, headers)
    if (response.ok) return 'ok'
    const text = await response.text()
    return `${response.status} ${text.startsWith('{') ? (JSON.parse(text) as { message: string }).message : text.trim()}`
  }
  const send = (userName: string, method: string, path: string, body?: object, headers: Record<string, string> = {}) =>
    handle(
      new Request(`https://server${path}`, {
        method,
        headers: { 'content-type': 'application/json', 'user-agent': 'test/1', ...headers },
        ...(body ? { body: JSON.stringify(body) } : {}),
      }),
      identities[userName]!,
    )
  return { server, client: createClient(server.transport()), messageOf, send }
}

const rbac = '/apis/rbac.authorization.k8s.io/v1'
const group = 'rbac.authorization.k8s.io'
const bobSubject = { apiGroup: group, kind: 'User', name: 'bob' }

async function grantToBob(client: Client, namespace: string, rules: ClusterRole['rules']): Promise<void> {
  if (namespace === '') {
    await client.create(ClusterRole, { metadata: { name: 'given' }, rules: rules! })
    await client.create(ClusterRoleBinding, {
      metadata: { name: 'given' },
      roleRef: { kind: 'ClusterRole', name: 'given' },
      subjects: [bobSubject],
    })
    return
  }
  await client.create(Role, { metadata: { name: 'given', namespace }, rules: rules! })
  await client.create(RoleBinding, {
    metadata: { name: 'given', namespace },
    roleRef: { kind: 'Role', name: 'given' },
    subjects: [bobSubject],
  })
}

const bobCannot = (verbAndResource: string, where: string) => `User "bob" cannot ${verbAndResource} ${where}`
const clusterScope = 'at the cluster scope'

test('only requests that a rule allows succeed; a Forbidden error does not show whether the object exists', async () => {
  const { messageOf } = await start()
  const configMap = 'resource "configmaps" in API group ""'
  const inDefault = 'in the namespace "default"'
  for (const [userName, method, path, expected] of [
    ['wrong', 'GET', '/version', '401 Unauthorized'],
    ['root', 'GET', '/api/v1/namespaces/default', 'ok'],
    [
      'bob',
      'GET',
      '/api/v1/namespaces/default/configmaps/x',
      `403 configmaps "x" is forbidden: ${bobCannot(`get ${configMap}`, inDefault)}`,
    ],
    [
      'bob',
      'GET',
      '/api/v1/namespaces/default/configmaps',
      `403 configmaps is forbidden: ${bobCannot(`list ${configMap}`, inDefault)}`,
    ],
    ['bob', 'GET', '/api/v1/configmaps?watch=1', `403 configmaps is forbidden: ${bobCannot(`watch ${configMap}`, clusterScope)}`],
    [
      'bob',
      'GET',
      '/api/v1/configmaps?fieldSelector=metadata.name%3Da',
      `403 configmaps "a" is forbidden: ${bobCannot(`list ${configMap}`, clusterScope)}`,
    ],
    [
      'bob',
      'POST',
      '/api/v1/namespaces/default/configmaps',
      `403 configmaps is forbidden: ${bobCannot(`create ${configMap}`, inDefault)}`,
    ],
    [
      'bob',
      'DELETE',
      '/api/v1/namespaces/default/configmaps',
      `403 configmaps is forbidden: ${bobCannot(`deletecollection ${configMap}`, inDefault)}`,
    ],
    [
      'bob',
      'GET',
      '/api/v1/namespaces/default/pods/p/log',
      `403 pods "p" is forbidden: ${bobCannot('get resource "pods/log" in API group ""', inDefault)}`,
    ],
    [
      'bob',
      'GET',
      '/api/v1/namespaces/x',
      `403 namespaces "x" is forbidden: ${bobCannot('get resource "namespaces" in API group ""', 'in the namespace "x"')}`,
    ],
    [
      'bob',
      'GET',
      '/api/v1/namespaces/default',
      `403 namespaces "default" is forbidden: ${bobCannot('get resource "namespaces" in API group ""', inDefault)}`,
    ],
    [
      'bob',
      'GET',
      '/apis/foo.io/v1/bars',
      `403 bars.foo.io is forbidden: ${bobCannot('list resource "bars" in API group "foo.io"', clusterScope)}`,
    ],
    ['bob', 'GET', '/metrics', '403 forbidden: User "bob" cannot get path "/metrics"'],
    ['bob', 'POST', '/metrics', '403 forbidden: User "bob" cannot post path "/metrics"'],
    ['bob', 'GET', '/version', 'ok'],
    ['bob', 'GET', '/apis/apps/v1', 'ok'],
    ['bob', 'GET', '/openapi/v3', 'ok'],
    ['anonymous', 'GET', '/healthz', 'ok'],
    ['anonymous', 'GET', '/version', 'ok'],
    ['anonymous', 'GET', '/apis', '403 forbidden: User "system:anonymous" cannot get path "/apis"'],
    [
      'anonymous',
      'GET',
      '/api/v1/nodes',
      '403 nodes is forbidden: User "system:anonymous" cannot list resource "nodes" in API group "" at the cluster scope',
    ],
  ] as const) {
    expect(await messageOf(userName, method, path), `${userName} ${method} ${path}`).toBe(expected)
  }
})

test('a Forbidden error has the details of a real server', async () => {
  const { send } = await start()
  expect(await (await send('bob', 'GET', '/apis/apps/v1/namespaces/default/deployments/x')).json()).toEqual({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message:
      'deployments.apps "x" is forbidden: User "bob" cannot get resource "deployments" in API group "apps" in the namespace "default"',
    reason: 'Forbidden',
    details: { name: 'x', group: 'apps', kind: 'deployments' },
    code: 403,
  })
})

test('with AlwaysAllow, authenticated users are allowed everything, and anonymous requests only health checks and the version', async () => {
  const { messageOf } = await start({ authorization: ['AlwaysAllow'] })
  expect(await messageOf('bob', 'GET', '/api/v1/nodes')).toBe('ok')
  expect(await messageOf('anonymous', 'GET', '/api/v1/nodes')).toBe('401 Unauthorized')
  expect(await messageOf('anonymous', 'GET', '/healthz')).toBe('ok')
  expect(await messageOf('anonymous', 'GET', '/version')).toBe('ok')
})

test('a role binding applies in its namespace, a cluster role binding everywhere', async () => {
  const read = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['list'] }]
  const { client, messageOf } = await start()
  await grantToBob(client, 'default', read)
  expect(await messageOf('bob', 'GET', '/api/v1/namespaces/default/configmaps')).toBe('ok')
  expect(await messageOf('bob', 'GET', '/api/v1/namespaces/kube-system/configmaps')).toMatch(/^403/)
  expect(await messageOf('bob', 'GET', '/api/v1/configmaps')).toMatch(/^403/)
  await grantToBob(client, '', read)
  expect(await messageOf('bob', 'GET', '/api/v1/configmaps')).toBe('ok')
  await client.delete(ClusterRoleBinding, { name: 'given' })
  expect(await messageOf('bob', 'GET', '/api/v1/configmaps')).toMatch(/^403/)
})

test('the Forbidden error for a user with a binding to a missing role names the role', async () => {
  const { client, messageOf } = await start()
  const roleRef = { kind: 'ClusterRole', name: 'gone' }
  await client.create(ClusterRoleBinding, { metadata: { name: 'b' }, roleRef, subjects: [bobSubject] })
  expect(await messageOf('bob', 'GET', '/api/v1/nodes')).toBe(
    '403 nodes is forbidden: User "bob" cannot list resource "nodes" in API group "" at the cluster scope: RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found',
  )
})

test('the rules of admin, edit and view are aggregated from labelled roles', async () => {
  const { client } = await start()
  const rulesOf = async (name: string) => JSON.stringify((await client.get(ClusterRole, { name })).rules ?? [])
  expect(await rulesOf('view')).toContain('"endpointslices"')
  expect(await rulesOf('admin')).toContain('"endpointslices"')
  expect(await rulesOf('view')).not.toContain('"secrets"')
  const rules = [{ apiGroups: ['shop.example.com'], resources: ['widgets'], verbs: ['get'] }]
  const labels = { 'rbac.authorization.k8s.io/aggregate-to-view': 'true' }
  await client.create(ClusterRole, { metadata: { name: 'widgets', labels }, rules })
  await quiet()
  for (const name of ['view', 'edit', 'admin']) expect(await rulesOf(name)).toContain('shop.example.com')
  await client.delete(ClusterRole, { name: 'widgets' })
  await quiet()
  for (const name of ['view', 'edit', 'admin']) expect(await rulesOf(name)).not.toContain('shop.example.com')
})

const writeRBAC = {
  apiGroups: [group],
  resources: ['roles', 'rolebindings', 'clusterroles', 'clusterrolebindings'],
  verbs: ['create', 'update', 'get'],
}
const role = (rules: object[]) => ({ apiVersion: `${group}/v1`, kind: 'Role', metadata: { name: 'r' }, rules })
const getPods = { apiGroups: [''], resources: ['pods'], verbs: ['get'] }

test('a user cannot add permissions to a role without having them or the verb escalate', async () => {
  const { client, messageOf } = await start()
  await grantToBob(client, '', [writeRBAC])
  const roles = `${rbac}/namespaces/default/roles`
  expect(await messageOf('bob', 'POST', roles, role([getPods]))).toBe(
    `403 roles.rbac.authorization.k8s.io "r" is forbidden: user "bob" (groups=["devs" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:
{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`,
  )
  expect(await messageOf('bob', 'POST', roles, role([{ ...writeRBAC, verbs: ['get'] }]))).toBe('ok')
  expect(await messageOf('bob', 'PUT', `${roles}/r`, role([getPods]))).toMatch(/^403 .* not currently held/)
  const aggregated = { kind: 'ClusterRole', metadata: { name: 'c' }, aggregationRule: { clusterRoleSelectors: [{}] } }
  expect(await messageOf('bob', 'POST', `${rbac}/clusterroles`, aggregated)).toBe(
    '403 clusterroles.rbac.authorization.k8s.io "c" is forbidden: must have cluster-admin privileges to use the aggregationRule',
  )
  await grantToBob(client, 'default', [{ apiGroups: [group], resources: ['roles'], verbs: ['escalate'] }])
  expect(await messageOf('bob', 'PUT', `${roles}/r`, role([getPods]))).toBe('ok')
})

test('a user cannot bind a role without having its permissions or the verb bind', async () => {
  const { client, messageOf } = await start()
  await grantToBob(client, '', [writeRBAC])
  const bindings = `${rbac}/namespaces/default/rolebindings`
  const bindingTo = (name: string) => ({
    metadata: { name: `to-${name}` },
    roleRef: { apiGroup: group, kind: 'ClusterRole', name },
    subjects: [bobSubject],
  })
  expect(await messageOf('bob', 'POST', bindings, bindingTo('system:basic-user'))).toBe('ok')
  expect(await messageOf('bob', 'POST', bindings, bindingTo('cluster-admin'))).toBe(
    `403 rolebindings.rbac.authorization.k8s.io "to-cluster-admin" is forbidden: user "bob" (groups=["devs" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:
{APIGroups:["*"], Resources:["*"], Verbs:["*"]}
{NonResourceURLs:["*"], Verbs:["*"]}`,
  )
  expect(await messageOf('bob', 'POST', bindings, bindingTo('gone'))).toBe(
    '404 rolebindings.rbac.authorization.k8s.io "gone" not found',
  )
  await grantToBob(client, 'default', [
    { apiGroups: [group], resources: ['clusterroles'], resourceNames: ['cluster-admin'], verbs: ['bind'] },
  ])
  expect(await messageOf('bob', 'POST', bindings, bindingTo('cluster-admin'))).toBe('ok')
})

test('the role of a binding cannot be changed', async () => {
  const { messageOf } = await start()
  const binding = (name: string) => ({ metadata: { name: 'b' }, roleRef: { apiGroup: group, kind: 'ClusterRole', name } })
  expect(await messageOf('root', 'POST', `${rbac}/clusterrolebindings`, binding('view'))).toBe('ok')
  expect(await messageOf('root', 'PUT', `${rbac}/clusterrolebindings/b`, binding('edit'))).toMatch(
    /^422 .*roleRef: Invalid value: .*: cannot change roleRef$/,
  )
})

test('impersonation requires permission for each part of the identity, and sets every part', async () => {
  const { client, messageOf, send } = await start()
  const asJane = { 'impersonate-user': 'jane', 'impersonate-group': 'ops' }
  const nodes = '/api/v1/nodes'
  expect(await messageOf('bob', 'GET', nodes, undefined, asJane)).toBe(
    '403 users "jane" is forbidden: User "bob" cannot impersonate resource "users" in API group "" at the cluster scope',
  )
  await grantToBob(client, '', [{ apiGroups: [''], resources: ['users'], resourceNames: ['jane'], verbs: ['impersonate'] }])
  expect(await messageOf('bob', 'GET', nodes, undefined, asJane)).toBe(
    '403 groups "ops" is forbidden: User "bob" cannot impersonate resource "groups" in API group "" at the cluster scope',
  )
  expect(await messageOf('bob', 'GET', nodes, undefined, { 'impersonate-user': 'jane' })).toBe(
    '403 nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the cluster scope',
  )
  expect(await messageOf('bob', 'GET', nodes, undefined, { 'impersonate-user': 'system:serviceaccount:default:robot' })).toBe(
    '403 serviceaccounts "robot" is forbidden: User "bob" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "default"',
  )
  expect(await messageOf('bob', 'GET', nodes, undefined, { 'impersonate-user': 'jane', 'impersonate-uid': '7' })).toBe(
    '403 uids.authentication.k8s.io "7" is forbidden: User "bob" cannot impersonate resource "uids" in API group "authentication.k8s.io" at the cluster scope',
  )
  expect(
    await messageOf('bob', 'GET', nodes, undefined, { 'impersonate-user': 'jane', 'impersonate-extra-scopes': 'view' }),
  ).toBe(
    '403 userextras.authentication.k8s.io "view" is forbidden: User "bob" cannot impersonate resource "userextras/scopes" in API group "authentication.k8s.io" at the cluster scope',
  )
  const response = await send(
    'root',
    'POST',
    '/apis/authentication.k8s.io/v1/selfsubjectreviews',
    {},
    { ...asJane, 'impersonate-uid': '7', 'impersonate-extra-scopes': 'view', 'impersonate-extra-Cost%2Fcenter': 'a, b' },
  )
  expect(((await response.json()) as { status: object }).status).toEqual({
    userInfo: {
      username: 'jane',
      uid: '7',
      groups: ['ops', 'system:authenticated'],
      extra: { scopes: ['view'], 'cost/center': ['a, b'] },
    },
  })
})

const attributesPath = 'spec.resourceAttributes'
test.each([
  [
    'neither rawSelector nor requirements',
    'fieldSelector',
    {},
    `${attributesPath}.fieldSelector.requirements: Required value: when ${attributesPath}.fieldSelector is specified,`,
  ],
  [
    'both rawSelector and requirements',
    'labelSelector',
    { rawSelector: 'a=b', requirements: [{ key: 'a', operator: 'Odd' }] },
    `${attributesPath}.labelSelector.rawSelector: Invalid value: "a=b": may not specified at the same time as requirements`,
  ],
  [
    'a requirement without a key and values',
    'fieldSelector',
    { requirements: [{ operator: 'In' }] },
    `[${attributesPath}.fieldSelector.requirements[0].key: Required value: must be specified, ${attributesPath}.fieldSelector.requirements[0].values: Required value: must be specified when \`operator\` is 'In' or 'NotIn']`,
  ],
  [
    'values for an operator that takes no values',
    'labelSelector',
    { requirements: [{ key: 'a', operator: 'Exists', values: ['b'] }] },
    `${attributesPath}.labelSelector.requirements[0].values: Forbidden: may not be specified when \`operator\` is 'Exists' or 'DoesNotExist'`,
  ],
  [
    'an invalid key',
    'labelSelector',
    { requirements: [{ key: 'a b', operator: 'In', values: ['c'] }] },
    `${attributesPath}.labelSelector.requirements[0].key: Invalid value: "a b": name part must consist of`,
  ],
])('a review whose selector has %s is rejected', async (_, field, selector, problem) => {
  const { send } = await start()
  const spec = { resourceAttributes: { verb: 'list', resource: 'pods', [field]: selector } }
  const response = await send('root', 'POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', { spec })
  expect(((await response.json()) as Error).message).toContain(`.authorization.k8s.io "" is invalid: ${problem}`)
})

test('reviews have no names, and only SelfSubjectReview has a creation time', async () => {
  const { send } = await start()
  const review = async (path: string, body: object) => (await send('root', 'POST', `/apis/${path}`, body)).json()
  const spec = { resourceAttributes: { verb: 'get', resource: 'pods' } }
  const selfAccess = 'authorization.k8s.io/v1/selfsubjectaccessreviews'
  expect(await review(selfAccess, { metadata: { name: 'x' }, spec })).toMatchObject({
    message: '.authorization.k8s.io "" is invalid: metadata: Invalid value: {"name":"x"}: must be empty',
  })
  expect(await review(selfAccess, { spec })).toMatchObject({ metadata: { managedFields: [{ operation: 'Update' }] } })
  expect(await review('authorization.k8s.io/v1/selfsubjectrulesreviews', { spec: { namespace: 'default' } })).toEqual(
    expect.objectContaining({ metadata: {}, spec: {} }),
  )
  const self = (await review('authentication.k8s.io/v1/selfsubjectreviews', { metadata: { name: 'x' } })) as { metadata: object }
  expect(Object.keys(self.metadata)).toEqual(['creationTimestamp'])
})

test("reviews return the authorizer's decision, and are not stored", async () => {
  const { client, send, messageOf } = await start()
  await grantToBob(client, 'default', [getPods])
  const review = async (userName: string, path: string, spec: object) => {
    const response = await send(userName, 'POST', `/apis/authorization.k8s.io/v1/${path}`, { spec })
    return (await response.json()) as { status?: unknown; message?: string }
  }
  const pods = { verb: 'get', resource: 'pods', namespace: 'default' }
  const reason = 'RBAC: allowed by RoleBinding "given/default" of Role "given" to User "bob"'
  expect(await review('bob', 'selfsubjectaccessreviews', { resourceAttributes: pods })).toMatchObject({
    kind: 'SelfSubjectAccessReview',
    status: { allowed: true, reason },
  })
  const podsElsewhere = { ...pods, namespace: 'other' }
  expect((await review('bob', 'selfsubjectaccessreviews', { resourceAttributes: podsElsewhere })).status).toEqual({
    allowed: false,
  })
  const path = { nonResourceAttributes: { verb: 'get', path: '/metrics' } }
  expect((await review('bob', 'selfsubjectaccessreviews', path)).status).toEqual({ allowed: false })
  expect((await review('bob', 'subjectaccessreviews', { user: 'x', ...path })).message).toMatch(
    /^subjectaccessreviews.* forbidden: /,
  )
  expect((await review('root', 'subjectaccessreviews', { user: 'bob', resourceAttributes: pods })).status).toEqual({
    allowed: true,
    reason,
  })
  expect((await review('root', 'subjectaccessreviews', { resourceAttributes: pods })).message).toBe(
    '.authorization.k8s.io "" is invalid: spec.user: Invalid value: "": at least one of user or group must be specified',
  )
  const emptyReview = await send('bob', 'POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {})
  expect(((await emptyReview.json()) as { message: string }).message).toBe(
    '.authorization.k8s.io "" is invalid: spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified',
  )
  const local = 'namespaces/default/localsubjectaccessreviews'
  expect((await review('root', local, { user: 'bob', resourceAttributes: pods })).status).toMatchObject({ allowed: true })
  expect((await review('root', local, { user: 'bob', resourceAttributes: podsElsewhere })).message).toContain(
    'must match metadata.namespace',
  )
  expect((await review('bob', 'selfsubjectrulesreviews', { namespace: 'default' })).status).toMatchObject({
    incomplete: false,
    resourceRules: expect.arrayContaining([getPods]),
  })
  expect(await messageOf('root', 'GET', '/apis/authorization.k8s.io/v1/subjectaccessreviews')).toMatch(/^405/)
})

test('an apply cannot create an object when the user is only allowed to patch', async () => {
  const { client, messageOf } = await start()
  await grantToBob(client, 'default', [{ apiGroups: [''], resources: ['configmaps'], verbs: ['patch'] }])
  const path = '/api/v1/namespaces/default/configmaps/c?fieldManager=bob'
  const apply = () =>
    messageOf(
      'bob',
      'PATCH',
      path,
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c' }, data: { a: 'b' } },
      {
        'content-type': 'application/apply-patch+yaml',
      },
    )
  expect(await apply()).toBe(
    '403 configmaps "c" is forbidden: User "bob" cannot create resource "configmaps" in API group "" in the namespace "default"',
  )
  await client.create(ConfigMap, { metadata: { name: 'c', namespace: 'default' } })
  expect(await apply()).toBe('ok')
})

test('requests of an in-process client are authorized only with the option `authorized`', async () => {
  const { server } = await start()
  const bob = createClient(server.transport({ name: 'bob', groups: [] }, { authorized: true }))
  await expect(bob.list(ClusterRole)).rejects.toThrow('User "bob" cannot list resource "clusterroles"')
  await expect(createClient(server.transport({ name: 'bob', groups: [] })).list(ClusterRole)).resolves.toBeDefined()
})

test.each([
  // Upstream: OPTIONS has no verb.
  ['OPTIONS', '/api/v1/namespaces/default/configmaps', 'cannot  resource "configmaps"'],
  ['GET', '/api/v1/nodes/n/proxy/metrics/x', 'cannot get resource "nodes/proxy"'],
  ['DELETE', '/api/v1/watch/configmaps', 'cannot watch resource "configmaps"'],
  ['POST', '/livez?verbose', 'cannot post path "/livez"'],
])(
  'the Forbidden error for an unusual request has the verb and the resource or path of upstream: %s %s',
  async (method, path, message) => {
    const { messageOf } = await start()
    expect(await messageOf('bob', method, path)).toContain(message)
  },
)

test('responses have the Cache-Control header of a real server, and Forbidden errors also forbid content sniffing', async () => {
  const { send } = await start()
  const headersOf = async (userName: string, path: string) => {
    const { headers } = await send(userName, 'GET', path)
    return [headers.get('cache-control'), headers.get('x-content-type-options')]
  }
  expect(await headersOf('root', '/api/v1/namespaces/missing')).toEqual(['no-cache, private', null])
  expect(await headersOf('root', '/version')).toEqual(['no-cache, private', null])
  expect(await headersOf('bob', '/api/v1/namespaces')).toEqual(['no-cache, private', 'nosniff'])
  expect(await headersOf('wrong', '/api/v1/namespaces')).toEqual(['no-cache, private', null])
})

test('an empty namespace in the path of a list means all namespaces, and is rejected in the path of a deletion', async () => {
  const { messageOf, send } = await start()
  const response = (await (await send('root', 'GET', '/api/v1/namespaces//configmaps')).json()) as { kind: string }
  expect(response.kind).toBe('ConfigMapList')
  expect(await messageOf('bob', 'GET', '/api/v1/namespaces//configmaps')).toContain('at the cluster scope')
  expect(await messageOf('root', 'DELETE', '/api/v1/namespaces//configmaps')).toContain('400 Namespace parameter required.')
})

test.each(['/', '/apis', '/apis/apps', '/openapi/v2', '/metrics'])('%s supports HEAD, too', async (path) => {
  const { send } = await start()
  expect((await send('root', 'HEAD', path)).status).toBe(200)
})
