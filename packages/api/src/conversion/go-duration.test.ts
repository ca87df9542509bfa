import { expect, test } from 'vitest'
import { durationOf, formatDuration, parseDuration, secondsOf } from './go-duration.ts'

// Upstream: the tables of Go's time/time_test.go.
test.each([
  ['0', 0n, '0s'],
  ['5s', 5_000_000_000n, '5s'],
  ['1478s', 1_478_000_000_000n, '24m38s'],
  ['-5s', -5_000_000_000n, '-5s'],
  ['+5s', 5_000_000_000n, '5s'],
  ['5.6s', 5_600_000_000n, '5.6s'],
  ['5.s', 5_000_000_000n, '5s'],
  ['.5s', 500_000_000n, '500ms'],
  ['100.00100s', 100_001_000_000n, '1m40.001s'],
  ['10ns', 10n, '10ns'],
  ['11us', 11_000n, '11µs'],
  ['12µs', 12_000n, '12µs'],
  ['13ms', 13_000_000n, '13ms'],
  ['1.1ms', 1_100_000n, '1.1ms'],
  ['3h30m', 12_600_000_000_000n, '3h30m0s'],
  ['39h9m14.425s', 140_954_425_000_000n, '39h9m14.425s'],
  ['-9223372036854775808ns', -(2n ** 63n), '-2562047h47m16.854775808s'],
])('%s is %d ns and written as %s', (text, nanoseconds, written) => {
  expect(parseDuration(text)).toBe(nanoseconds)
  expect(formatDuration(nanoseconds)).toBe(written)
})

test.each([
  ['', 'time: invalid duration ""'],
  ['3', 'time: missing unit in duration "3"'],
  ['s', 'time: invalid duration "s"'],
  ['.s', 'time: invalid duration ".s"'],
  ['1x', 'time: unknown unit "x" in duration "1x"'],
  ['9223372036854775808ns', 'time: invalid duration "9223372036854775808ns"'],
])('rejects %j', (text, message) => {
  expect(() => parseDuration(text)).toThrow(message)
})

test('converts durations to whole seconds, at most the largest 32-bit integer, and seconds to durations', () => {
  expect(['1.9s', '-1.9s', '10m', '1000000h'].map(secondsOf)).toEqual([1, -1, 600, 2_147_483_647])
  expect([0, 90, 3600].map(durationOf)).toEqual(['0s', '1m30s', '1h0m0s'])
})
