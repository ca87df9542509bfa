import { expect, test } from 'vitest'
import { dnsLabelProblems, maskTrailingDash } from './names.ts'

// Expected values: k8s.io/apimachinery/pkg/api/validation, NameIsDNSLabel with prefix = true, v0.36.
test.each([
  ['gen-', true],
  [`${'a'.repeat(63)}-`, true],
  [`${'a'.repeat(64)}-`, false],
  ['a.-', true],
  ['A-', true],
  ['Ab-', false],
  ['-', false],
  ['', false],
])('a label may be generated from %j: %j', (prefix, isValid) => {
  expect(dnsLabelProblems(maskTrailingDash(prefix)).length === 0).toBe(isValid)
})
