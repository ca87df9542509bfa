import { mkdtempSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { writeGroup } from './write-group.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'capstan-group-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const at = (name: string) => join(folder, name)

test('all files are written, readable by their owner only', async () => {
  writeFileSync(at('a.key'), 'old', { mode: 0o644 })
  await writeGroup({ [at('a.key')]: 'k', [at('a.crt')]: 'c' })
  expect(readdirSync(folder).sort()).toEqual(['a.crt', 'a.key'])
  expect(['a.key', 'a.crt'].map((name) => readFileSync(at(name), 'utf8'))).toEqual(['k', 'c'])
  expect(['a.key', 'a.crt'].map((name) => statSync(at(name)).mode & 0o777)).toEqual([0o600, 0o600])
})

test('no file changes when one of them cannot be written', async () => {
  writeFileSync(at('a.key'), 'old')
  mkdirSync(at('a.crt.new'))
  await expect(writeGroup({ [at('a.key')]: 'k', [at('a.crt')]: 'c' })).rejects.toThrow('EISDIR')
  expect(readFileSync(at('a.key'), 'utf8')).toBe('old')
})
