import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { hours, minutes, seededRandom, VirtualClock } from '@capstan/kube'
import { crashRounds } from './crash-rounds.ts'
import { type DurableStores, openDurable } from './durable.ts'
import { packedObjects, isPacked } from './packed.ts'
import { type Files, nodeFiles } from './files.ts'
import { at, put, settableClock, storeSuite } from './store.suite.ts'

const root = mkdtempSync(join(tmpdir(), 'capstan-store-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))
let folders = 0
const clock = new VirtualClock()
const newFolder = () => join(root, String(folders++))

test.each(['list', 'open', 'read'] as const)(
  'a disk error while the folder is opened names the folder (step %s)',
  async (step) => {
    const folder = newFolder()
    await (await openDurable(folder, { clock })).close()
    const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
    const files = { ...nodeFiles, [step]: () => Promise.reject(full) }
    await expect(openDurable(folder, { clock, files })).rejects.toThrow(`Cannot open data folder ${folder}: ${full.message}`)
    // The lock is released for the next attempt.
    await (await openDurable(folder, { clock })).close()
  },
)

test('a new folder can be created on a file system that does not rename folders with open files, as on Windows', async () => {
  const openPaths = new Set<string>()
  const files: Files = {
    ...nodeFiles,
    async open(path, mode) {
      const file = await nodeFiles.open(path, mode)
      openPaths.add(path)
      const close = async () => {
        await file.close()
        openPaths.delete(path)
      }
      return { ...file, close }
    },
    async rename(from, to) {
      if ([...openPaths].some((path) => path.startsWith(`${from}/`))) {
        throw Object.assign(new Error(`EPERM: operation not permitted, rename '${from}' -> '${to}'`), { code: 'EPERM' })
      }
      await nodeFiles.rename(from, to)
    },
  }
  const stores = await openDurable(newFolder(), { clock, files })
  expect((await stores.store('main')).revision).toBe(0)
  await stores.close()
})

describe('the durable store', () => {
  describe.each([
    ['with plain objects', {}],
    ['with packed objects', { encode: packedObjects(1) }],
  ])('%s', (_, encodingOptions) => {
    let stores: DurableStores | undefined
    let opened = 0
    afterEach(async () => {
      await stores?.close()
      stores = undefined
    })
    storeSuite(async (options) => {
      stores ??= await openDurable(newFolder(), { clock, ...encodingOptions })
      return stores.store(`store ${opened++}`, options)
    })
  })

  let folder: string
  let stores: DurableStores
  const reopen = async () => {
    await stores.close()
    stores = await openDurable(folder, { clock })
  }
  beforeEach(async () => {
    folder = newFolder()
    stores = await openDurable(folder, { clock })
  })
  afterEach(() => stores.close())

  test('objects, revision and recent changes survive a restart', async () => {
    const before = await stores.store('main')
    await put(before, at('a'), { v: '1' })
    await put(before, at('a'), { v: '2' })
    await put(before, at('gone'))
    await before.commit({ key: at('gone'), previous: before.get(at('gone')), object: undefined })
    const changes = before.since(0, 'configmaps')
    await reopen()
    const after = await stores.store('main')
    expect(after.revision).toBe(4)
    expect(after.get(at('a'))).toMatchObject({ data: { v: '2' }, metadata: { resourceVersion: '2' } })
    expect(after.since(0, 'configmaps')).toEqual(changes)
    expect(after.listAt(1, 'configmaps')).toMatchObject([{ data: { v: '1' } }])
    expect((await put(after, at('b'))).revision).toBe(5)
  })

  test('objects written as plain objects can be read as packed objects, and as plain objects again', async () => {
    const before = await stores.store('main')
    await put(before, at('a'), { v: '1' })
    await put(before, at('a'), { v: '2' })
    const changes = before.since(0, 'configmaps')
    const text = JSON.stringify(before.list('configmaps'))
    for (const encode of [packedObjects(1), undefined]) {
      await stores.close()
      stores = await openDurable(folder, { clock, ...(encode ? { encode } : {}) })
      const after = await stores.store('main')
      expect(after.list('configmaps').map(isPacked)).toEqual([encode !== undefined])
      expect(JSON.stringify(after.list('configmaps'))).toBe(text)
      const since = after.since(0, 'configmaps')
      expect(since).toEqual(changes)
      expect(since.kind === 'changes' && since.changes.at(-1)?.object).toBe(after.get(at('a')))
    }
  })

  test('changes removed from the history before a restart stay removed', async () => {
    const before = await stores.store('main', { history: { changes: 2 } })
    for (let i = 0; i < 6; i++) await put(before, at('a'), { v: String(i) })
    await reopen()
    const after = await stores.store('main', { history: { changes: 2 } })
    expect(after.since(1, 'configmaps')).toMatchObject({ kind: 'expired' })
    expect(after.since(4, 'configmaps')).toMatchObject({ kind: 'changes', changes: [{ revision: 5 }, { revision: 6 }] })
  })

  test.each([
    ['has not been set', 0, [false, true, true]],
    ['has been set back', -hours(24), [true, true, true]],
    ['has been set forward', hours(24), [false, false, true]],
  ])('after a restart, the age of a change is computed from its stored time: the clock %s', async (_, jump, expected) => {
    const testClock = settableClock()
    await stores.close()
    const open = async () => {
      stores = await openDurable(folder, { clock: testClock })
      return stores.store('main', { history: { age: minutes(5) } })
    }
    const before = await open()
    await put(before, at('a'))
    testClock.time += minutes(4)
    await put(before, at('b'))
    await stores.close()
    testClock.time += minutes(2) + jump
    const after = await open()
    // Whether the history still contains all changes after the revisions 0, 1 and 2.
    const isComplete = [0, 1, 2].map((revision) => after.since(revision, 'configmaps').kind === 'changes')
    expect(isComplete).toEqual(expected)
    expect((await put(after, at('c'))).revision).toBe(3)
  })

  test('stores of one folder are independent, and one can be removed', async () => {
    const [first, second] = await Promise.all([stores.store('a/b'), stores.store('a/b/c')])
    await Promise.all([put(first, at('x')), put(second, at('y')), put(second, at('z'))])
    await stores.remove('a/b')
    expect((await stores.store('a/b')).count('configmaps')).toBe(0)
    await reopen()
    expect((await stores.store('a/b')).revision).toBe(0)
    expect((await stores.store('a/b/c')).count('configmaps')).toBe(2)
  })

  test('a store that is removed while it writes has no objects after a restart', async () => {
    const store = await stores.store('main')
    const written = put(store, at('a'))
    await stores.remove('main')
    await written
    await reopen()
    expect((await stores.store('main')).count('configmaps')).toBe(0)
  })

  const levelDBFiles = ['000005.ldb', '000012.log', 'CURRENT', 'LOG', 'LOG.old', 'MANIFEST-000011']
  test('opening a folder of an earlier version removes its LevelDB files', async () => {
    await put(await stores.store('main'), at('a'))
    await stores.close()
    rmSync(join(folder, 'format'))
    for (const name of levelDBFiles) writeFileSync(join(folder, name), 'MANIFEST-000011\n')
    writeFileSync(join(folder, 'mine.log'), '')
    stores = await openDurable(folder, { clock })
    expect((await stores.store('main')).count('configmaps')).toBe(1)
    expect(readdirSync(folder).sort()).toEqual(['LOCK', 'format', 'mine.log', 'state'])
  })

  test('the error for a folder of a later version names the folder', async () => {
    await stores.close()
    writeFileSync(join(folder, 'format'), '3\n')
    await expect(openDurable(folder, { clock })).rejects.toThrow(
      `Cannot open data folder ${folder}: it has format 3, and this version reads format 2 only`,
    )
  })

  test.each([
    ['is missing', () => rmSync(join(folder, 'format')), false],
    ['is empty', () => writeFileSync(join(folder, 'format'), ''), true],
    ['has other content', () => writeFileSync(join(folder, 'format'), Buffer.alloc(5000, 7)), true],
    ['is missing, but a file of LevelDB exists', () => renameSync(join(folder, 'format'), join(folder, 'CURRENT')), true],
  ])('a folder with a state is opened when its format file %s', async (_, damage, isDataFolder) => {
    await put(await stores.store('main'), at('a'))
    await stores.close()
    damage()
    stores = await openDurable(folder, { clock })
    expect((await stores.store('main')).count('configmaps')).toBe(1)
    await stores.close()
    expect(readFileSync(join(folder, 'format'), 'utf8')).toBe('2\n')
    damage()
    rmSync(join(folder, 'state'), { recursive: true })
    // Without its state, the folder is reported as damaged if its other files show that it is a data folder.
    if (isDataFolder) {
      await expect(openDurable(folder, { clock })).rejects.toThrow(
        `Cannot open data folder ${folder}: ${folder}/state is damaged: it is missing`,
      )
    }
  })

  test('its files can be read only by their owner', async () => {
    await put(await stores.store('main'), at('a'))
    const modes = readdirSync(join(folder, 'state')).map((name) => statSync(join(folder, 'state', name)).mode & 0o777)
    expect([statSync(folder).mode & 0o777, statSync(join(folder, 'state')).mode & 0o777, ...new Set(modes)]).toEqual([
      0o700, 0o700, 0o600,
    ])
  })

  test('kill -9 loses no acknowledged write, the revision never decreases, and watches resume', async () => {
    const { mistakes, rounds, acknowledged } = await crashRounds({ folder: newFolder(), rounds: 4, random: seededRandom(7) })
    expect({ mistakes, rounds }).toEqual({ mistakes: [], rounds: 4 })
    expect(acknowledged).toBeGreaterThan(10)
  })
})
