import { expect, test } from 'vitest'
import { mergeModules } from './merge-modules.ts'

test('merges the imports of several modules into one sorted list without duplicates', () => {
  const one = "import { B } from '@capstan/api'\nimport { on } from '@capstan/extension'\n\n/** One. */\nconst one = on(B)\n"
  const two =
    "import assert from 'node:assert'\nimport { A, B } from '@capstan/api'\nimport { x } from './x.ts'\n\nconst two = x(A)\n"
  expect(mergeModules([one, two])).toBe(
    "import assert from 'node:assert'\nimport { A, B } from '@capstan/api'\nimport { on } from '@capstan/extension'\nimport { x } from './x.ts'\n\n/** One. */\nconst one = on(B)\n\nconst two = x(A)\n",
  )
})

test('formats a long import with one name per line', () => {
  const names = Array.from({ length: 10 }, (_, i) => `aRatherLongName${i}`)
  const merged = mergeModules([`import { ${names.join(', ')} } from 'far'\n\nexport const x = 1\n`])
  expect(merged.split('\n').slice(0, 3)).toEqual(['import {', '  aRatherLongName0,', '  aRatherLongName1,'])
})
