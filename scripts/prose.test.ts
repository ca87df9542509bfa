import { describe, expect, test } from 'vitest'
import { findingsIn, subjectProblem } from './prose.ts'

describe('findings', () => {
  test('finds replaced words in Markdown, but not in code', () =>
    expect(findingsIn('a.md', 'Text.\n\n```\nnobody\n```\nThe client is told, set `told`.')).toEqual([
      '6: "told" is a word that the glossary replaces',
    ]))

  test('finds table cells as long as a paragraph', () =>
    expect(findingsIn('a.md', `| a | b |\n| --- | --- |\n| x | ${'long '.repeat(100)}|`)).toEqual([
      '3: a table cell has 501 characters, at most 400 are allowed',
    ]))

  test('reads only the comments of TypeScript', () =>
    expect(findingsIn('a.ts', "/** Whoever\n * is told. */\nconst nobody = 'told' // fine\n// somebody\n")).toEqual([
      '1: "Whoever" is a word that the glossary replaces',
      '2: "told" is a word that the glossary replaces',
      '4: "somebody" is a word that the glossary replaces',
    ]))
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
