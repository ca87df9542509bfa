import { twinCases } from '@capstan/conformance'
import { expect, test } from 'vitest'
import { cases } from './cases/index.ts'

test.each(Object.entries(twinCases))('the cases that compare %s with upstream exist', (_, names) => {
  expect(names.filter((name) => !(name in cases))).toEqual([])
})
