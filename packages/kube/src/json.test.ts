import { expect, test } from 'vitest'
import { equal } from './json.ts'

test.each([
  ['{"__proto__":{}}', '{"x":1}', false],
  ['{"__proto__":{}}', '{"__proto__":{}}', true],
  ['{"__proto__":{"x":1}}', '{"__proto__":{"x":2}}', false],
  ['{"toString":null}', '{"x":null}', false],
])('equal compares own members only: %s and %s', (left, right, expected) => {
  expect(equal(JSON.parse(left), JSON.parse(right))).toBe(expected)
  expect(equal(JSON.parse(right), JSON.parse(left))).toBe(expected)
})
