import { expect, test } from 'vitest'
import { durationText, formatNanoseconds, parseDuration, parseNanoseconds } from './duration.ts'

test.each([
  ['0', 0, '0s'],
  ['10s', 10_000, '10s'],
  ['1m', 60_000, '1m0s'],
  ['1h30m', 5_400_000, '1h30m0s'],
  ['1.5s', 1500, '1.5s'],
  ['100ms', 100, '100ms'],
  ['-2m3.5s', -123_500, '-2m3.5s'],
  ['1.5ms', 1.5, '1.5ms'],
  ['2us', 0.002, '2µs'],
  ['.5h', 1_800_000, '30m0s'],
])('%s is %d ms and is printed as %s', (text, milliseconds, written) => {
  expect(parseDuration(text)).toBe(milliseconds)
  expect(durationText(milliseconds)).toBe(written)
})

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
  expect(parseNanoseconds(text)).toBe(nanoseconds)
  expect(formatNanoseconds(nanoseconds)).toBe(written)
})

test.each([
  ['', 'time: invalid duration ""'],
  ['3', 'time: missing unit in duration "3"'],
  ['3d', 'time: unknown unit "d" in duration "3d"'],
  ['s', 'time: invalid duration "s"'],
  ['.s', 'time: invalid duration ".s"'],
  ['9223372036854775808ns', 'time: invalid duration "9223372036854775808ns"'],
  [`1${'0'.repeat(30)}ns`, `time: invalid duration "1${'0'.repeat(30)}ns"`],
  ['1s toString', 'time: unknown unit "s toString" in duration "1s toString"'],
])('%j is rejected with the error of Go', (text, message) => expect(() => parseDuration(text)).toThrow(message))
