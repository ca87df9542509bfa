import {
  ConfigMap,
  customResourceDefinition,
  CustomResourceDefinition,
  minutes,
  Secret,
  seconds,
  unknownKind,
  type WatchOptions,
} from '@capstan/kube'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { memoryStore } from '../store/memory.ts'
import {
  at,
  aWidget,
  collected,
  namespace,
  quiet,
  rejection,
  type TestServer,
  testServer,
  Widget,
} from '@capstan/kubernetes-kinds/test-server'

let t: TestServer
let stop: AbortController
beforeEach(async () => {
  t = await testServer()
  stop = new AbortController()
})
afterEach(() => stop.abort())

const watch = async (options: Partial<WatchOptions> = {}) =>
  collected(await t.client.watch(Widget, { namespace, ...options, signal: stop.signal }))
const label = (name: string, labels: object) =>
  t.client.patch(Widget, at(name), { type: 'merge', body: { metadata: { labels } } })
/** Returns the newest resourceVersion of the server. */
const newest = () => String(t.server.store.revision)

describe('a watch', () => {
  test('without a resourceVersion begins with the existing objects', async () => {
    await t.client.create(Widget, aWidget('a'))
    const events = await watch()
    await t.client.create(Widget, aWidget('b'))
    await t.client.delete(Widget, at('a'))
    await quiet()
    expect(events.texts()).toEqual(['ADDED a', 'ADDED b', 'DELETED a'])
    expect(events.seen[1]?.object).toBe(await t.client.get(Widget, at('b')))
  })

  test('from a resourceVersion sends the selected changes since then', async () => {
    await t.client.create(Widget, aWidget('a'))
    const resourceVersion = newest()
    await label('a', { x: 'y' })
    await t.client.create(ConfigMap, { metadata: at('c') })
    const events = await watch({ resourceVersion })
    await t.client.create(Widget, { ...aWidget('k'), metadata: { name: 'k', namespace: 'kube-system' } })
    await t.client.delete(Widget, at('a'))
    await quiet()
    expect(events.texts()).toEqual(['MODIFIED a', 'DELETED a'])
  })

  test('sends a deleted object as last stored, at the resourceVersion of its deletion', async () => {
    await t.client.create(Widget, aWidget('a', { color: 'red' }, { finalizers: ['example.com/f'] }))
    const events = await watch({ resourceVersion: newest() })
    await t.client.delete(Widget, at('a'))
    await t.client.patch(Widget, at('a'), { type: 'merge', body: { metadata: { finalizers: null } } })
    await quiet()
    expect(events.texts()).toEqual(['MODIFIED a', 'DELETED a'])
    expect(events.seen[1]?.object).toMatchObject({
      metadata: { resourceVersion: newest(), finalizers: ['example.com/f'] },
      spec: { color: 'red' },
    })
  })

  test('with a selector sends ADDED and DELETED when objects begin and cease to match', async () => {
    await t.client.create(Widget, aWidget('a'))
    const events = await watch({ labelSelector: 'on=1', resourceVersion: newest() })
    await label('a', { off: '1' })
    await label('a', { on: '1' })
    await label('a', { more: '1' })
    await label('a', { on: '0' })
    await label('a', { off: '2' })
    await quiet()
    expect(events.texts()).toEqual(['ADDED a', 'MODIFIED a', 'DELETED a'])
    expect(events.seen[2]?.object.metadata.labels).toMatchObject({ on: '1' })
  })

  test('streams an initial list that ends with a bookmark', async () => {
    await t.client.create(Widget, aWidget('a'))
    const events = await watch({ sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan', allowWatchBookmarks: true })
    await t.client.create(Widget, aWidget('b'))
    await quiet()
    expect(events.texts()).toEqual(['ADDED a', 'BOOKMARK', 'ADDED b'])
    expect(events.seen[1]?.object).toEqual({
      kind: 'Widget',
      apiVersion: 'shop.example.com/v1',
      metadata: { resourceVersion: String(t.server.store.revision - 1), annotations: { 'k8s.io/initial-events-end': 'true' } },
    })
  })

  test('from a future resourceVersion sends only changes after it', async () => {
    const events = await watch({ resourceVersion: String(t.server.store.revision + 1) })
    await t.client.create(Widget, aWidget('a'))
    await t.client.create(Widget, aWidget('b'))
    await quiet()
    expect(events.texts()).toEqual(['ADDED b'])
  })

  test('from a resourceVersion that has left the history is Expired', async () => {
    t = await testServer({ store: memoryStore({ history: { changes: 2 } }) })
    for (const name of ['a', 'b', 'c']) await t.client.create(Widget, aWidget(name))
    const oldest = t.server.store.revision - 2
    expect(await rejection(watch({ resourceVersion: '1' }))).toBe(`410 Expired: too old resource version: 1 (${oldest})`)
  })

  test('from a resourceVersion before the resource was first served is Expired', async () => {
    const { metadata } = await t.client.create(CustomResourceDefinition, {
      ...customResourceDefinition(Widget),
      metadata: { name: 'gadgets.shop.example.com' },
      spec: { ...customResourceDefinition(Widget).spec, names: { kind: 'Gadget', plural: 'gadgets' } },
    })
    const Gadget = unknownKind({
      apiVersion: 'shop.example.com/v1',
      kind: 'Gadget',
      plural: 'gadgets',
      scope: 'Namespaced',
    })
    const from = (revision: number) => t.client.watch(Gadget, { resourceVersion: String(revision), signal: stop.signal })
    const beginning = Number(metadata.resourceVersion)
    expect(await rejection(from(beginning - 1))).toBe(`410 Expired: too old resource version: ${beginning - 1} (${beginning})`)
    await from(beginning)
  })

  test.each([
    [
      'sendInitialEvents without resourceVersionMatch',
      { sendInitialEvents: true },
      '422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan',
    ],
    [
      'resourceVersionMatch without sendInitialEvents',
      { resourceVersionMatch: 'NotOlderThan' },
      '422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
    ],
    [
      'sendInitialEvents with resourceVersionMatch Exact',
      { sendInitialEvents: true, resourceVersionMatch: 'Exact' },
      '422 Invalid: ListOptions.meta.k8s.io "" is invalid: [resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan, resourceVersionMatch: Unsupported value: "Exact": supported values: "NotOlderThan"]',
    ],
    [
      'a continue token',
      { continue: 'x' },
      '422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided',
    ],
    [
      'a resourceVersion that is not a number',
      { resourceVersion: 'abc' },
      '500 : resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax',
    ],
  ] as const)('is rejected for %s', async (_, options, text) => {
    // The types would not allow some of these options.
    expect(await rejection(watch(options as object))).toBe(text)
  })
})

describe('the timer of a watch', () => {
  test('sends a bookmark to a quiet watch when the revision has changed', async () => {
    const events = await watch({ resourceVersion: newest(), allowWatchBookmarks: true })
    t.clock.step(t.clock.now() + minutes(1))
    await quiet()
    expect(events.texts()).toEqual([])
    await t.client.create(ConfigMap, { metadata: at('c') })
    t.clock.step(t.clock.now() + minutes(1))
    await quiet()
    expect(events.seen).toEqual([
      {
        type: 'BOOKMARK',
        object: { kind: 'Widget', apiVersion: 'shop.example.com/v1', metadata: { resourceVersion: newest() } },
      },
    ])
  })

  test('sends a bookmark to a watch whose objects do not change while others of the kind do', async () => {
    const events = await watch({ resourceVersion: newest(), allowWatchBookmarks: true, labelSelector: 'on=1' })
    await t.client.create(Widget, aWidget('a'))
    await t.client.create(Widget, { ...aWidget('k'), metadata: { name: 'k', namespace: 'kube-system' } })
    await quiet()
    t.clock.step(t.clock.now() + minutes(1))
    await quiet()
    expect(events.seen.map(({ type, object }) => [type, object.metadata.resourceVersion])).toEqual([['BOOKMARK', newest()]])
    t.clock.step(t.clock.now() + minutes(1))
    await quiet()
    expect(events.seen.length).toBe(1)
  })

  test('sends no bookmark when the last event had the newest revision', async () => {
    const events = await watch({ resourceVersion: newest(), allowWatchBookmarks: true })
    await t.client.create(Widget, aWidget('a'))
    await quiet()
    t.clock.step(t.clock.now() + minutes(1))
    await quiet()
    expect(events.texts()).toEqual(['ADDED a'])
  })

  test('sends no bookmark with an older revision than an earlier event, when the reader is slow', async () => {
    const options = {
      namespace,
      resourceVersion: newest(),
      allowWatchBookmarks: true,
      labelSelector: 'on=1',
      signal: stop.signal,
    }
    const selected = (name: string) => ({ ...aWidget(name), metadata: { ...at(name), labels: { on: '1' } } })
    const reader = (await t.client.watch(Widget, options))[Symbol.asyncIterator]()
    await t.client.create(Widget, selected('a'))
    t.clock.step(t.clock.now() + minutes(1))
    await t.client.create(Widget, aWidget('b'))
    await t.client.create(Widget, selected('c'))
    const events = [await reader.next(), await reader.next(), await reader.next()].map(({ value }) => value!)
    expect(events.map(({ type }) => type)).toEqual(['ADDED', 'ADDED', 'BOOKMARK'])
    expect(events[2]!.object.metadata.resourceVersion).toBe(newest())
  })

  test('ends a watch at its timeout', async () => {
    const events = await watch({ resourceVersion: newest(), timeoutSeconds: 5 })
    t.clock.step(t.clock.now() + seconds(5))
    await quiet()
    expect(events.ended).toBe(true)
    expect(t.clock.nextDue).toBeUndefined()
  })
})

describe('a watch ends', () => {
  test('when its reader aborts, and leaves no timer', async () => {
    const events = await watch({ allowWatchBookmarks: true })
    stop.abort()
    await t.client.create(Widget, aWidget('late'))
    await quiet()
    // A watch that allows bookmarks and has no resourceVersion gets a bookmark after the initial objects.
    expect([events.ended, events.texts()]).toEqual([true, ['BOOKMARK']])
    expect(t.clock.nextDue).toBeUndefined()
  })

  test('when the server closes', async () => {
    const events = await watch()
    await t.server.close()
    await quiet()
    expect(events.ended).toBe(true)
  })

  test('when the resource is no longer served', async () => {
    const events = await watch()
    await t.client.delete(CustomResourceDefinition, { name: 'widgets.shop.example.com' })
    await quiet()
    expect(events.ended).toBe(true)
  })

  test('when its unread changes have left the history', async () => {
    const store = memoryStore({ history: { changes: 100 } })
    const { server, client } = await testServer({ store })
    const slow = await client.watch(ConfigMap, { namespace, resourceVersion: String(store.revision), signal: stop.signal })
    await client.create(ConfigMap, { metadata: at('c'), data: { n: '0' } })
    const key = { resource: 'configmaps', ...at('c') }
    for (let n = 1; n <= 100; n++) {
      const previous = store.get(key)!
      await store.commit({ key, previous, object: { ...previous, metadata: { ...previous.metadata } } })
    }
    const events = collected(slow)
    await quiet()
    expect([events.ended, events.seen.length]).toEqual([true, 0])
    await server.close()
  })
})

describe('a watch continues', () => {
  test('while another kind has more changes than the history keeps', async () => {
    const store = memoryStore({ history: { changes: 100 } })
    const { server, client } = await testServer({ store })
    await client.create(ConfigMap, { metadata: at('c'), data: { n: '0' } })
    const key = { resource: 'configmaps', ...at('c') }
    const options = { namespace, resourceVersion: String(store.revision), signal: stop.signal }
    const events = collected(await client.watch(Secret, options))
    for (let n = 1; n <= 200; n++) {
      const previous = store.get(key)!
      await store.commit({ key, previous, object: { ...previous, metadata: { ...previous.metadata } } })
    }
    await client.create(Secret, { metadata: at('s') })
    await quiet()
    expect([events.ended, events.texts()]).toEqual([false, ['ADDED s']])
    await server.close()
  })

  test('for a slow reader while the history has its unread changes, and ends for a client that does not read', async () => {
    const store = memoryStore({ history: { changes: 1000 } })
    const { server, client } = await testServer({ store })
    const options = { namespace, resourceVersion: String(store.revision), signal: stop.signal }
    const slow = (await client.watch(ConfigMap, options))[Symbol.asyncIterator]()
    const first = slow.next()
    const unread = await client.watch(ConfigMap, options)
    await client.create(ConfigMap, { metadata: at('c'), data: { n: '0' } })
    await first
    const key = { resource: 'configmaps', ...at('c') }
    for (let n = 1; n <= 5000; n++) {
      const previous = store.get(key)!
      await store.commit({ key, previous, object: { ...previous, metadata: { ...previous.metadata } } })
      // The reader stays 500 events behind.
      if (n > 500) await slow.next()
    }
    const events = collected(unread)
    await quiet()
    expect(events.ended).toBe(true)
    expect(events.seen.length).toBeLessThan(1000)
    for (let remaining = 500; remaining > 0; remaining--) expect((await slow.next()).done).toBe(false)
    await server.close()
  })
})
