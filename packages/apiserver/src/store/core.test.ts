import { expect, test } from 'vitest'
import { CoreStore } from './core.ts'
import { at, put } from './store.suite.ts'

const empty = { revision: 0, objects: [], changes: [] }

test('writes that arrive while one is under way share the next one', async () => {
  const groups: string[][] = []
  const waiting: (() => void)[] = []
  const store = new CoreStore(
    {
      append(changes) {
        groups.push(changes.map(({ key }) => key.name))
        return new Promise((resolve) => waiting.push(resolve))
      },
      close: () => Promise.resolve(),
    },
    empty,
  )
  const first = put(store, at('a'))
  const others = [put(store, at('b')), put(store, at('c'))]
  expect(store.get(at('a'))).toBeUndefined()
  waiting.shift()!()
  await first
  expect([store.revision, store.get(at('a'))?.metadata.name, store.get(at('b'))]).toEqual([1, 'a', undefined])
  waiting.shift()!()
  await Promise.all(others)
  expect(groups).toEqual([['a'], ['b', 'c']])
})

test('a store whose log fails shows nothing of the failed write, and takes no more', async () => {
  let broken = false
  const append = () => (broken ? Promise.reject(new Error('disk full')) : Promise.resolve())
  const store = new CoreStore({ append, close: () => Promise.resolve() }, empty)
  await put(store, at('a'))
  broken = true
  const results = await Promise.allSettled([put(store, at('b')), put(store, at('c'))])
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect((results[0] as PromiseRejectedResult).reason).toMatchObject({
    message: 'the write could not be made durable; the store has stopped',
    cause: { message: 'disk full' },
  })
  expect([store.revision, store.count('configmaps')]).toEqual([1, 1])
  broken = false
  await expect(put(store, at('d'))).rejects.toThrow('the store is closed')
})
