import { expect, test } from 'vitest'
import { parseGoInteger } from './go-text.ts'

// Expected values: strconv.ParseInt of Go 1.26.
test.each([
  ['7', 64, 7],
  ['-7', 64, -7],
  ['+007', 64, 7],
  ['2147483647', 32, 2147483647],
  ['-2147483648', 32, -2147483648],
] as const)('parseGoInteger of %j with %i bits is %i', (text, bits, value) =>
  expect(parseGoInteger(text, 'ParseInt', bits)).toBe(value),
)

test.each([
  ['', 64, 'strconv.ParseInt: parsing "": invalid syntax'],
  ['few', 64, 'strconv.ParseInt: parsing "few": invalid syntax'],
  ['1.0', 64, 'strconv.ParseInt: parsing "1.0": invalid syntax'],
  [' 1', 64, 'strconv.ParseInt: parsing " 1": invalid syntax'],
  ['2147483648', 32, 'strconv.ParseInt: parsing "2147483648": value out of range'],
  ['9223372036854775808', 64, 'strconv.ParseInt: parsing "9223372036854775808": value out of range'],
] as const)("parseGoInteger of %j with %i bits throws Go's error", (text, bits, message) =>
  expect(() => parseGoInteger(text, 'ParseInt', bits)).toThrow(new RangeError(message)),
)

test('parseGoInteger names the given strconv function in its error', () =>
  expect(() => parseGoInteger('9223372036854775808', 'Atoi')).toThrow(
    new RangeError('strconv.Atoi: parsing "9223372036854775808": value out of range'),
  ))
