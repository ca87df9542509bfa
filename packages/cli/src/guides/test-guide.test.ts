import { expect, test } from 'vitest'
import { comparable } from './test-guide.ts'

test('lines that differ only in numbers, durations, alignment and the leading time are comparable', () => {
  const line = '  1.2s  demo   BeforeClusterCreate   1s   9m59s   2'
  for (const other of ['demo BeforeClusterCreate 0s 10m 2', '  10.0s  demo BeforeClusterCreate 2s 9m58s 13'])
    expect(comparable(other)).toBe(comparable(line))
  expect(comparable('demo BeforeClusterDelete 1s 9m59s 2')).not.toBe(comparable(line))
})

test('a summary is compared with its numbers', () => {
  expect(comparable('12 pass, 1 fail')).toBe('12 pass, 1 fail')
})
