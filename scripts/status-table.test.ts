import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { statusTable } from './status-table.ts'

test('README.md contains the table that statusTable generates', () => {
  const page = readFileSync(join(import.meta.dirname, '..', 'README.md'), 'utf8')
  const [, table = ''] = /<!-- status[^>]*-->\n([^]*?)\n<!-- \/status -->/.exec(page) ?? []
  expect(table).toContain('| not yet |')
  expect(table).toBe(statusTable())
})
