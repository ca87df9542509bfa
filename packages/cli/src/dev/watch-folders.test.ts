import { once } from 'node:events'
import { type FSWatcher, mkdtempSync, mkdirSync, rmSync, watch, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type FolderWatch, watchFolders } from './watch-folders.ts'

let root: string
let rootWatcher: FSWatcher
let folders: FolderWatch
/** Reported paths of changed files and created folders. After each report `file()` is added again, as after a reload of the extension. */
let changes: string[]

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'capstan-watch-'))
  mkdirSync(join(root, 'source'))
  rootWatcher = watch(root)
  changes = []
  folders = watchFolders((path) => {
    changes.push(path)
    folders.add([file()])
  })
  folders.add([file()])
})
afterEach(() => {
  rootWatcher.close()
  folders.close()
  rmSync(root, { recursive: true })
})

const folder = () => join(root, 'source')
const file = () => join(folder(), 'extension.ts')

/** Waits until the path is reported, and forgets all reported paths. */
async function changeOf(path: string): Promise<void> {
  await vi.waitFor(() => expect(changes).toContain(path), 5000)
  changes.length = 0
}

test('reports a saved file', async () => {
  writeFileSync(file(), '1')
  await changeOf(file())
})

test('reports a file that is saved after its folder was removed and created again', async () => {
  const removal = once(rootWatcher, 'change')
  rmSync(folder(), { recursive: true })
  await removal
  mkdirSync(folder())
  await changeOf(folder())
  writeFileSync(file(), '1')
  await changeOf(file())
})

test('reports a file that is saved after its folder was removed and immediately created again', async () => {
  rmSync(folder(), { recursive: true })
  mkdirSync(folder())
  await changeOf(folder())
  writeFileSync(file(), '1')
  await changeOf(file())
})
