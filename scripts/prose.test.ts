import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { findingsIn, gitLines, isReplaced, subjectProblem, uncheckedWords } from './prose.ts'

describe('findingsIn', () => {
  test('finds replaced words in Markdown, but not in code', () =>
    expect(findingsIn('a.md', 'Text.\n\n```\nnobody\n```\nThe client is told, set `told`.')).toEqual([
      '6: "told" must be replaced, see docs/style/english.md',
    ]))

  test('finds table cells of more than 400 characters', () =>
    expect(findingsIn('a.md', `| a | b |\n| --- | --- |\n| x | ${'long '.repeat(100)}|`)).toEqual([
      '3: a table cell has 501 characters, at most 400 are allowed',
    ]))

  test('finds "plane", except after "control", which may be on the previous line', () =>
    expect(findingsIn('a.ts', '/**\n * A control\n * plane of a plane\n */')).toEqual([
      '3: "plane" must be replaced, see docs/style/english.md',
    ]))

  test('finds terms of two words across a line break, but not "first round" in "first round trip"', () =>
    expect(findingsIn('a.ts', '/**\n * no field\n * owners; the first\n * round trip\n */\n// was made\n// up\n')).toEqual([
      '2: "field owners" must be replaced, see docs/style/english.md',
      '6: "made up" must be replaced, see docs/style/english.md',
    ]))

  test('reads only the comments of TypeScript files', () =>
    expect(findingsIn('a.ts', "/** Whoever\n * is told. */\nconst nobody = 'told' // fine\n// somebody\n")).toEqual([
      '1: "Whoever" must be replaced, see docs/style/english.md',
      '2: "told" must be replaced, see docs/style/english.md',
      '4: "somebody" must be replaced, see docs/style/english.md',
    ]))
})

test.each([
  ['core: reconcile MachinePools', undefined],
  ['apiserver, kube: keep integers exact', undefined],
  ['Core: reconcile', 'must have the form'],
  ['core: Reconcile MachinePools', 'must have the form'],
  ['core: added MachinePools', 'must be imperative'],
  [`core: ${'x'.repeat(70)}`, 'has 76 characters'],
])('subjectProblem checks the subject %j', (subject, problem) => {
  if (problem === undefined) expect(subjectProblem(subject)).toBeUndefined()
  else expect(subjectProblem(subject)).toContain(problem)
})

test('every word of the glossary is checked, or listed with its standard meaning', () => {
  const page = readFileSync(new URL('../docs/style/english.md', import.meta.url), 'utf8')
  const [, table] = /^\| term \| instead of \|\n.*\n((?:\|.*\n)+)/m.exec(page)!
  const words = table!
    .trim()
    .split('\n')
    .flatMap((row) =>
      row
        .split('|')[2]!
        .replace(/\([^)]*\)/g, '')
        .split(','),
    )
    .map((word) => word.trim())
    .filter(Boolean)
  expect(words).toContain('still broken')
  expect(words.filter((word) => !isReplaced(word) && uncheckedWords[word] === undefined)).toEqual([])
})

test('gitLines throws when git fails', () => {
  expect(() => gitLines('log', 'no-such-commit..HEAD')).toThrow(/^git log no-such-commit\.\.HEAD failed: fatal: /)
})
