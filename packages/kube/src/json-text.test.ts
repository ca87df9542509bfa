import fc from 'fast-check'
import { describe, expect, it, test, vi } from 'vitest'
import { exactInteger, hasLongInteger, isInt64, readJSON, writeJSON } from './json-text.ts'

const max = 2n ** 63n - 1n
const min = -(2n ** 63n)

describe('a number in a text', () => {
  test.each([
    ['0', 0],
    ['9007199254740991', 9007199254740991],
    ['-9007199254740991', -9007199254740991],
    ['9007199254740992', 9007199254740992n],
    ['-9007199254740992', -9007199254740992n],
    ['9007199254740993', 9007199254740993n],
    ['9223372036854775807', max],
    ['-9223372036854775808', min],
    ['9223372036854775808', 2 ** 63],
    ['-9223372036854775809', -(2 ** 63)],
    ['18446744073709551616', 2 ** 64],
    ['1e18', 1e18],
    ['9007199254740993.0', 9007199254740992],
    ['0.12345678901234566', 0.12345678901234566],
    ['1.5e300', 1.5e300],
  ])('%s is parsed as %s', (text, value) => {
    expect(readJSON(text)).toBe(value)
    expect(readJSON(`{"a":[1, ${text}],"b": ${text}}`)).toEqual({ a: [1, value], b: value })
  })
})

describe('a text', () => {
  test.each([
    ['{"a":9007199254740993}', true],
    ['{"a": -9007199254740993}', true],
    ['[\n\t9007199254740993\r\n]', true],
    ['[0,9007199254740993]', true],
    ['9007199254740993', true],
    ['{"a":900719925474099}', false],
    ['{"a":"9007199254740993"}', false],
    ['{"a":"x9007199254740993"}', false],
    ['{"a":0.12345678901234567}', false],
    ['{"a":123456789012345.1234567890123456}', false],
    ['', false],
  ])('%j may contain integers beyond the precision of doubles: %s', (text, expected) => {
    expect(hasLongInteger(text)).toBe(expected)
  })

  it('with a long integer is parsed exactly, independent of the position of the integer', () => {
    for (let before = 0; before < 40; before++) {
      const value = { pad: 'x'.repeat(before), exact: 9007199254740993n }
      expect(readJSON(`{"pad":"${value.pad}","exact":9007199254740993}`)).toEqual(value)
      expect(readJSON(`{"pad":"${'1'.repeat(before)}","exact":9007199254740993}`)).toMatchObject({ exact: value.exact })
    }
  })
})

const integers = fc.bigInt({ min, max }).map(exactInteger)
const values = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    integers,
    fc.double({ noNaN: true, noDefaultInfinity: true }).filter((value) => !Number.isInteger(value)),
    fc.string(),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('value')),
    fc.dictionary(fc.string(), tie('value'), { noNullPrototype: true }),
  ),
})).value

it('JSON values round-trip, with every digit of their numbers', () => {
  fc.assert(
    fc.property(values, (value) => {
      const text = writeJSON(value)
      const parsed = readJSON(text)
      expect(parsed).toStrictEqual(value)
      expect(writeJSON(parsed)).toBe(text)
    }),
  )
})

it('a 64-bit integer is parsed as a number if it is a safe integer, otherwise as a bigint', () => {
  fc.assert(
    fc.property(fc.bigInt({ min, max }), (integer) => {
      const value = exactInteger(integer)
      expect(typeof value).toBe(Number.isSafeInteger(Number(integer)) ? 'number' : 'bigint')
      expect(readJSON(String(integer))).toBe(value)
      expect(isInt64(value)).toBe(true)
    }),
  )
})

it('strings, null, and numbers (not bigints) that are fractions, NaN or beyond the safe integers are not int64', () => {
  expect([1.5, 1e18, 2 ** 53, Number.NaN, '1', null].filter(isInt64)).toEqual([])
})

it('a circular value is not written, and invalid JSON with a long integer is not parsed', () => {
  const circle: { [name: string]: unknown } = {}
  circle['self'] = circle
  expect(() => writeJSON(circle)).toThrow(TypeError)
  expect(() => readJSON('{"a":9007199254740993')).toThrow(SyntaxError)
})

it('a bigint is written with all digits in indented JSON, too', () => {
  expect(writeJSON({ a: [max] }, 2)).toBe('{\n  "a": [\n    9223372036854775807\n  ]\n}')
})

test('integers with more digits than 64 bits allow are not parsed as bigints, which would be slow', () => {
  const exact = vi.spyOn(globalThis, 'BigInt')
  try {
    expect(readJSON(`[${'9'.repeat(1000)}]`)).toEqual([Number.POSITIVE_INFINITY])
    expect(exact).not.toHaveBeenCalled()
  } finally {
    exact.mockRestore()
  }
})
