import { expect, test } from 'vitest'
import { fnv32a, labelValue } from './label-value.ts'

test.each([
  ['a valid label value is unchanged', 'machine-set-1', 'machine-set-1'],
  ['an empty name is unchanged', '', ''],
  ['a name of 63 characters is unchanged', 'a'.repeat(63), 'a'.repeat(63)],
  ['a name of 64 characters is hashed', 'a'.repeat(64), 'hash_2W8PhQ_z'],
  ['an invalid label value is hashed', 'name.', 'hash_GeXB2A_z'],
])('%s', (_, name, value) => {
  expect(labelValue(name)).toBe(value)
})

test.each([
  ['', 0x811c9dc5],
  ['a', 0xe40c292c],
  ['foobar', 0xbf9cf968],
])('fnv32a returns the FNV-1a hash of %j', (text, hash) => {
  expect(fnv32a(text)).toBe(hash)
})
