import { VirtualClock } from '@capstan/kube'
import { expect, test } from 'vitest'
import { memoryCeiling } from './memory-ceiling.ts'

test('the heap counts as full above nine tenths of its limit, and measurements expire', () => {
  const clock = new VirtualClock()
  let used = 900
  const isFull = memoryCeiling(clock, () => ({ used_heap_size: used, heap_size_limit: 1000 }))
  expect(isFull()).toBe(false)
  used = 901
  expect(isFull()).toBe(false)
  clock.step(clock.now() + 50)
  expect(isFull()).toBe(true)
})
