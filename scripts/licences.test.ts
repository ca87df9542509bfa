import { expect, test } from 'vitest'
import { licenceProblems } from './licences.ts'

test.each([
  ['MIT', false, true],
  ['(MIT OR GPL-3.0-only)', false, true],
  ['MIT AND ISC', false, true],
  ['MIT AND GPL-3.0-only', false, false],
  ['(MIT OR GPL-3.0-only) AND (ISC OR GPL-3.0-only)', false, true],
  ['(MIT OR GPL-3.0-only) AND (GPL-3.0-only OR GPL-2.0-only)', false, false],
  ['(MIT AND GPL-3.0-only) OR (ISC AND GPL-3.0-only)', false, false],
  ['MIT OR GPL-3.0-only AND GPL-2.0-only', false, true],
  ['(GPL-3.0-only OR (MIT AND (ISC)))', false, true],
  ['GPL-3.0-only', true, false],
  ['MPL-2.0', true, true],
  ['MPL-2.0', false, false],
  [undefined, false, false],
] as const)('a package with licence %s and `dev: %s` is allowed: %s', (license, dev, isAllowed) => {
  const problems = licenceProblems({ 'node_modules/x': { ...(license === undefined ? {} : { license }), dev } })
  expect(problems).toEqual(isAllowed ? [] : [expect.stringMatching(/^node_modules\/x: licence /)])
})

test('packages of the workspace are not checked', () => {
  expect(licenceProblems({ '': {}, 'packages/kube': {}, 'node_modules/@capstan/kube': { link: true } })).toEqual([])
})
