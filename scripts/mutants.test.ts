import { expect, test } from 'vitest'
import { changedLines, isMutated, sample, testsFor } from './mutants.ts'

test('a larger sample of the same seed begins with the smaller sample', () => {
  const all = Array.from({ length: 1000 }, (_, index) => index)
  const few = sample(all, 20, 7)
  expect(new Set(few).size).toBe(20)
  expect(sample(all, 60, 7).slice(0, 20)).toEqual(few)
  expect(sample(all, 20, 8)).not.toEqual(few)
  expect(sample([1, 2], 5, 1)).toHaveLength(2)
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

test('tests that reach a statement run in order of their distance from its file, then of their duration', () => {
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
