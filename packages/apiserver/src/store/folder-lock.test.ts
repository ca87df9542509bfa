import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { VirtualClock } from '@capstan/kube'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { openDurable } from './durable.ts'
import { FolderLock } from './folder-lock.ts'

const root = mkdtempSync(join(tmpdir(), 'capstan-lock-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))
let folder = ''
let folders = 0
beforeEach(() => {
  folder = join(root, String(folders++))
})
const inUse = () => `Cannot open data folder ${folder}: it is in use by another process`

/** Starts a process that has the folder open and has written to it. */
async function startHolder(): Promise<ChildProcess> {
  const writer = fileURLToPath(new URL('./crash-writer.ts', import.meta.url))
  const child = spawn(process.execPath, [writer, folder, '4000000', '0'], { stdio: ['ignore', 'pipe', 'inherit'] })
  // The process prints first the found state, then its acknowledged writes.
  let output = ''
  while (output.split('\n').length < 3) output += ((await once(child.stdout, 'data')) as [Buffer])[0].toString()
  child.stdout.resume()
  return child
}

async function outputOf(program: string): Promise<string> {
  const args = ['--expose-gc', '--input-type=module', '-e', program, folder]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const [output] = (await once(child.stdout, 'data')) as [Buffer]
  return output.toString().trim()
}

describe('the lock of a data folder', () => {
  test('excludes a second process, and is released when the first one is killed', async () => {
    for (let time = 0; time < 2; time++) {
      const child = await startHolder()
      await expect(FolderLock.take(folder)).rejects.toThrow(inUse())
      child.kill('SIGKILL')
      await once(child, 'exit')
      const stores = await openDurable(folder, { clock: new VirtualClock() })
      expect((await stores.store('crash')).revision).toBeGreaterThan(0)
      await stores.close()
    }
  })

  test('excludes also the process that holds it, at every attempt, until this process releases it', async () => {
    const lock = await FolderLock.take(folder)
    for (let time = 0; time < 3; time++) await expect(FolderLock.take(folder)).rejects.toThrow(inUse())
    lock.release()
    ;(await FolderLock.take(folder)).release()
  })

  test('still excludes other processes after the process that holds it has tried to take it again', async () => {
    const lock = await FolderLock.take(folder)
    await expect(FolderLock.take(folder)).rejects.toThrow(inUse())
    const output = await outputOf(`import { FolderLock } from '${new URL('./folder-lock.ts', import.meta.url).href}'
      await FolderLock.take(process.argv[1]).then(() => console.log('taken'), (err) => console.log(err.message))`)
    expect(output).toBe(inUse())
    lock.release()
  })

  test('is kept as long as a store of the folder is open, also across garbage collections', async () => {
    const output = await outputOf(`import { openDurable } from '${new URL('./durable.ts', import.meta.url).href}'
      const open = () => openDurable(process.argv[1], { clock: { now: () => 0 } })
      globalThis.kept = await (await open()).store('main')
      for (let time = 0; time < 3; time++) await new Promise((done) => setImmediate(() => done(gc())))
      await open().then(() => console.log('taken'), (err) => console.log(err.message))`)
    expect(output).toBe(inUse())
  })

  test('is a file that stays empty', async () => {
    const lock = await FolderLock.take(folder)
    expect(readdirSync(folder)).toEqual(['LOCK'])
    expect(statSync(join(folder, 'LOCK')).size).toBe(0)
    lock.release()
  })

  test.each([
    ['a letter', Buffer.from('x')],
    ['a text', Buffer.from('not a lock\n'.repeat(1000))],
    ['zeros', Buffer.alloc(4096)],
    ['the beginning of a SQLite database', Buffer.from('SQLite format 3\0'.padEnd(5000, '\x07'))],
  ])('can be taken, but only once at a time, after its file was overwritten with %s', async (_, bytes) => {
    ;(await FolderLock.take(folder)).release()
    writeFileSync(join(folder, 'LOCK'), bytes)
    const lock = await FolderLock.take(folder)
    await expect(FolderLock.take(folder)).rejects.toThrow(inUse())
    lock.release()
    ;(await FolderLock.take(folder)).release()
  })

  test('cannot be taken when the folder cannot be created; the error names the folder', async () => {
    writeFileSync(folder, '')
    await expect(FolderLock.take(folder)).rejects.toThrow(`Cannot open data folder ${folder}: EEXIST`)
  })
})
