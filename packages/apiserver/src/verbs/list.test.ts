import { ConfigMap, type ListOptions, Namespace, Secret, StatusError } from '@capstan/kube'
import { beforeEach, describe, expect, test } from 'vitest'
import { memoryStore } from '../store/memory.ts'
import {
  at,
  aWidget,
  namespace,
  quiet,
  rejection,
  type TestServer,
  testServer,
  Widget,
} from '@capstan/kubernetes-kinds/test-server'

let t: TestServer
beforeEach(async () => {
  t = await testServer()
  for (const name of ['a', 'b', 'c', 'd', 'e']) {
    await t.client.create(
      Widget,
      aWidget(name, { replicas: name === 'a' ? 0 : 1 }, { labels: { name, vowel: String('ae'.includes(name)) } }),
    )
  }
})
const list = (options: ListOptions = {}) => t.client.list(Widget, { namespace, ...options })
const names = async (options: ListOptions = {}) => (await list(options)).items.map(({ metadata }) => metadata.name)

describe('a list', () => {
  test('contains the stored objects themselves, and the revision of the store', async () => {
    const listed = await list()
    expect(listed).toMatchObject({ apiVersion: 'shop.example.com/v1', kind: 'WidgetList' })
    expect(listed.metadata.resourceVersion).toBe(String(t.server.store.revision))
    expect(listed.items[0]).toBe(await t.client.get(Widget, at('a')))
  })

  test('of all namespaces is sorted by namespace, then name', async () => {
    await t.client.create(Namespace, { metadata: { name: 'another' } })
    await t.client.create(Widget, { ...aWidget('z'), metadata: { name: 'z', namespace: 'another' } })
    expect((await t.client.list(Widget)).items.map(({ metadata }) => metadata.name)).toEqual(['z', 'a', 'b', 'c', 'd', 'e'])
  })

  test('of a namespace that does not exist is empty', async () => {
    expect(await names({ namespace: 'nowhere' })).toEqual([])
  })

  test.each([
    [{ labelSelector: 'vowel=true' }, ['a', 'e']],
    [{ labelSelector: 'name in (b,c),vowel!=true' }, ['b', 'c']],
    [{ labelSelector: '!name' }, []],
    [{ fieldSelector: 'metadata.name=c' }, ['c']],
    [{ fieldSelector: 'metadata.name!=c,metadata.namespace=default', labelSelector: 'vowel=false' }, ['b', 'd']],
  ])('with %j contains %j', async (options, expected) => {
    expect(await names(options)).toEqual(expected)
  })

  test('of Secrets can select by type', async () => {
    for (const type of ['Opaque', 'cluster.x-k8s.io/secret']) {
      await t.client.create(Secret, { metadata: { namespace, generateName: 's-' }, type })
    }
    const listed = await t.client.list(Secret, { fieldSelector: 'type=cluster.x-k8s.io/secret' })
    expect(listed.items).toHaveLength(1)
  })

  test.each([
    [
      'a field selector of an unsupported field',
      { fieldSelector: 'spec.replicas=1' },
      '400 BadRequest: field label not supported: spec.replicas',
    ],
    ['an invalid selector', { labelSelector: '=x' }, "400 BadRequest: found '=', expected: !, identifier, or 'end of string'"],
    [
      'resourceVersionMatch without a resourceVersion',
      { resourceVersionMatch: 'Exact' },
      '422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided',
    ],
    [
      'resourceVersionMatch Exact with resourceVersion 0',
      { resourceVersion: '0', resourceVersionMatch: 'Exact' },
      '422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
    ],
    [
      'resourceVersionMatch with a continue token',
      { resourceVersion: '5', resourceVersionMatch: 'Exact', continue: 'x' },
      '422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided',
    ],
    [
      'a resourceVersion that is not a number',
      { resourceVersion: 'abc' },
      '400 BadRequest: invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax',
    ],
    [
      'a resourceVersion with a continue token',
      { resourceVersion: '5', continue: Buffer.from('{"v":"meta.k8s.io/v1","rv":1,"start":"a"}').toString('base64url') },
      '400 BadRequest: specifying resource version is not allowed when using continue',
    ],
  ] as const)('is rejected for %s', async (_, options, text) => {
    expect(await rejection(list(options))).toBe(text)
  })

  test('of a built-in kind by an unsupported field is rejected', async () => {
    expect(await rejection(t.client.list(ConfigMap, { fieldSelector: 'spec.foo=1' }))).toBe(
      '400 BadRequest: "spec.foo" is not a known field selector: only "metadata.name", "metadata.namespace"',
    )
  })
})

describe('pages', () => {
  test('show one snapshot, independent of writes between the requests', async () => {
    const first = await list({ limit: 2 })
    expect(first.metadata).toMatchObject({ remainingItemCount: 3 })
    await t.client.delete(Widget, at('c'))
    await t.client.create(Widget, aWidget('bb'))
    const second = await list({ limit: 2, continue: first.metadata.continue! })
    const third = await list({ limit: 2, continue: second.metadata.continue! })
    expect([first, second, third].map(({ items }) => items.map(({ metadata }) => metadata.name).join())).toEqual([
      'a,b',
      'c,d',
      'e',
    ])
    expect(new Set([first, second, third].map(({ metadata }) => metadata.resourceVersion)).size).toBe(1)
    expect(third.metadata).toEqual({ continue: '', resourceVersion: first.metadata.resourceVersion })
  })

  test('do not count the remaining items when there is a selector', async () => {
    const { metadata } = await list({ limit: 1, labelSelector: 'vowel=false' })
    expect(metadata.continue).toBeTruthy()
    expect(metadata.remainingItemCount).toBeUndefined()
  })

  test('are not used with resourceVersion 0', async () => {
    expect(await names({ limit: 2, resourceVersion: '0' })).toHaveLength(5)
  })

  test('whose snapshot has expired are rejected with a token for the newest state', async () => {
    t = await testServer({ store: memoryStore({ history: { changes: 3 } }) })
    for (const name of ['a', 'b', 'c']) await t.client.create(Widget, aWidget(name))
    const first = await list({ limit: 1 })
    for (const name of ['f', 'g', 'h', 'i']) await t.client.create(Widget, aWidget(name))
    const error = await list({ limit: 1, continue: first.metadata.continue! }).catch((err: StatusError) => err)
    expect(error).toMatchObject({ reason: 'Expired', code: 410 })
    const next = (error as StatusError).status.metadata.continue as string
    expect(await names({ continue: next })).toEqual(['b', 'c', 'f', 'g', 'h', 'i'])
  })
})

describe('a list at an older resourceVersion', () => {
  test('is returned with resourceVersionMatch Exact, while NotOlderThan returns the current objects', async () => {
    const { resourceVersion } = (await list()).metadata
    await t.client.delete(Widget, at('a'))
    await t.client.patch(Widget, at('b'), { type: 'merge', body: { spec: { replicas: 9 } } })
    const past = await list({ resourceVersion, resourceVersionMatch: 'Exact' })
    expect(past.items.map(({ spec }) => spec.replicas)).toEqual([0, 1, 1, 1, 1])
    expect(await names({ resourceVersion, resourceVersionMatch: 'NotOlderThan' })).toEqual(['b', 'c', 'd', 'e'])
  })

  test('is Expired when the resourceVersion has left the history', async () => {
    t = await testServer({ store: memoryStore({ history: { changes: 2 } }) })
    expect(await rejection(list({ resourceVersion: '1', resourceVersionMatch: 'Exact' }))).toBe(
      '410 Expired: The resourceVersion for the provided list is too old.',
    )
  })
})

describe('a list at a future resourceVersion', () => {
  const future = () => String(t.server.store.revision + 1)

  test('is returned once the resourceVersion is reached', async () => {
    const waiting = names({ resourceVersion: future() })
    await quiet()
    await t.client.create(Widget, aWidget('f'))
    expect(await waiting).toContain('f')
  })

  test('is returned once a write to another resource reaches the resourceVersion', async () => {
    const waiting = names({ resourceVersion: future() })
    await quiet()
    await t.client.create(ConfigMap, { metadata: at('other') })
    expect(await waiting).toEqual(['a', 'b', 'c', 'd', 'e'])
  })

  test('is a Timeout when the resourceVersion is not reached within three seconds', async () => {
    const resourceVersion = future()
    const waiting = rejection(list({ resourceVersion }))
    await quiet()
    t.clock.step(t.clock.now() + 3000)
    expect(await waiting).toBe(
      `504 Timeout: Timeout: Too large resource version: ${resourceVersion}, current: ${t.server.store.revision}`,
    )
  })
})
