import {
  ClusterRole,
  ClusterRoleBinding,
  ConfigMap,
  createClient,
  type Input,
  Namespace,
  Pod,
  seconds,
  ServiceAccount,
  unknownKind,
} from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { quiet, rejection, testServer, type TestServer } from '../test-server.ts'
import { AdmissionPlugins, admissionPluginState, enabledPlugins } from './plugin-names.ts'

describe('switches of plugins', () => {
  test('the default plugins are enabled, and options enable and disable plugins', () => {
    expect([...enabledPlugins()]).toEqual(AdmissionPlugins.filter((name) => admissionPluginState(name) === 'on'))
    expect(enabledPlugins({ enable: ['AlwaysDeny'], disable: ['NamespaceLifecycle'] })).toEqual(
      new Set([...enabledPlugins(), 'AlwaysDeny'].filter((name) => name !== 'NamespaceLifecycle')),
    )
  })

  test('`admissionPluginState` returns the state of a plugin, and undefined for a name that does not exist upstream', () => {
    expect(['NamespaceLifecycle', 'LimitRanger', 'Nope', 'toString'].map(admissionPluginState)).toEqual([
      'on',
      expect.any(String),
      undefined,
      undefined,
    ])
  })
})

test('AlwaysDeny rejects creates', async () => {
  const { client } = await testServer({
    admissionPlugins: { enable: ['AlwaysDeny'] },
    controllers: { defaultNamespaces: false },
    customResources: [],
  })
  expect(await rejection(client.create(Namespace, { metadata: { name: 'a' } }))).toBe(
    '403 Forbidden: namespaces "a" is forbidden: admission control is denying all modifications',
  )
})

test('without NamespaceLifecycle, objects can be created in missing namespaces, and `default` can be deleted', async () => {
  const { client } = await testServer({ admissionPlugins: { disable: ['NamespaceLifecycle'] } })
  expect(await rejection(client.create(ConfigMap, { metadata: { name: 'a', namespace: 'nowhere' } }))).toBe('accepted')
  expect(await rejection(client.delete(Namespace, { name: 'default' }))).toBe('accepted')
})

describe('OwnerReferencesPermissionEnforcement', () => {
  /**
   * Starts an API server with the ConfigMaps `owner` and `there`, which have no owners. Returns the ConfigMap `owner`, and a client of user
   * bob, who has the permissions `rules`.
   */
  async function startForBob(rules: NonNullable<ClusterRole['rules']>) {
    const { server, client } = await testServer({
      authorization: ['RBAC'],
      admissionPlugins: { enable: ['OwnerReferencesPermissionEnforcement'] },
    })
    await client.create(ClusterRole, { metadata: { name: 'bob' }, rules })
    await client.create(ClusterRoleBinding, {
      metadata: { name: 'bob' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'bob' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'bob' }],
    })
    const owner = await client.create(ConfigMap, { metadata: { name: 'owner', namespace: 'default' } })
    await client.create(ConfigMap, { metadata: { name: 'there', namespace: 'default' } })
    const transport = server.transport({ name: 'bob', groups: ['system:authenticated'] }, { authorized: true })
    return { owner, client: createClient(transport) }
  }
  const write = { verbs: ['create', 'patch', 'get'], apiGroups: [''], resources: ['configmaps'] }
  const finalize = { verbs: ['update'], apiGroups: [''], resources: ['configmaps/finalizers'] }
  const remove = { verbs: ['delete'], apiGroups: [''], resources: ['configmaps'] }

  test.each([
    {
      name: 'a user without permission to delete the owned object can create it with an owner, but cannot change its owners',
      permissions: [write],
      block: false,
      create: 'accepted',
      change: /cannot set an ownerRef on a resource you can't delete: , <nil>$/,
    },
    {
      name: 'a user with permission to delete the owned object can change its owners',
      permissions: [write, remove],
      block: false,
      create: 'accepted',
      change: /^accepted$/,
    },
    {
      name: 'a user without permission to set finalizers on the owner cannot set blockOwnerDeletion',
      permissions: [write, remove],
      block: true,
      create:
        '403 Forbidden: configmaps "new" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can\'t set finalizers on: , <nil>',
      change: /blockOwnerDeletion/,
    },
    {
      name: 'a user with permission to set finalizers on the owner can set blockOwnerDeletion',
      permissions: [write, remove, finalize],
      block: true,
      create: 'accepted',
      change: /^accepted$/,
    },
  ])('$name', async ({ permissions, block, create, change }) => {
    const { client, owner } = await startForBob(permissions)
    const { name, uid } = owner.metadata
    const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name, uid, blockOwnerDeletion: block }]
    expect(await rejection(client.create(ConfigMap, { metadata: { name: 'new', namespace: 'default', ownerReferences } }))).toBe(
      create,
    )
    expect(
      await rejection(
        client.patch(
          ConfigMap,
          { name: 'there', namespace: 'default' },
          { type: 'merge', body: { metadata: { ownerReferences } } },
        ),
      ),
    ).toMatch(change)
  })

  test('rejects blockOwnerDeletion for an owner of an unknown kind', async () => {
    const { client } = await startForBob([write])
    const ownerReferences = [{ apiVersion: 'a.b/v1', kind: 'X', name: 'x', uid: 'u', blockOwnerDeletion: true }]
    expect(
      await rejection(client.create(ConfigMap, { metadata: { name: 'new', namespace: 'default', ownerReferences } })),
    ).toContain(
      'cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion a.b/v1 Kind X: no matches for kind "X" in version "a.b/v1"',
    )
  })
})

describe('ServiceAccount', () => {
  const pods = unknownKind({ apiVersion: 'v1', plural: 'pods', kind: 'Pod', scope: 'Namespaced' })
  const aPod = (name: string, spec: object = {}): Input<Pod> =>
    ({ metadata: { name, namespace: 'default' }, spec: { containers: [{ name: 'c', image: 'i' }], ...spec } }) as Input<Pod>
  const start = (): Promise<TestServer> => testServer({ controllers: { serviceAccounts: true } })

  test('a pod gets the ServiceAccount `default`, and a token at the standard path', async () => {
    const { client } = await start()
    await quiet()
    await client.create(Pod, aPod('a'))
    const { spec } = (await client.get(pods, { namespace: 'default', name: 'a' })) as unknown as { spec: Record<string, any> }
    const { name } = spec.volumes[0]
    expect(name).toMatch(/^kube-api-access-[a-z0-9]{5}$/)
    expect(spec).toMatchObject({
      serviceAccountName: 'default',
      serviceAccount: 'default',
      containers: [{ volumeMounts: [{ name, readOnly: true, mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' }] }],
      volumes: [{ projected: { sources: [{ serviceAccountToken: { path: 'token', expirationSeconds: 3607 } }, {}, {}] } }],
    })
  })

  test('rejects a pod whose ServiceAccount does not exist, but first waits for a missing ServiceAccount `default`', async () => {
    const { client, clock } = await testServer({ admissionPlugins: { enable: ['ServiceAccount'] } })
    expect(await rejection(client.create(Pod, aPod('a', { serviceAccountName: 'x' })))).toBe(
      '403 Forbidden: pods "a" is forbidden: error looking up service account default/x: serviceaccount "x" not found',
    )
    const missing = rejection(client.create(Pod, aPod('a')))
    const late = rejection(client.create(Pod, { ...aPod('b'), metadata: { name: 'b', namespace: 'kube-system' } }))
    await quiet()
    await client.create(ServiceAccount, { metadata: { name: 'default', namespace: 'kube-system' } })
    expect(await late).toBe('accepted')
    clock.step(clock.now() + seconds(2))
    expect(await missing).toMatch(/error looking up service account default\/default: serviceaccount "default" not found$/)
  })

  test('a ServiceAccount can restrict its pods to the Secrets that it lists', async () => {
    const { client } = await start()
    await client.create(ServiceAccount, {
      metadata: { name: 'strict', namespace: 'default', annotations: { 'kubernetes.io/enforce-mountable-secrets': 'true' } },
      secrets: [{ name: 'mine' }],
    } as Input<ServiceAccount>)
    const pod = (secretName: string) =>
      aPod(`p-${secretName}`, { serviceAccountName: 'strict', volumes: [{ name: 'v', secret: { secretName } }] })
    expect(await rejection(client.create(Pod, pod('mine')))).toBe('accepted')
    expect(await rejection(client.create(Pod, pod('other')))).toContain(
      'volume with secret.secretName="other" is not allowed because service account strict does not reference that secret',
    )
  })
})
