import { type Admission, ConfigMap, hours, Namespace, orAbsent, Secret, seconds, StatusError } from '@capstan/kube'
import { expect, test } from 'vitest'
import { quiet, testServer, Widget } from '../test-server.ts'

const aNamespace = { metadata: { name: 'ns' } }
const inside = (name: string) => ({ name, namespace: 'ns' })

test('a server has the standard namespaces', async () => {
  const { client } = await testServer()
  const { items } = await client.list(Namespace)
  expect(items.map(({ metadata, status }) => `${metadata.name} ${status?.phase}`)).toEqual([
    'default Active',
    'kube-node-lease Active',
    'kube-public Active',
    'kube-system Active',
  ])
})

test('a namespace is deleted after its content, and stays while a finalizer keeps one of its objects', async () => {
  const { client, clock } = await testServer()
  await client.create(Namespace, aNamespace)
  await client.create(ConfigMap, { metadata: inside('free') })
  await client.create(Widget, { metadata: { ...inside('held'), finalizers: ['example.com/hold'] }, spec: { replicas: 1 } })
  await client.create(ConfigMap, { metadata: { name: 'free', namespace: 'default' } })

  const terminating = await client.delete(Namespace, { name: 'ns' })
  expect(terminating).toMatchObject({ spec: { finalizers: ['kubernetes'] }, status: { phase: 'Terminating' } })
  await quiet()
  expect((await client.list(ConfigMap, { namespace: 'ns' })).items).toEqual([])
  expect(
    (await client.get(Namespace, { name: 'ns' })).status?.conditions,
    'conditions are written only after five seconds if no deletion fails',
  ).toBeUndefined()
  clock.step(clock.now() + seconds(5))
  await quiet()
  const { status } = await client.get(Namespace, { name: 'ns' })
  expect(status?.conditions?.map(({ type, message }) => `${type}: ${message}`)).toEqual([
    'NamespaceDeletionDiscoveryFailure: All resources successfully discovered',
    'NamespaceDeletionGroupVersionParsingFailure: All legacy kube types successfully parsed',
    'NamespaceDeletionContentFailure: All content successfully deleted, may be waiting on finalization',
    'NamespaceContentRemaining: Some resources are remaining: widgets.shop.example.com has 1 resource instances',
    'NamespaceFinalizersRemaining: Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances',
  ])

  await client.patch(Widget, inside('held'), { type: 'merge', body: { metadata: { finalizers: null } } })
  await quiet()
  expect(await orAbsent(client.get(Namespace, { name: 'ns' }))).toBeUndefined()
  expect((await client.list(ConfigMap)).items).toHaveLength(1)
  expect(await client.create(Namespace, aNamespace)).toMatchObject({ status: { phase: 'Active' } })
})

test('the deletion of a namespace reports the remaining objects even if the clock is set back', async () => {
  const { client, clock } = await testServer()
  await client.create(Namespace, aNamespace)
  await client.create(ConfigMap, { metadata: { ...inside('held'), finalizers: ['example.com/hold'] } })
  await client.delete(Namespace, { name: 'ns' })
  clock.shift(-hours(1))
  await client.patch(ConfigMap, inside('held'), { type: 'merge', body: { data: { changed: 'yes' } } })
  clock.step(clock.now() + seconds(5))
  await quiet()
  const { status } = await client.get(Namespace, { name: 'ns' })
  expect(status?.conditions?.find(({ type }) => type === 'NamespaceContentRemaining')?.status).toBe('True')
})

test('the deletion of a namespace continues after a restart', async () => {
  const first = await testServer({ controllers: { namespaces: false } })
  await first.client.create(Namespace, aNamespace)
  await first.client.create(ConfigMap, { metadata: inside('c') })
  await first.client.delete(Namespace, { name: 'ns' })
  const { client } = await testServer({ store: first.server.store, customResources: [] })
  await quiet()
  expect(await orAbsent(client.get(Namespace, { name: 'ns' }))).toBeUndefined()
})

test('a rejected deletion of one object does not prevent other deletions, and is reported in a condition of the namespace', async () => {
  let isRejected = true
  const users: (string | undefined)[] = []
  const guard: Admission = {
    kind: ConfigMap,
    operations: ['DELETE'],
    validate({ metadata }, { userInfo }) {
      users.push(userInfo.username)
      if (isRejected && metadata.name === 'kept')
        throw new StatusError('Forbidden', 'configmaps "kept" is forbidden: still needed')
      return []
    },
  }
  const { client, clock } = await testServer({ admission: [guard] })
  await client.create(Namespace, aNamespace)
  for (const name of ['kept', 'other']) await client.create(ConfigMap, { metadata: inside(name) })
  await client.create(Secret, { metadata: inside('other') })
  await client.delete(Namespace, { name: 'ns' })
  await quiet()

  expect((await client.list(ConfigMap, { namespace: 'ns' })).items.map(({ metadata }) => metadata.name)).toEqual(['kept'])
  expect((await client.list(Secret, { namespace: 'ns' })).items).toEqual([])
  const { status } = await client.get(Namespace, { name: 'ns' })
  expect(status?.conditions?.find(({ type }) => type === 'NamespaceDeletionContentFailure')).toMatchObject({
    status: 'True',
    reason: 'ContentDeletionFailed',
    message: 'Failed to delete all resource types, 1 remaining: configmaps "kept" is forbidden: still needed',
  })
  expect(new Set(users)).toEqual(new Set(['system:serviceaccount:kube-system:namespace-controller']))

  isRejected = false
  clock.step(clock.now() + seconds(1100))
  await quiet()
  expect(await orAbsent(client.get(Namespace, { name: 'ns' }))).toBeUndefined()
})
