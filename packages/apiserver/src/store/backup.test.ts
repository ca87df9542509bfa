import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { seededRandom, VirtualClock } from '@capstan/kube'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { backUp, checkBackup, restoreBackup } from './backup.ts'
import { type DurableStores, openDurable } from './durable.ts'
import { type Files, nodeFiles } from './files.ts'
import { encodeFrame } from './frame.ts'
import { replaceState, finishReplacement } from './replace-state.ts'
import { SimulatedDisk } from './simulated-disk.ts'
import { at, put } from './store.suite.ts'

const root = mkdtempSync(join(tmpdir(), 'capstan-backup-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))
const clock = new VirtualClock()
let count = 0
let [folder, file, otherFolder] = ['', '', '']
let stores: DurableStores
beforeEach(async () => {
  const base = join(root, String(count++))
  ;[folder, file, otherFolder] = [`${base}-data`, `${base}.backup`, `${base}-other`]
  stores = await openDurable(folder, { clock, checkpointAfter: 3000 })
  const [main, workload] = [await stores.store('main'), await stores.store('workload/a/b')]
  for (let i = 0; i < 30; i++) await put(main, at(`o${i % 5}`), { turn: String(i), padding: 'x'.repeat(200) })
  await put(workload, at('node'))
})
afterEach(() => stores.close())

const restore = (options: { force?: boolean; bumpRevision?: number } = {}) =>
  restoreBackup({ folder: otherFolder, file, clock, ...options })

describe('a backup', () => {
  test('of a folder that is in use has all acknowledged writes, and its file has mode 0600', async () => {
    const backup = await backUp({ folder, file, clock })
    expect(backup).toMatchObject({
      format: 2,
      time: clock.now(),
      objects: 6,
      stores: [
        { name: 'main', revision: 30, objects: 5 },
        { name: 'workload/a/b', revision: 1, objects: 1 },
      ],
    })
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(await checkBackup(file)).toEqual(backup)
  })

  test('is retried when a checkpoint is removed after it was listed and before it is read', async () => {
    let isFirst = true
    const files: Files = {
      ...nodeFiles,
      async read(path) {
        if (isFirst && path.includes('checkpoint')) {
          isFirst = false
          throw Object.assign(new Error(`ENOENT: no such file or directory, open '${path}'`), { code: 'ENOENT' })
        }
        return nodeFiles.read(path)
      },
    }
    expect(await backUp({ folder, file, clock, files })).toMatchObject({ objects: 6 })
    expect(isFirst).toBe(false)
  })

  test('that is made during writes contains the state at one moment', async () => {
    const main = await stores.store('main')
    let isDone = false
    const writing = (async () => {
      for (let i = 0; !isDone; i++) {
        await put(main, at('first'), { turn: String(i), padding: 'x'.repeat(900) })
        await put(main, at('second'), { turn: String(i), padding: 'x'.repeat(900) })
      }
    })()
    for (let round = 0; round < 15; round++) {
      const before = main.revision
      const { stores: saved } = await backUp({ folder, file, clock })
      expect(saved.find(({ name }) => name === 'main')!.revision).toBeGreaterThanOrEqual(before)
      await restore({ force: true })
      const restored = await openDurable(otherFolder, { clock })
      const [first, second] = ['first', 'second'].map((name) => turnOf(restored, name))
      const ahead = (await first)! - (await second)!
      expect([0, 1]).toContain(ahead)
      await restored.close()
    }
    isDone = true
    await writing
  })

  test('is rejected when it is truncated, changed or extended', async () => {
    await backUp({ folder, file, clock })
    const bytes = readFileSync(file)
    for (let size = 0; size < bytes.length; size += 1 + (size % 11)) {
      writeFileSync(file, bytes.subarray(0, size))
      await expect(checkBackup(file), `cut at ${size}`).rejects.toThrow(file)
    }
    for (let offset = 0; offset < bytes.length; offset += 1 + (offset % 11)) {
      const damaged = Buffer.from(bytes)
      damaged[offset]! ^= 16
      writeFileSync(file, damaged)
      await expect(checkBackup(file), `byte ${offset}`).rejects.toThrow(file)
    }
    writeFileSync(file, Buffer.concat([bytes, encodeFrame(99, '{}')]))
    await expect(checkBackup(file)).rejects.toThrow('damaged')
  })

  test.each([
    [
      'a backup of a newer version',
      encodeFrame(1, '{"capstan":"backup","format":3}'),
      'has format 3, and this version reads format 2 only',
    ],
    ['a checkpoint', encodeFrame(1, '{"capstan":"checkpoint","format":2}'), 'is not a backup of Capstan'],
    [
      'a text file',
      Buffer.from('apiVersion: v1\nkind: List\nitems: []\n'),
      'is not a backup of Capstan, or its beginning is damaged',
    ],
    ['an empty file', Buffer.alloc(0), 'is not a backup of Capstan, or its beginning is damaged'],
  ])('is rejected with the name of the file when it is %s', async (_, bytes, problem) => {
    writeFileSync(file, bytes)
    await expect(restore()).rejects.toThrow(`${file} ${problem}`)
  })

  test('of a damaged folder fails without salvage; with salvage it contains all readable data, and fails if there is none', async () => {
    const main = await stores.store('main')
    const before = main.revision
    const state = `${folder}/state`
    const newest = join(state, readdirSync(state).findLast((name) => name.startsWith('log-'))!)
    const { size } = statSync(newest)
    for (let i = 0; i < 3; i++) await put(main, at('late'), { turn: String(i) })
    await stores.close()
    const bytes = readFileSync(newest)
    bytes[size + 30]! ^= 1
    writeFileSync(newest, bytes)
    await expect(backUp({ folder, file, clock })).rejects.toThrow(`${newest} is damaged at byte ${size}`)
    const { damage, stores: readable } = await backUp({ folder, file, clock, salvage: true })
    expect(damage).toEqual([expect.stringContaining(`${newest} is damaged at byte ${size}`)])
    expect(readable[0]).toEqual({ name: 'main', revision: before, objects: 5 })

    writeFileSync(join(state, 'acknowledged'), '')
    const secondBackup = await backUp({ folder, file, clock, salvage: true })
    expect([secondBackup.damage?.length, secondBackup.stores]).toEqual([2, readable])
    for (const name of readdirSync(state)) if (name !== 'acknowledged') rmSync(join(state, name))
    await expect(backUp({ folder, file, clock, salvage: true })).rejects.toThrow('acknowledged is damaged')
  })

  test.each([0, 512])(
    'has the last acknowledged write when the copy of the commit marker at byte %d is damaged',
    async (offset) => {
      await stores.close()
      const marker = join(folder, 'state', 'acknowledged')
      const bytes = readFileSync(marker)
      bytes[offset + 3]! ^= 1
      writeFileSync(marker, bytes)
      expect(await backUp({ folder, file, clock })).toMatchObject({
        stores: [
          { name: 'main', revision: 30, objects: 5 },
          { name: 'workload/a/b', revision: 1, objects: 1 },
        ],
      })
    },
  )

  test('of a folder without state is an error that names the folder', async () => {
    await expect(backUp({ folder: otherFolder, file, clock })).rejects.toThrow(`There is no state in data folder ${otherFolder}`)
  })
})

describe('a restore', () => {
  test('restores objects and their resourceVersions, drops later writes, and uses no revision twice', async () => {
    await backUp({ folder, file, clock })
    await put(await stores.store('main'), at('later'))
    await restore()
    const restored = await openDurable(otherFolder, { clock })
    const main = await restored.store('main')
    const original = await stores.store('main')
    expect(main.list('configmaps')).toEqual(original.list('configmaps').filter(({ metadata }) => metadata.name !== 'later'))
    expect(main.revision).toBe(1_000_000_030)
    expect([main.since(30, 'configmaps').kind, main.since(31, 'configmaps').kind]).toEqual(['expired', 'expired'])
    expect((await put(main, at('new'))).revision).toBe(1_000_000_031)
    await restored.close()
  })

  test('continues with the revisions of the backup when bumpRevision is 0, and rejects a bumpRevision that is too large', async () => {
    await backUp({ folder, file, clock })
    await restore({ bumpRevision: 0 })
    const restored = await openDurable(otherFolder, { clock })
    expect((await restored.store('main')).revision).toBe(30)
    await restored.close()
    await expect(restore({ bumpRevision: 2 ** 53, force: true })).rejects.toThrow('is too large')
  })

  test('replaces existing data only with force', async () => {
    await backUp({ folder, file, clock })
    await (await openDurable(otherFolder, { clock })).close()
    await expect(restore()).rejects.toThrow(
      `Data folder ${otherFolder} holds data already: nothing has been changed. --force replaces it`,
    )
    await restore({ force: true })
    const restored = await openDurable(otherFolder, { clock })
    expect((await restored.store('main')).count('configmaps')).toBe(5)
    await restored.close()
  })

  test('replaces a damaged folder with force', async () => {
    await backUp({ folder, file, clock })
    await restore()
    writeFileSync(`${otherFolder}/state/acknowledged`, '')
    await expect(openDurable(otherFolder, { clock })).rejects.toThrow(
      `Cannot open data folder ${otherFolder}: ${otherFolder}/state/acknowledged is damaged at byte 0: its checksum does not match. ` +
        'Acknowledged writes may be lost: restore a backup with `capstan restore FILE --data DIR --force`, ' +
        'or keep what can be read with `capstan backup FILE --salvage --data DIR`',
    )
    await restore({ force: true })
    await (await openDurable(otherFolder, { clock })).close()
  })

  test('rejects a folder that is in use', async () => {
    await backUp({ folder, file, clock })
    await expect(restoreBackup({ folder, file, clock, force: true })).rejects.toThrow('it is in use by another process')
  })

  test('of a damaged backup changes nothing', async () => {
    await backUp({ folder, file, clock })
    await restore()
    copyFileSync(file, `${file}.whole`)
    writeFileSync(file, readFileSync(file).subarray(0, 500))
    await expect(restore({ force: true })).rejects.toThrow(`${file} is damaged at byte 500: it ends too early`)
    const unchanged = await openDurable(otherFolder, { clock })
    expect((await unchanged.store('main')).count('configmaps')).toBe(5)
    await unchanged.close()
  })
})

test.each(['crash', 'loss of power'] as const)(
  'a replacement that is interrupted by a %s leaves the old or the new state',
  async (after) => {
    const writeState = (disk: SimulatedDisk, content: string) => async (newFolder: string) => {
      for (const name of ['a', 'b']) {
        const opened = await disk.open(`${newFolder}/${name}`, 'create')
        await opened.write(Buffer.from(content), 0)
        await opened.sync()
      }
      await disk.syncFolder(newFolder)
    }
    const outcomes = new Set<string>()
    for (let seed = 0; seed < 200; seed++) {
      const random = seededRandom(seed)
      const disk = new SimulatedDisk(random)
      await replaceState(disk, '/data', writeState(disk, 'old'))
      await disk.syncFolder('/data')
      disk.dieAfter(1 + Math.floor(random.next() * 25))
      const isDone = await replaceState(disk, '/data', writeState(disk, 'new')).then(
        () => true,
        () => false,
      )
      disk.restart(after)
      await finishReplacement(disk, '/data')
      const texts = await Promise.all(['a', 'b'].map(async (name) => (await disk.read(`/data/state/${name}`)).toString()))
      expect(texts[0], `seed ${seed}`).toBe(texts[1])
      if (isDone) expect(texts[0]).toBe('new')
      expect(await disk.list('/data')).toEqual(['state'])
      outcomes.add(texts[0]!)
    }
    expect([...outcomes].sort()).toEqual(['new', 'old'])
  },
)

async function turnOf(stores: DurableStores, name: string): Promise<number> {
  const stored = (await stores.store('main')).get(at(name)) as unknown as { data: { turn: string } } | undefined
  return Number(stored?.data.turn ?? -1)
}
