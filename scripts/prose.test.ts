import { describe, expect, test } from 'vitest'
import { findingsIn, subjectProblem } from './prose.ts'

describe('findings', () => {
  test('counts replaced words in Markdown, but not in code', () =>
    expect(findingsIn('a.md', 'The client is told.\n\n```\nnobody\n```\nSet `told`.')).toEqual({ words: 1, cells: 0 }))

  test('counts table cells as long as a paragraph', () =>
    expect(findingsIn('a.md', `| a | b |\n| --- | --- |\n| x | ${'long '.repeat(100)} |`)).toEqual({ words: 0, cells: 1 }))

  test('reads only the comments of TypeScript', () =>
    expect(findingsIn('a.ts', "/** Whoever asks is told. */\nconst nobody = 'told' // fine\n// somebody\n")).toEqual({
      words: 3,
      cells: 0,
    }))
})

test.each([
  ['core: reconcile MachinePools', undefined],
  ['apiserver, kube: keep integers exact', undefined],
  ['Core: reconcile', 'must have the form'],
  ['core: Reconcile MachinePools', 'must have the form'],
  ['core: added MachinePools', 'must be imperative'],
  [`core: ${'x'.repeat(70)}`, 'has 76 characters'],
])('subject %j', (subject, problem) => {
  if (problem === undefined) expect(subjectProblem(subject)).toBeUndefined()
  else expect(subjectProblem(subject)).toContain(problem)
})
