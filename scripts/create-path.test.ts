/** Tests that the path of a write is short: ARCHITECTURE.md lists the files of a create, and this test counts files and lines. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

const MaxFiles = 25
const MaxLines = 4000

/** Returns the files in the table of ARCHITECTURE.md between the comments `<!-- mark -->` and `<!-- /mark -->`. */
function filesIn(mark: string): string[] {
  const [, table = ''] = new RegExp(`<!-- ${mark} -->([^]*)<!-- /${mark} -->`).exec(read('ARCHITECTURE.md')) ?? []
  return [...table.matchAll(/`([\w/-]+\.ts)`/g)].map(([, file]) => file!)
}
const linesOf = (file: string): number => read(`packages/apiserver/src/${file}`).split('\n').length - 1

test('ARCHITECTURE.md lists existing files of a create: at most 25 files, with at most 4,000 lines together', () => {
  const files = filesIn('create-path')
  expect(files).toContain('verbs/write.ts')
  expect(new Set(files).size).toBe(files.length)
  expect(files.length).toBeLessThanOrEqual(MaxFiles)
  expect(files.map(linesOf).reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(MaxLines)
})

test('ARCHITECTURE.md lists further files of a create: they exist, and no file is listed twice', () => {
  const files = filesIn('create-path-also')
  for (const file of files) expect(linesOf(file), file).toBeGreaterThan(0)
  expect(new Set([...files, ...filesIn('create-path')]).size).toBe(files.length + filesIn('create-path').length)
})
