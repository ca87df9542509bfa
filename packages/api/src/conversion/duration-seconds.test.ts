import { expect, test } from 'vitest'
import { durationOf, secondsOf } from './duration-seconds.ts'

test('converts durations to whole seconds, at most the largest 32-bit integer, and seconds to durations', () => {
  expect(['1.9s', '-1.9s', '10m', '1000000h'].map(secondsOf)).toEqual([1, -1, 600, 2_147_483_647])
  expect([0, 90, 3600].map(durationOf)).toEqual(['0s', '1m30s', '1h0m0s'])
})
