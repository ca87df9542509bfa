import { expect, test } from 'vitest'
import { commonIndex, countIndexes } from './indexes.ts'

test('countIndexes returns the number of indexes in a text', () => {
  expect(countIndexes('', 10)).toBe(0)
  expect(countIndexes('0,2-4,9', 10)).toBe(5)
})

test.each([
  ['10', 'too large index: "10"'],
  ['a', 'cannot convert string to integer for index: "a"'],
  ['1,', 'cannot convert string to integer for index: ""'],
  ['3-3', 'non-increasing order, previous: 3, current: 3'],
  ['4,2', 'non-increasing order, previous: 4, current: 2'],
  ['1-2-3', `the fragment "1-2-3" violates the requirement that an index interval can have at most two parts separated by '-'`],
])('the indexes %j are rejected', (text, error) => {
  expect(countIndexes(text, 10)).toEqual({ error })
})

test('commonIndex returns an index that both texts contain, or undefined if there is none', () => {
  expect(commonIndex('0,3-5', '1-2,5-7', 10)).toBe(5)
  expect(commonIndex('0,3-5', '1-2,6', 10)).toBeUndefined()
})
