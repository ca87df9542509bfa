import { expect, test } from 'vitest'
import { changedLines, isMutated, sample, testsFor } from './mutants.ts'

const numbers = Array.from({ length: 1000 }, (_, index) => index)

test('a sample has the requested number of different elements, or all elements if there are fewer', () => {
  expect(new Set(sample(numbers, 20, 7)).size).toBe(20)
  expect(sample([1, 2], 5, 1).toSorted((a, b) => a - b)).toEqual([1, 2])
})

test('a larger sample of the same seed begins with the smaller sample, and another seed selects another sample', () => {
  const few = sample(numbers, 20, 7)
  expect(sample(numbers, 60, 7).slice(0, 20)).toEqual(few)
  expect(sample(numbers, 20, 8)).not.toEqual(few)
})

test.each([
  ['packages/apiserver/src/verbs/create.ts', true],
  ['packages/core/src/machine/delete.ts', true],
  ['packages/kubernetes-kinds/src/auth/rbac.ts', true],
  ['packages/kubernetes-kinds/src/admission/plugins.ts', true],
  ['packages/kubernetes-kinds/src/kinds/addresses.ts', false],
  ['packages/core/src/machine/status.test.ts', false],
  ['packages/apiserver/src/store/store.suite.ts', false],
  ['packages/apiserver/src/store/simulated-disk.ts', false],
  ['packages/apiserver/src/http/handler.ts', false],
  ['packages/core/src/machine/README.md', false],
])('%s is mutated: %s', (file, expected) => expect(isMutated(file)).toBe(expected))

test('testsFor returns the test files that reach a statement, in order of their distance from its file, then of their duration', () => {
  const aTest = (test: string, seconds: number, ...reached: number[]) => ({ test, seconds, reached })
  const tests = [
    aTest('packages/testing/src/far.test.ts', 1, 15),
    aTest('packages/core/src/machine/slow.test.ts', 9, 15, 16),
    aTest('packages/core/src/machine/quick.test.ts', 1, 15),
    aTest('packages/core/src/cluster/near.test.ts', 1, 15),
    aTest('packages/core/src/machine/other.test.ts', 1, 5),
  ]
  const file = 'packages/core/src/machine/delete.ts'
  expect(testsFor({ file, statement: 5 }, { firstOf: { [file]: 10 }, tests })).toEqual([
    'packages/core/src/machine/quick.test.ts',
    'packages/core/src/machine/slow.test.ts',
    'packages/core/src/cluster/near.test.ts',
    'packages/testing/src/far.test.ts',
  ])
  expect(testsFor({ file, statement: 7 }, { firstOf: { [file]: 10 }, tests })).toEqual([])
})

test('changedLines finds the changed lines in a diff without context', () => {
  const diff = '--- a/x.ts\n+++ b/x.ts\n@@ -1,2 +3 @@\n+a\n@@ -9 +10,2 @@\n+b\n+c\n--- a/y.ts\n+++ b/y.ts\n@@ -4,2 +3,0 @@\n-gone'
  expect(changedLines(diff)).toEqual(
    new Map([
      ['x.ts', new Set([3, 10, 11])],
      ['y.ts', new Set()],
    ]),
  )
})
