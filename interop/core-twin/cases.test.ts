import { twinCases } from '@capstan/conformance'
import { expect, test } from 'vitest'
import { cases } from './cases/index.ts'

test.each(Object.entries(twinCases))('the cases of core-twin that twinCases lists for the rule %s exist', (_, names) => {
  expect(names.filter((name) => !(name in cases))).toEqual([])
})
