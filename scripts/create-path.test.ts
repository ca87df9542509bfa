/** Tests that the path of a write is short: ARCHITECTURE.md lists the files of a create, and this test counts them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

const MaxFiles = 25
const MaxLines = 4000

test('ARCHITECTURE.md lists existing files of a create, at most 25 with 4,000 lines', () => {
  const [, table = ''] = /<!-- create-path -->([^]*)<!-- \/create-path -->/.exec(read('ARCHITECTURE.md')) ?? []
  const files = [...table.matchAll(/`([\w/-]+\.ts)`/g)].map(([, file]) => file!)
  expect(files).toContain('verbs/write.ts')
  expect(new Set(files).size).toBe(files.length)
  expect(files.length).toBeLessThanOrEqual(MaxFiles)
  const lines = files.map((file) => read(`packages/apiserver/src/${file}`).split('\n').length - 1)
  expect(lines.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(MaxLines)
})
