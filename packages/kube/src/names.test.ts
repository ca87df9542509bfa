import { expect, test } from 'vitest'
import { dnsLabelProblems, maskTrailingDash, qualifiedNameProblems } from './names.ts'

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
])('a DNS label may be generated from the prefix %j: %j', (prefix, isValid) => {
  expect(dnsLabelProblems(maskTrailingDash(prefix)).length === 0).toBe(isValid)
})

// Upstream: IsQualifiedName in k8s.io/apimachinery/pkg/util/validation, v0.36.
test('the error for a qualified name with two slashes calls it a label key', () => {
  expect(qualifiedNameProblems('a/b/c')).toEqual([
    "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
  ])
})
