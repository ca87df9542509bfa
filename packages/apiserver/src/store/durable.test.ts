import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ClassicLevel } from 'classic-level'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { hours, minutes, seededRandom, VirtualClock } from '@capstan/kube'
import { crashRounds } from './crash-rounds.ts'
import { type DurableStores, openDurable } from './durable.ts'
import { holdPacked, isPacked } from './packed.ts'
import { at, put, settableClock, storeSuite } from './store.suite.ts'

const root = mkdtempSync(join(tmpdir(), 'capstan-store-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))
let folders = 0
const clock = new VirtualClock()
const newFolder = () => join(root, String(folders++))

describe('the durable store', () => {
  describe.each([
    ['as any store', {}],
    ['packed', { hold: holdPacked(1) }],
  ])('%s', (_, how) => {
    let stores: DurableStores | undefined
    let opened = 0
    afterEach(async () => {
      await stores?.close()
      stores = undefined
    })
    storeSuite(async (options) => {
      stores ??= await openDurable(newFolder(), { clock, ...how })
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
    const told = before.since(0, 'configmaps')
    await reopen()
    const after = await stores.store('main')
    expect(after.revision).toBe(4)
    expect(after.get(at('a'))).toMatchObject({ data: { v: '2' }, metadata: { resourceVersion: '2' } })
    expect(after.since(0, 'configmaps')).toEqual(told)
    expect(after.listAt(1, 'configmaps')).toMatchObject([{ data: { v: '1' } }])
    expect((await put(after, at('b'))).revision).toBe(5)
  })

  test('what was written as objects is read as packed ones, each of them once, and the other way round', async () => {
    const before = await stores.store('main')
    await put(before, at('a'), { v: '1' })
    await put(before, at('a'), { v: '2' })
    const told = before.since(0, 'configmaps')
    const text = JSON.stringify(before.list('configmaps'))
    for (const hold of [holdPacked(1), undefined]) {
      await stores.close()
      stores = await openDurable(folder, { clock, ...(hold ? { hold } : {}) })
      const after = await stores.store('main')
      expect(after.list('configmaps').map(isPacked)).toEqual([hold !== undefined])
      expect(JSON.stringify(after.list('configmaps'))).toBe(text)
      const since = after.since(0, 'configmaps')
      expect(since).toEqual(told)
      expect(since.kind === 'changes' && since.changes.at(-1)?.object).toBe(after.get(at('a')))
    }
  })

  test('changes forgotten before a restart stay forgotten', async () => {
    const before = await stores.store('main', { history: { changes: 2 } })
    for (let i = 0; i < 6; i++) await put(before, at('a'), { v: String(i) })
    await reopen()
    const after = await stores.store('main', { history: { changes: 2 } })
    expect(after.since(1, 'configmaps')).toMatchObject({ kind: 'expired' })
    expect(after.since(4, 'configmaps')).toMatchObject({ kind: 'changes', changes: [{ revision: 5 }, { revision: 6 }] })
  })

  test.each([
    ['goes on after the restart', 0],
    ['has been set back meanwhile', -hours(24)],
    ['has been set forward meanwhile', hours(24)],
  ])('the age of a change is known when the clock %s', async (_, jump) => {
    const time = settableClock()
    await stores.close()
    const open = async () => {
      stores = await openDurable(folder, { clock: time })
      return stores.store('main', { history: { age: minutes(5) } })
    }
    const before = await open()
    await put(before, at('a'))
    time.time += minutes(4)
    await put(before, at('b'))
    await stores.close()
    time.time += minutes(2) + jump
    const after = await open()
    const knows = [0, 1, 2].map((revision) => after.since(revision, 'configmaps').kind === 'changes')
    expect(knows).toEqual(jump < 0 ? [true, true, true] : jump > 0 ? [false, false, true] : [false, true, true])
    expect((await put(after, at('c'))).revision).toBe(3)
  })

  test('stores of one folder know nothing of each other, and one can be removed', async () => {
    const [one, two] = await Promise.all([stores.store('a/b'), stores.store('a/b/c')])
    await Promise.all([put(one, at('x')), put(two, at('y')), put(two, at('z'))])
    await stores.remove('a/b')
    expect((await stores.store('a/b')).count('configmaps')).toBe(0)
    await reopen()
    expect((await stores.store('a/b')).revision).toBe(0)
    expect((await stores.store('a/b/c')).count('configmaps')).toBe(2)
  })

  test('a folder of the version before is brought over; that version then refuses it by name', async () => {
    const old = newFolder()
    const db = new ClassicLevel<string, string>(old)
    await db.batch([
      { type: 'put', key: 'format', value: '1' },
      { type: 'put', key: 'stores/main/revision', value: '7' },
      { type: 'put', key: 'stores/main/objects/configmaps/default/a', value: '{"metadata":{"name":"a","resourceVersion":"5"}}' },
      { type: 'put', key: 'stores/main/objects/nodes//n', value: '{"metadata":{"name":"n","resourceVersion":"7"}}' },
      { type: 'put', key: 'stores/main/changes/0000000000000007', value: '{}' },
      { type: 'put', key: 'stores/workload%2Fx/revision', value: '3' },
    ])
    await db.close()
    for (let time = 0; time < 2; time++) {
      const brought = await openDurable(old, { clock })
      const main = await brought.store('main')
      expect([main.revision, main.get(at('a'))?.metadata.resourceVersion, main.count('nodes')]).toEqual([7, '5', 1])
      expect([main.since(7, 'nodes').kind, main.since(6, 'nodes').kind]).toEqual(['changes', 'expired'])
      expect((await brought.store('workload/x')).revision).toBe(3)
      await brought.close()
    }
    await db.open()
    expect(await db.iterator().all()).toEqual([['format', '2']])
    await db.close()
  })

  test('a folder of a later version is refused by name', async () => {
    await stores.close()
    const db = new ClassicLevel<string, string>(folder)
    await db.put('format', '3')
    await db.close()
    await expect(openDurable(folder, { clock })).rejects.toThrow(
      `Cannot open data folder ${folder}: it has format 3, and this version reads formats 1 and 2 only`,
    )
  })

  test.each([
    ['is missing', (path: string) => rmSync(path)],
    ['is empty', (path: string) => writeFileSync(path, '')],
    ['names what is not there', (path: string) => writeFileSync(path, 'MANIFEST-000099\n')],
  ])('a lock whose CURRENT %s is made anew: nothing is in it', async (_, damage) => {
    await put(await stores.store('main'), at('a'))
    await stores.close()
    damage(join(folder, 'CURRENT'))
    stores = await openDurable(folder, { clock })
    expect((await stores.store('main')).count('configmaps')).toBe(1)
    await stores.close()
    rmSync(join(folder, 'state'), { recursive: true })
    await expect(openDurable(folder, { clock })).rejects.toThrow(
      `Cannot open data folder ${folder}: ${folder}/state is damaged: it is missing`,
    )
  })

  test('only its owner can read what is in it', async () => {
    await put(await stores.store('main'), at('a'))
    const modes = readdirSync(join(folder, 'state')).map((name) => statSync(join(folder, 'state', name)).mode & 0o777)
    expect([statSync(folder).mode & 0o777, statSync(join(folder, 'state')).mode & 0o777, ...new Set(modes)]).toEqual([
      0o700, 0o700, 0o600,
    ])
  })

  test('a folder that is in use is refused by name', async () => {
    await expect(openDurable(folder, { clock })).rejects.toThrow(
      `Cannot open data folder ${folder}: it is in use by another process`,
    )
  })

  test('kill -9 loses no acknowledged write, the revision never goes back, and watches resume', async () => {
    const { mistakes, rounds, acknowledged } = await crashRounds({ folder: newFolder(), rounds: 4, random: seededRandom(7) })
    expect({ mistakes, rounds }).toEqual({ mistakes: [], rounds: 4 })
    expect(acknowledged).toBeGreaterThan(10)
  })
})
