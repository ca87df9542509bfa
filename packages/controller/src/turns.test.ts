import { ConfigMap } from '@capstan/kube'
import { expect, test } from 'vitest'
import type { Cache } from './controller.ts'
import { inTurn } from './turns.ts'

const aCache = () => ({}) as Cache
const key = (name: string) => ({ namespace: 'default', name })

test('writes of one object run one after another, in order, even after a failed write', async () => {
  const cache = aCache()
  const log: string[] = []
  const write = (name: string, fails = false) =>
    inTurn(cache, ConfigMap, key('a'), async () => {
      log.push(`${name} begins`)
      await Promise.resolve()
      log.push(`${name} ends`)
      if (fails) throw new Error(name)
    })
  const results = await Promise.allSettled([write('first'), write('second', true), write('third')])
  expect(log).toEqual(['first begins', 'first ends', 'second begins', 'second ends', 'third begins', 'third ends'])
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
})

test('writes of other objects, with another cache or without a cache do not wait', async () => {
  const cache = aCache()
  const { promise, resolve } = Promise.withResolvers<void>()
  const blocked = inTurn(cache, ConfigMap, key('a'), () => promise)
  expect(await inTurn(cache, ConfigMap, key('b'), async () => 'b')).toBe('b')
  expect(await inTurn(aCache(), ConfigMap, key('a'), async () => 'a')).toBe('a')
  expect(await inTurn(undefined, ConfigMap, key('a'), async () => 'none')).toBe('none')
  resolve()
  await blocked
})
