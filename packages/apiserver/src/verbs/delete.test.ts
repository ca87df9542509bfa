import { admission, ConfigMap, forbidden, Namespace, type ObjectList, orAbsent, Pod } from '@capstan/kube'
import { beforeEach, describe, expect, test } from 'vitest'
import { at, aWidget, namespace, rejection, type TestServer, testServer, Widget } from '@capstan/kubernetes-kinds/test-server'

let t: TestServer
beforeEach(async () => {
  t = await testServer({ controllers: { garbageCollector: false } })
})
const get = () => orAbsent(t.client.get(Widget, at('w')))
const setFinalizers = (...list: string[]) =>
  t.client.patch(Widget, at('w'), { type: 'merge', body: { metadata: { finalizers: list } } })

describe('a delete', () => {
  test('of an object without finalizers returns a Status and removes the object', async () => {
    const { metadata } = await t.client.create(Widget, aWidget('w'))
    const response = await t.client.transport.send({
      verb: 'delete',
      group: 'shop.example.com',
      version: 'v1',
      plural: 'widgets',
      ...at('w'),
    })
    expect(response).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Success',
      details: { name: 'w', group: 'shop.example.com', kind: 'widgets', uid: metadata.uid },
    })
    expect(await get()).toBeUndefined()
  })

  test('of an object with finalizers marks it; then no finalizer can be added, and the removal of the last finalizer deletes the object', async () => {
    await t.client.create(Widget, aWidget('w', {}, { finalizers: ['example.com/a', 'example.com/b'] }))
    const pending = await t.client.delete(Widget, at('w'))
    expect(pending?.metadata).toMatchObject({
      generation: 2,
      deletionTimestamp: '2026-01-01T00:00:00Z',
      deletionGracePeriodSeconds: 0,
    })
    expect(await t.client.delete(Widget, at('w'))).toBe(pending)

    expect((await setFinalizers('example.com/b')).metadata.deletionTimestamp).toBe('2026-01-01T00:00:00Z')
    expect(await rejection(setFinalizers('example.com/b', 'example.com/c'))).toBe(
      '422 Invalid: Widget.shop.example.com "w" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.com/c"}',
    )
    const last = await setFinalizers()
    expect(last.metadata).toMatchObject({ name: 'w', deletionTimestamp: '2026-01-01T00:00:00Z' })
    expect(await get()).toBeUndefined()
    expect((await t.client.create(Widget, aWidget('w'))).metadata.generation).toBe(1)
  })

  test.each([
    ['Foreground', ['foregroundDeletion']],
    ['Orphan', ['orphan']],
  ] as const)('with policy %s adds a finalizer for the garbage collector', async (propagationPolicy, expected) => {
    await t.client.create(Widget, aWidget('w'))
    const pending = await t.client.delete(Widget, at('w'), { propagationPolicy })
    expect(pending?.metadata.finalizers).toEqual(expected)
  })

  test('of an object that is being deleted replaces the propagation policy', async () => {
    await t.client.create(Widget, aWidget('w'))
    await t.client.delete(Widget, at('w'), { propagationPolicy: 'Foreground' })
    expect(await t.client.delete(Widget, at('w'), { propagationPolicy: 'Background' })).toBeUndefined()
    expect(await get()).toBeUndefined()
  })

  test('as a dry run deletes nothing', async () => {
    await t.client.create(Widget, aWidget('w'))
    expect(await t.client.delete(Widget, at('w'), { dryRun: true })).toBeUndefined()
    expect(await get()).toBeDefined()
  })

  test('calls admission that is declared for DELETE', async () => {
    const guard = admission({ kind: Widget, operations: ['DELETE'], validate: () => [forbidden('spec', 'is in use')] })
    const { client } = await testServer({ admission: [guard] })
    await client.create(Widget, aWidget('w'))
    expect(await rejection(client.delete(Widget, at('w')))).toBe(
      '422 Invalid: Widget.shop.example.com "w" is invalid: spec: Forbidden: is in use',
    )
  })

  test('that is sent several times at once succeeds once, and is NotFound for the other requests', async () => {
    await t.client.create(Widget, aWidget('w'))
    const outcomes = await Promise.all(Array.from({ length: 5 }, () => rejection(t.client.delete(Widget, at('w')))))
    expect(outcomes.filter((outcome) => outcome === 'accepted')).toHaveLength(1)
    expect(new Set(outcomes)).toEqual(new Set(['accepted', '404 NotFound: widgets.shop.example.com "w" not found']))
  })
})

describe('a delete is rejected', () => {
  test('when the object does not meet a precondition', async () => {
    const { metadata } = await t.client.create(ConfigMap, { metadata: at('c') })
    const remove = (preconditions: object) => rejection(t.client.delete(ConfigMap, at('c'), { preconditions }))
    expect(await remove({ resourceVersion: '1' })).toBe(
      `409 Conflict: Operation cannot be fulfilled on ConfigMap "c": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (${metadata.resourceVersion}). The object might have been modified`,
    )
    expect(await remove({ uid: 'x' })).toBe(
      `409 Conflict: Operation cannot be fulfilled on ConfigMap "c": the UID in the precondition (x) does not match the UID in record (${metadata.uid}). The object might have been deleted and then recreated`,
    )
    expect(await remove({ uid: metadata.uid, resourceVersion: metadata.resourceVersion })).toBe('accepted')
  })

  test.each(['default', 'kube-system', 'kube-public'])('for namespace %s', async (name) => {
    expect(await rejection(t.client.delete(Namespace, { name }))).toBe(
      `403 Forbidden: namespaces "${name}" is forbidden: this namespace may not be deleted`,
    )
  })
})

describe('deletecollection', () => {
  const names = async () => (await t.client.list(Widget, { namespace })).items.map(({ metadata }) => metadata.name)
  beforeEach(async () => {
    for (const name of ['a', 'b', 'c']) {
      const metadata = name === 'b' ? { finalizers: ['example.com/hold'] } : {}
      await t.client.create(Widget, aWidget(name, {}, { labels: { keep: String(name === 'c') }, ...metadata }))
    }
  })

  test('deletes selected objects, and marks those with finalizers', async () => {
    await t.client.deleteCollection(Widget, { namespace, labelSelector: 'keep!=true' })
    expect(await names()).toEqual(['b', 'c'])
    expect((await t.client.get(Widget, at('b'))).metadata.deletionTimestamp).toBeDefined()
  })

  test('with a limit deletes that many objects, and returns a continue token', async () => {
    const request = { verb: 'deletecollection', group: 'shop.example.com', version: 'v1', plural: 'widgets', namespace } as const
    const deleted = (await t.client.transport.send({ ...request, options: { limit: 1 } })) as ObjectList
    expect(deleted.items.map(({ metadata }) => metadata.name)).toEqual(['a'])
    expect(deleted.metadata).toMatchObject({ continue: expect.stringMatching(/./), remainingItemCount: 2 })
    expect(await names()).toEqual(['b', 'c'])
  })

  test('as a dry run deletes nothing', async () => {
    await t.client.deleteCollection(Widget, { namespace }, { dryRun: true })
    expect(await names()).toEqual(['a', 'b', 'c'])
  })
})

test('an eviction deletes a pod', async () => {
  await t.client.create(Pod, { metadata: at('p'), spec: { containers: [{ name: 'c', image: 'i' }] } })
  const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: at('p') }
  const request = { verb: 'create', group: '', version: 'v1', plural: 'pods', ...at('p'), subresource: 'eviction', body } as const
  expect(await t.client.transport.send(request)).toMatchObject({ status: 'Success', code: 201 })
  expect(await rejection(t.client.transport.send(request))).toBe('404 NotFound: pods "p" not found')
})
