import { expect, test } from 'vitest'
import { durationText, parseDuration } from './duration.ts'

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

test.each([
  ['', 'time: invalid duration ""'],
  ['3', 'time: missing unit in duration "3"'],
  ['3d', 'time: unknown unit "d" in duration "3d"'],
  ['s', 'time: invalid duration "s"'],
  ['.s', 'time: invalid duration ".s"'],
  ['1s toString', 'time: unknown unit "s toString" in duration "1s toString"'],
])('%j is rejected with the error of Go', (text, message) => expect(() => parseDuration(text)).toThrow(message))
