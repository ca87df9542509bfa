import { VirtualClock } from '@capstan/kube'
import { expect, test } from 'vitest'
import { WriteTimes } from './write-times.ts'

test.each([
  ['without writes there is no pause', [], 0],
  ['short writes cause no pause', [1, 1], 0],
  ['the pause is ten times the duration of a write', [10], 100],
  ['the average follows new durations', [10, 90], 200],
  ['a pause is at most two seconds', [2000], 2000],
])('%s', async (_, durations, pause) => {
  const clock = new VirtualClock()
  const times = new WriteTimes(clock)
  for (const duration of durations) await times.measure(async () => void clock.step(clock.now() + duration))
  expect(times.pause).toBe(pause)
})

test('the duration of a failed write counts as well', async () => {
  const clock = new VirtualClock()
  const times = new WriteTimes(clock)
  const fails = times.measure(async () => {
    clock.step(clock.now() + 10)
    throw new Error('conflict')
  })
  await expect(fails).rejects.toThrow('conflict')
  expect(times.pause).toBe(100)
})
