/** Tests that every store must pass. Run by `memory.test.ts`, `durable.test.ts` and `journal.test.ts`. */
import { type Clock, hours, type KubeObject, minutes } from '@capstan/kube'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { StoreOptions } from './core.ts'
import { type Change, type Store, StoreConflict, type StoreKey } from './store.ts'

export const at = (name: string, namespace = 'default', resource = 'configmaps'): StoreKey => ({ resource, namespace, name })

const object = (name: string, data: Record<string, string> = {}): KubeObject =>
  ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' }, data }) as unknown as KubeObject

/** Writes an object, and replaces the stored one if it exists. */
export const put = (store: Store, key: StoreKey, data?: Record<string, string>): Promise<Change> =>
  store.commit({ key, previous: store.get(key), object: object(key.name, data) })

const remove = (store: Store, key: StoreKey): Promise<Change> =>
  store.commit({ key, previous: store.get(key), object: undefined })

const names = (objects: readonly KubeObject[] | undefined) => objects?.map((o) => o.metadata.name)

export function storeSuite(open: (options?: StoreOptions) => Promise<Store>): void {
  let store: Store
  beforeEach(async () => {
    store = await open()
  })
  afterEach(() => store.close())

  describe('commits', () => {
    test('each gets the next revision, which is stored in the frozen object', async () => {
      const first = await put(store, at('a'))
      const second = await put(store, at('b'))
      expect([first.revision, second.revision, store.revision]).toEqual([1, 2, 2])
      expect(store.get(at('b'))).toBe(second.object)
      expect(second.object?.metadata.resourceVersion).toBe('2')
      expect(Object.isFrozen(second.object?.metadata)).toBe(true)
    })

    test('one of two concurrent writers wins, the other gets a conflict', async () => {
      const { object: previous } = await put(store, at('a'))
      const results = await Promise.allSettled([
        store.commit({ key: at('a'), previous, object: object('a', { by: 'first' }) }),
        store.commit({ key: at('a'), previous, object: object('a', { by: 'second' }) }),
      ])
      expect(results.map((r) => r.status)).toEqual(['fulfilled', 'rejected'])
      expect((results[1] as PromiseRejectedResult).reason).toBeInstanceOf(StoreConflict)
      expect(store.get(at('a'))).toMatchObject({ data: { by: 'first' } })
      expect(store.revision).toBe(2)
    })

    test.each([
      ['the creation of an object that exists', undefined, 'a'],
      ['the change of an object that does not exist', object('b'), 'b'],
      ['the change of a stale copy of an object', object('a'), 'a'],
    ] as const)('%s is a conflict', async (_, previous, name) => {
      await put(store, at('a'))
      await expect(store.commit({ key: at(name), previous, object: object(name) })).rejects.toBeInstanceOf(StoreConflict)
      expect(store.revision).toBe(1)
      expect((await put(store, at('c'))).revision).toBe(2)
    })

    test('a hundred concurrent creations are all stored, and subscribers receive them in the order of revisions', async () => {
      const revisions: number[] = []
      store.subscribe('configmaps', (change) => revisions.push(change.revision))
      const created = await Promise.all(Array.from({ length: 100 }, (_, i) => put(store, at(`o${i}`))))
      expect(new Set(created.map((c) => c.revision)).size).toBe(100)
      expect(revisions).toEqual(Array.from({ length: 100 }, (_, i) => i + 1))
      expect(store.count('configmaps')).toBe(100)
    })

    test('writes are rejected after close', async () => {
      await store.close()
      await expect(put(store, at('late'))).rejects.toThrow('closed')
    })
  })

  describe('reading', () => {
    test('lists are sorted by namespace/name, and contain the objects of one resource, in one namespace or in all', async () => {
      for (const key of [at('b', 'n2'), at('c', 'n1'), at('a', 'n2'), at('z', 'n'), at('x', 'n1', 'secrets')])
        await put(store, key)
      await remove(store, at('c', 'n1'))
      await put(store, at('d', 'n1'))
      expect(names(store.list('configmaps'))).toEqual(['z', 'd', 'a', 'b'])
      expect(names(store.list('configmaps', 'n2'))).toEqual(['a', 'b'])
      expect(names(store.list('configmaps', 'n3'))).toEqual([])
      expect(names(store.list('pods'))).toEqual([])
      expect([store.count('configmaps'), store.count('secrets'), store.count('pods')]).toEqual([4, 1, 0])
    })

    test('a list that was read does not change with later writes', async () => {
      await put(store, at('a'))
      const list = store.list('configmaps')
      await remove(store, at('a'))
      expect(names(list)).toEqual(['a'])
    })

    test('a list of an older revision shows the objects of that revision', async () => {
      await put(store, at('kept'))
      await put(store, at('changed'), { v: '1' })
      await put(store, at('deleted'))
      const { revision } = store
      await put(store, at('changed'), { v: '2' })
      await remove(store, at('deleted'))
      await put(store, at('added'))
      const oldList = store.listAt(revision, 'configmaps')
      expect(names(oldList)).toEqual(['changed', 'deleted', 'kept'])
      expect(oldList?.[0]).toMatchObject({ data: { v: '1' } })
      expect(names(store.listAt(store.revision, 'configmaps', 'default'))).toEqual(['added', 'changed', 'kept'])
    })
  })

  describe('changes', () => {
    test('are sent to subscribers of their resource with the previous and the current object, and are returned by `since`', async () => {
      const changes: Change[] = []
      const stop = store.subscribe('configmaps', (change) => changes.push(change))
      await put(store, at('a'), { v: '1' })
      await put(store, at('a'), { v: '2' })
      await put(store, at('s', 'default', 'secrets'))
      await remove(store, at('a'))
      stop()
      await put(store, at('unseen'))
      const received = changes.map(({ revision, previous, object: current }) => [revision, dataOf(previous), dataOf(current)])
      expect(received).toEqual([
        [1, undefined, { v: '1' }],
        [2, { v: '1' }, { v: '2' }],
        [4, { v: '2' }, undefined],
      ])
      expect(store.since(1, 'configmaps')).toMatchObject({
        kind: 'changes',
        changes: [{ revision: 2 }, { revision: 4 }, { revision: 5 }],
      })
      expect(store.since(99, 'configmaps')).toEqual({ kind: 'changes', changes: [] })
    })

    test('a write by a listener does not change the order for other listeners', async () => {
      const received: string[] = []
      const writes: Promise<unknown>[] = []
      store.subscribe('configmaps', (change) => {
        if (change.key.name === 'cause') writes.push(put(store, at('effect')))
      })
      store.subscribe('configmaps', (change) => received.push(change.key.name))
      await put(store, at('cause'))
      await Promise.all(writes)
      expect(received).toEqual(['cause', 'effect'])
    })

    test.each([
      ['their number exceeds the limit', { changes: 3, size: 1e9 }],
      ['their size exceeds the limit', { changes: 1e9, size: 1000 }],
    ])('are removed, oldest first, when %s', async (_, history) => {
      const limited = await open({ history })
      for (let i = 0; i < 10; i++) await put(limited, at('a'), { v: String(i) })
      const received = limited.since(1, 'configmaps')
      expect(received.kind).toBe('expired')
      const oldest = received.kind === 'expired' ? received.oldest : 0
      expect(oldest).toBeGreaterThan(5)
      expect(limited.since(oldest - 1, 'configmaps')).toMatchObject({ kind: 'changes' })
      expect(limited.since(oldest - 1, 'pods')).toEqual({ kind: 'changes', changes: [] })
      expect(limited.listAt(oldest - 2, 'configmaps')).toBeUndefined()
      expect(limited.listAt(oldest, 'configmaps')).toHaveLength(1)
      await limited.close()
    })

    test('are removed after their maximum age, also when the clock is set back or forward', async () => {
      const clock = settableClock()
      const aged = await open({ history: { age: minutes(5) }, clock })
      const knows = (revision: number) => aged.since(revision, 'configmaps').kind === 'changes'
      await put(aged, at('a'))
      clock.time += minutes(4)
      await put(aged, at('b'))
      expect([knows(0), knows(1)]).toEqual([true, true])
      clock.time -= hours(24)
      await put(aged, at('c'))
      expect([knows(0), knows(1), aged.revision, aged.get(at('c'))?.metadata.resourceVersion]).toEqual([true, true, 3, '3'])
      clock.time += minutes(2)
      expect([knows(0), knows(1), knows(2)]).toEqual([false, true, true])
      expect(aged.listAt(0, 'configmaps')).toBeUndefined()
      clock.time += hours(48)
      expect([knows(2), knows(3)]).toEqual([false, true])
      expect(aged.since(2, 'configmaps')).toEqual({ kind: 'expired', oldest: 4 })
      expect(names(aged.list('configmaps'))).toEqual(['a', 'b', 'c'])
      expect((await put(aged, at('d'))).revision).toBe(4)
      await aged.close()
    })
  })
}

/** A clock whose time tests set freely. It never calls scheduled functions. */
export const settableClock = (): Clock & { time: number } => ({
  time: Date.UTC(2026, 0, 1),
  now() {
    return this.time
  },
  elapsed() {
    return this.time
  },
  schedule: () => ({ cancel() {} }),
})

const dataOf = (object: KubeObject | undefined) => (object as unknown as { data?: unknown } | undefined)?.data
