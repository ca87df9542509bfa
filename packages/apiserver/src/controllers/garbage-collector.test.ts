import {
  ConfigMap,
  CustomResourceDefinition,
  customResourceDefinition,
  type KubeObject,
  minutes,
  Node,
  orAbsent,
  ownerReference,
} from '@capstan/kube'
import { beforeEach, describe, expect, test } from 'vitest'
import { memoryStore } from '../store/memory.ts'
import { at, namespace, quiet, type TestServer, testServer, Widget } from '@capstan/kubernetes-kinds/test-server'

let t: TestServer
beforeEach(async () => {
  t = await testServer()
})

const make = (name: string, owners: { of: KubeObject; block?: boolean }[] = [], metadata: Partial<KubeObject['metadata']> = {}) =>
  t.client.create(ConfigMap, {
    metadata: {
      ...at(name),
      ownerReferences: owners.map(({ of, block }) => ({
        ...ownerReference(of, ConfigMap),
        ...(block ? { blockOwnerDeletion: true } : {}),
      })),
      ...metadata,
    },
  })
const removeFinalizers = (name: string) =>
  t.client.patch(ConfigMap, at(name), { type: 'merge', body: { metadata: { finalizers: null } } })
const remainingNames = async () => {
  await quiet()
  return (await t.client.list(ConfigMap, { namespace })).items.map(({ metadata }) => metadata.name).join(' ')
}

describe('background deletion', () => {
  test('dependents of a deleted object are deleted, at any depth', async () => {
    const owner = await make('owner')
    const child = await make('child', [{ of: owner }])
    await make('grandchild', [{ of: child }])
    await make('unrelated')
    await t.client.delete(ConfigMap, at('owner'), { propagationPolicy: 'Background' })
    expect(await remainingNames()).toBe('unrelated')
  })

  test('a dependent with another owner only loses the reference to the deleted owner', async () => {
    const [one, two] = [await make('one'), await make('two')]
    await make('child', [{ of: one }, { of: two }])
    await t.client.delete(ConfigMap, at('one'))
    expect(await remainingNames()).toBe('child two')
    expect((await t.client.get(ConfigMap, at('child'))).metadata.ownerReferences).toMatchObject([{ name: 'two' }])
  })

  test('a dependent is deleted when its owner never existed or has another uid', async () => {
    const owner = await make('owner')
    const impostor = { ...owner, metadata: { ...owner.metadata, uid: 'somebody-else' } }
    await make('child', [{ of: impostor }])
    await make('orphan', [{ of: { ...owner, metadata: { ...owner.metadata, name: 'never' } } }])
    expect(await remainingNames()).toBe('owner')
  })

  test('a dependent whose owner has an unknown kind stays until the kind is known', async () => {
    t = await testServer({ customResources: [] })
    const reference = { apiVersion: 'shop.example.com/v1', kind: 'Widget', name: 'never', uid: 'u' }
    await make('child', [], { ownerReferences: [reference] })
    expect(await remainingNames()).toBe('child')
    await t.client.create(CustomResourceDefinition, customResourceDefinition(Widget))
    expect(await remainingNames()).toBe('')
  })

  test('an owner is looked up in the namespace of its dependent, or among cluster-scoped objects', async () => {
    const node = await t.client.create(Node, { metadata: { name: 'n' } })
    await make('on-node', [], { ownerReferences: [ownerReference(node, Node)] })
    const elsewhere = await t.client.create(ConfigMap, { metadata: { name: 'owner', namespace: 'kube-system' } })
    await make('across', [{ of: elsewhere }])
    expect(await remainingNames()).toBe('on-node')
    // A reference from a cluster-scoped object to a namespaced owner cannot be resolved, so the object is not deleted.
    const reference = ownerReference(elsewhere, ConfigMap)
    await t.client.create(Node, { metadata: { name: 'owned', ownerReferences: [reference] } })
    await quiet()
    expect(await orAbsent(t.client.get(Node, { name: 'owned' }))).toBeDefined()
  })

  test('a dependent with a finalizer gets a deletionTimestamp, and stays until the finalizer is removed', async () => {
    const owner = await make('owner')
    await make('child', [{ of: owner }], { finalizers: ['example.com/hold'] })
    await t.client.delete(ConfigMap, at('owner'))
    expect(await remainingNames()).toBe('child')
    expect((await t.client.get(ConfigMap, at('child'))).metadata.deletionTimestamp).toBeDefined()
    await removeFinalizers('child')
    expect(await remainingNames()).toBe('')
  })
})

describe('foreground deletion', () => {
  const remove = () => t.client.delete(ConfigMap, at('owner'), { propagationPolicy: 'Foreground' })

  test('the owner waits for dependents that block it', async () => {
    const owner = await make('owner')
    await make('blocking', [{ of: owner, block: true }], { finalizers: ['example.com/hold'] })
    await make('other', [{ of: owner }])
    await remove()
    expect(await remainingNames()).toBe('blocking owner')
    expect((await t.client.get(ConfigMap, at('blocking'))).metadata.deletionTimestamp).toBeDefined()
    await removeFinalizers('blocking')
    expect(await remainingNames()).toBe('')
  })

  test('the owner does not wait for a dependent whose owner reference was removed', async () => {
    const owner = await make('owner')
    await make('child', [{ of: owner, block: true }], { finalizers: ['example.com/hold'] })
    await remove()
    expect(await remainingNames()).toBe('child owner')
    await t.client.patch(ConfigMap, at('child'), { type: 'merge', body: { metadata: { ownerReferences: null } } })
    expect(await remainingNames()).toBe('child')
  })

  test('dependents of dependents are deleted first', async () => {
    const owner = await make('owner')
    const child = await make('child', [{ of: owner, block: true }])
    await make('grandchild', [{ of: child, block: true }], { finalizers: ['example.com/hold'] })
    await remove()
    expect(await remainingNames()).toBe('child grandchild owner')
    await removeFinalizers('grandchild')
    expect(await remainingNames()).toBe('')
  })

  test('an owner without dependents is deleted', async () => {
    await make('owner')
    await remove()
    expect(await remainingNames()).toBe('')
  })
})

test('orphaned dependents stay, without the owner reference', async () => {
  const owner = await make('owner')
  await make('child', [{ of: owner }])
  await t.client.delete(ConfigMap, at('owner'), { propagationPolicy: 'Orphan' })
  expect(await remainingNames()).toBe('child')
  expect((await t.client.get(ConfigMap, at('child'))).metadata.ownerReferences).toBeUndefined()
})

test('an orphaned dependent stays although it is changed while another dependent loses its owner reference', async () => {
  const store = memoryStore()
  t = await testServer({ store })
  const owner = await make('owner')
  for (const name of ['first', 'second']) await make(name, [{ of: owner }])
  const commit = store.commit.bind(store)
  let changes = 0
  store.commit = async (write) => {
    const isRelease = write.object !== undefined && !write.object.metadata.ownerReferences
    if (isRelease && ['first', 'second'].includes(write.key.name) && changes++ === 0) {
      const other = write.key.name === 'first' ? 'second' : 'first'
      await t.client.patch(ConfigMap, at(other), { type: 'merge', body: { data: { changed: 'yes' } } })
    }
    return commit(write)
  }
  await t.client.delete(ConfigMap, at('owner'), { propagationPolicy: 'Orphan' })
  expect(await remainingNames()).toBe('first second')
  const dependents = (await t.client.list(ConfigMap, { namespace })).items
  expect(dependents.map(({ metadata }) => metadata.ownerReferences)).toEqual([undefined, undefined])
  expect(dependents.filter(({ data }) => data?.changed === 'yes')).toHaveLength(1)
})

test('dependents of an owner that was deleted before the server started are deleted at start', async () => {
  const withoutCollector = await testServer({ controllers: { garbageCollector: false } })
  t = withoutCollector
  const owner = await make('owner')
  await make('child', [{ of: owner }])
  await t.client.delete(ConfigMap, at('owner'))
  expect(await remainingNames()).toBe('child')
  t = await testServer({ store: withoutCollector.server.store, customResources: [] })
  expect(await remainingNames()).toBe('')
})

test('the garbage collector leaves no timer after its work', async () => {
  const owner = await make('owner')
  await make('child', [{ of: owner }])
  await t.client.delete(ConfigMap, at('owner'))
  await remainingNames()
  expect(t.clock.step(t.clock.now() + minutes(60))).toBe(false)
})

test('an object that replaces a deleted dependent under the same name is not deleted', async () => {
  const store = memoryStore()
  const commit = store.commit.bind(store)
  t = await testServer({ store })
  const owner = await make('owner')
  const child = await make('child', [{ of: owner }])
  let isReplaced = false
  store.commit = async (write) => {
    if (write.key.name === 'child' && write.object === undefined && !isReplaced) {
      isReplaced = true
      const { ownerReferences: _, ...metadata } = child.metadata
      await commit(write)
      await commit({ ...write, previous: undefined, object: { ...child, metadata: { ...metadata, uid: 'new' } } })
    }
    return commit(write)
  }
  await t.client.delete(ConfigMap, at('owner'), { propagationPolicy: 'Background' })
  expect(await remainingNames()).toBe('child')
  expect(isReplaced).toBe(true)
  expect((await t.client.get(ConfigMap, at('child'))).metadata.uid).toBe('new')
})
