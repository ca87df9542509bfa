import { expect, test } from 'vitest'
import { CoreStore } from './core.ts'
import { at, put } from './store.suite.ts'

const empty = { revision: 0, objects: [], changes: [] }

test('commits that arrive during a write to the log share the next write', async () => {
  const groups: string[][] = []
  const waiting: (() => void)[] = []
  const store = new CoreStore(
    {
      append(changes) {
        groups.push(changes.map(({ key }) => key.name))
        return new Promise((resolve) => waiting.push(resolve))
      },
      failure: undefined,
      close: () => Promise.resolve(),
    },
    empty,
  )
  const first = put(store, at('a'))
  await new Promise(setImmediate)
  const others = [put(store, at('b')), put(store, at('c'))]
  expect(store.get(at('a'))).toBeUndefined()
  waiting.shift()!()
  await first
  expect([store.revision, store.get(at('a'))?.metadata.name, store.get(at('b'))]).toEqual([1, 'a', undefined])
  waiting.shift()!()
  await Promise.all(others)
  expect(groups).toEqual([['a'], ['b', 'c']])
})

test('a store whose log fails hides the failed write, rejects writes until the log recovers, and reuses the revision', async () => {
  let failing = false
  let failure: Error | undefined
  const log = {
    append() {
      if (!failing) return Promise.resolve()
      failure = new Error('ENOSPC: no space left on device, write')
      return Promise.reject(failure)
    },
    get failure() {
      return failure
    },
    close: () => Promise.resolve(),
  }
  const store = new CoreStore(log, empty)
  await put(store, at('a'))
  failing = true
  const [first] = await Promise.allSettled([put(store, at('b'))])
  const [second] = await Promise.allSettled([put(store, at('c'))])
  expect(first).toMatchObject({
    reason: {
      code: 500,
      message: 'Internal error occurred: the write could not be made durable: ENOSPC: no space left on device, write',
    },
  })
  expect(second).toMatchObject({
    reason: {
      code: 503,
      reason: 'ServiceUnavailable',
      message: 'the store takes no writes: ENOSPC: no space left on device, write',
      details: { retryAfterSeconds: 1 },
    },
  })
  expect([store.revision, store.count('configmaps'), store.failure]).toEqual([1, 1, failure])
  failing = false
  failure = undefined
  expect((await put(store, at('e'))).revision).toBe(2)
})
