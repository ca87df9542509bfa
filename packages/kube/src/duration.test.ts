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

// The inputs, except `1.1ms`, are from the table parseDurationTests in Go's time/time_test.go.
test.each([
  ['0', '0s', 0n],
  ['5s', '5s', 5_000_000_000n],
  ['1478s', '24m38s', 1_478_000_000_000n],
  ['-5s', '-5s', -5_000_000_000n],
  ['+5s', '5s', 5_000_000_000n],
  ['5.6s', '5.6s', 5_600_000_000n],
  ['5.s', '5s', 5_000_000_000n],
  ['.5s', '500ms', 500_000_000n],
  ['100.00100s', '1m40.001s', 100_001_000_000n],
  ['10ns', '10ns', 10n],
  ['11us', '11µs', 11_000n],
  ['12µs', '12µs', 12_000n],
  ['13ms', '13ms', 13_000_000n],
  ['1.1ms', '1.1ms', 1_100_000n],
  ['3h30m', '3h30m0s', 12_600_000_000_000n],
  ['39h9m14.425s', '39h9m14.425s', 140_954_425_000_000n],
  ['-9223372036854775808ns', '-2562047h47m16.854775808s', -(2n ** 63n)],
])('%s is parsed, and formatted as %s', (text, formatted, nanoseconds) => {
  expect(parseNanoseconds(text)).toBe(nanoseconds)
  expect(formatNanoseconds(nanoseconds)).toBe(formatted)
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
