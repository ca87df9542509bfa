import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { expression } from './expression.ts'
import { parse } from './parse.ts'
import { CompileError } from './syntax.ts'

const problem = (source: string): string => {
  try {
    expression(source, [{ name: 'self', type: { kind: 'string' } }])
    return 'compiles'
  } catch (err) {
    expect(err).toBeInstanceOf(CompileError)
    return (err as Error).message.split('\n')[0]!.replace('ERROR: <input>:', '')
  }
}

describe('the error contains its position in', () => {
  const cases: [source: string, problem: string][] = [
    ['self.foo == 1', "1:5: type 'string' does not support field selection"],
    ['self ==\n  other', "2:3: undeclared reference to 'other' (in container '')"],
    ['self + 1', "1:6: found no matching overload for '_+_' applied to '(string, int)'"],
    ['self.startsWith(1)', "1:16: found no matching overload for 'startsWith' applied to 'string.(int)'"],
    ['nothing(self)', "1:8: undeclared reference to 'nothing' (in container '')"],
    ['self.all(x, true)', "1:1: expression of type 'string' cannot be range of a comprehension (must be list, map, or dynamic)"],
    ['[1, "a"].size() == 2', "1:5: expected type 'int' but found 'string'"],
    ['self == null', "1:6: found no matching overload for '_==_' applied to '(string, null)'"],
    ['has(self)', '1:5: invalid argument to has() macro'],
    ['self.matches("(")', '1:14: invalid matches argument'],
    ['duration("x") == duration("1s")', '1:10: invalid duration argument'],
    ['timestamp("2024-13-01T00:00:00Z") == timestamp(0)', '1:11: invalid timestamp argument'],
    ['self.`a-b` == 1', "1:6: unsupported syntax: '`'"],
    [
      'self.size(',
      "1:11: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
    ],
    [
      'self.startsWith(1,',
      "1:19: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
    ],
    ['for == 1', '1:1: reserved identifier: for'],
    ['9223372036854775808 > 1', '1:1: invalid int literal'],
    [`${'('.repeat(400)}1${')'.repeat(400)}`, '1:251: expression recursion limit exceeded: 250'],
    [`self == "${'a'.repeat(100_000)}"`, '1:1: expression code point size exceeds limit: size: 100010, limit 100000'],
  ]
  test.each(cases)('the expression %s', (source, text) => expect(problem(source)).toBe(text))
})

test('a condition of 5,000 operands compiles', () => {
  expect(problem(Array.from({ length: 5000 }, () => 'self == ""').join(' || '))).toBe('compiles')
})

describe('any text', () => {
  const words = [
    'self',
    '.',
    '?',
    '[',
    ']',
    '(',
    ')',
    '{',
    '}',
    ',',
    ':',
    '"a"',
    "'",
    '1',
    '1u',
    '.5',
    '-',
    '!',
    '&&',
    '||',
    '==',
    'in',
  ]
  const fragments = [
    'map(',
    'all(x,',
    'has(',
    '`a-b`',
    '\\',
    'b"\\377"',
    'r"""',
    '//',
    '\n',
    ' ',
    '\u{1f600}',
    '__proto__',
    'constructor',
  ]
  test('compiles, or is rejected with a CompileError', () => {
    const source = fc.oneof(
      fc.string(),
      fc.array(fc.constantFrom(...words, ...fragments), { maxLength: 40 }).map((parts) => parts.join('')),
    )
    fc.assert(
      fc.property(source, (text) => {
        problem(text)
      }),
      { numRuns: 2000, seed: 7 },
    )
  })
  test('that is long and malformed is rejected before the test times out', () => {
    for (const text of [
      '"'.repeat(50_000),
      "'''".repeat(30_000),
      `"${'\\'.repeat(90_000)}`,
      '.'.repeat(90_000),
      '`a'.repeat(40_000),
      '/'.repeat(90_000),
    ]) {
      expect(() => parse(text)).toThrow(CompileError)
    }
  })
})
