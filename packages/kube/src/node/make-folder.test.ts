import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { makeFolder } from './make-folder.ts'

const root = mkdtempSync(join(tmpdir(), 'capstan-make-folder-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

test('creates the folder and those above it, with the mode', async () => {
  const path = join(root, 'a/b/c')
  await makeFolder(path, 0o700)
  await makeFolder(path, 0o700)
  for (const part of ['a', 'a/b', 'a/b/c']) expect(statSync(join(root, part)).mode & 0o777, part).toBe(0o700)
})

test('concurrent creations of one folder all succeed', async () => {
  await Promise.all(Array.from({ length: 10 }, () => makeFolder(join(root, 'x/y/z'))))
  expect(existsSync(join(root, 'x/y/z'))).toBe(true)
})

test('fails when the path or a part of it is a file', async () => {
  writeFileSync(join(root, 'file'), '')
  await expect(makeFolder(join(root, 'file'))).rejects.toMatchObject({ code: 'EEXIST' })
  await expect(makeFolder(join(root, 'file/below'))).rejects.toMatchObject({ code: 'ENOTDIR' })
})

test.runIf(existsSync('/proc/self'))('fails without endless retries in a file system that allows no creation', async () => {
  await expect(makeFolder('/proc/capstan/db')).rejects.toMatchObject({ code: 'ENOENT', path: '/proc/capstan' })
})
