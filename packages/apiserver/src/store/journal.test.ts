import { type Random, seededRandom, silent, VirtualClock } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { type DurableStores, storesOf } from './durable.ts'
import { Journal, makeState } from './journal.ts'
import { SimulatedDisk } from './simulated-disk.ts'
import { readState } from './state-folder.ts'
import type { Store } from './store.ts'
import { at, put, storeSuite } from './store.suite.ts'

/** With `CAPSTAN_FUZZ=60`, each test of a crash uses 1,800 simulated disks. */
const runFactor = Number(process.env.CAPSTAN_FUZZ ?? 1)
const folder = '/data/state'

interface OpenFolder {
  readonly stores: DurableStores
  readonly store: Store
}

async function openOn(disk: SimulatedDisk, clock = new VirtualClock()): Promise<OpenFolder> {
  const journal = await Journal.open(folder, { clock, log: silent, files: disk, sync: true, checkpointAfter: 4000 })
  const stores = storesOf(journal, clock)
  return { stores, store: await stores.store('main', { history: { changes: 30 } }) }
}

async function newDisk(random: Random): Promise<SimulatedDisk> {
  const disk = new SimulatedDisk(random)
  await makeState(disk, folder, new Map(), 0)
  await disk.syncFolder('/data')
  return disk
}

describe('a durable store with failing checkpoints and frequent new logs', () => {
  storeSuite(async (options) => {
    const disk = await newDisk(seededRandom(3))
    disk.beforeStep = (step, path) => {
      if (path.includes('checkpoint') || step === 'remove') throw new Error(`EIO: i/o error, ${step} '${path}'`)
    }
    const clock = new VirtualClock()
    const journal = await Journal.open(folder, { clock, log: silent, files: disk, sync: true, checkpointAfter: 1000 })
    const stores = storesOf(journal, clock)
    const store = await stores.store('main', options)
    const close = store.close.bind(store)
    store.close = () => close().then(() => stores.close())
    return store
  })
})

/** Writes to one simulated disk, as their writers know them. */
interface Writes {
  readonly acknowledged: Map<string, { revision: number; text: string | undefined }>
  /** Writes that may or may not be stored: they failed, or the process died before they were acknowledged. */
  readonly open: Map<string, Set<string | undefined>>
  /** Highest revision of an acknowledged write, or of the store when it was last opened. */
  highest: number
}

describe.each([
  ['a process that dies at any step', 'crash', 0],
  ['a loss of power at any step', 'loss of power', 0],
  ['a process that dies at any step of an unreliable disk', 'crash', 0.02],
  ['a loss of power at any step of an unreliable disk', 'loss of power', 0.02],
] as const)('%s', (_, after, failures) => {
  test('loses no acknowledged write', { timeout: 240_000 * runFactor }, async () => {
    for (let seed = 0; seed < 30 * runFactor; seed++) await crashRepeatedly(seed, after, failures)
  })
})

async function crashRepeatedly(seed: number, after: 'crash' | 'loss of power', failures: number): Promise<void> {
  const random = seededRandom(seed)
  const disk = await newDisk(random)
  const writes: Writes = { acknowledged: new Map(), open: new Map(), highest: 0 }
  for (let round = 0; round < 6; round++) {
    const clock = new VirtualClock()
    disk.beforeStep = () => {}
    const opened = await openOn(disk, clock)
    verify(opened.store, writes, `seed ${seed}, round ${round}`)
    expect(disk.paths.filter((path) => path.endsWith('.new'))).toEqual([])
    disk.dieAfter(1 + Math.floor(random.next() * 120))
    disk.beforeStep = (step) => {
      if (random.next() < failures) throw new Error(`EIO: i/o error, ${step}`)
    }
    await Promise.all([0, 1, 2].map((writer) => write(opened.store, writer, disk, clock, random, writes)))
    await opened.stores.close().catch(() => {})
    disk.restart(after)
    disk.beforeStep = () => {}
    if (random.next() < 0.5) {
      // The process may also crash while the journal opens.
      disk.dieAfter(1 + Math.floor(random.next() * 15))
      await openOn(disk).then(
        ({ stores }) => stores.close(),
        () => {},
      )
      disk.restart(after)
    }
  }
}

async function write(store: Store, writer: number, disk: SimulatedDisk, clock: VirtualClock, random: Random, writes: Writes) {
  for (let turn = 0; !disk.isDead; turn++) {
    const name = `writer-${writer}-${Math.floor(random.next() * 4)}`
    const previous = store.get(at(name))
    const text = previous && random.next() < 0.2 ? undefined : `${turn} ${'x'.repeat(Math.floor(random.next() * 900))}`
    try {
      const change =
        text === undefined
          ? await store.commit({ key: at(name), previous, object: undefined })
          : await put(store, at(name), { text })
      writes.acknowledged.set(name, { revision: change.revision, text })
      writes.highest = Math.max(writes.highest, change.revision)
      writes.open.delete(name)
    } catch {
      writes.open.set(name, (writes.open.get(name) ?? new Set()).add(text))
      clock.step(clock.now() + 1000)
    }
  }
}

function verify(store: Store, writes: Writes, where: string): void {
  expect(store.revision, where).toBeGreaterThanOrEqual(writes.highest)
  for (const [name, { revision, text }] of writes.acknowledged) {
    const stored = store.get(at(name)) as { metadata: { resourceVersion: string }; data: { text: string } } | undefined
    const isAsAcknowledged = stored?.data.text === text && (!stored || Number(stored.metadata.resourceVersion) === revision)
    const isLater = writes.open.get(name)?.has(stored?.data.text) === true
    expect(isAsAcknowledged || isLater, `${where}: ${name} was ${text?.slice(0, 5)} at ${revision}`).toBe(true)
  }
  // From here on, the state that was found is the expected state. Its history must have no gaps.
  writes.open.clear()
  for (const [name, { revision }] of writes.acknowledged) {
    const stored = store.get(at(name)) as { metadata: { resourceVersion: string }; data: { text: string } } | undefined
    writes.acknowledged.set(name, { revision: Number(stored?.metadata.resourceVersion ?? revision), text: stored?.data.text })
  }
  writes.highest = store.revision
  for (let revision = store.revision; revision >= 0; revision--) {
    const since = store.since(revision, 'configmaps')
    if (since.kind === 'expired') break
    expect(
      since.changes.map((change) => change.revision),
      where,
    ).toEqual(Array.from({ length: store.revision - revision }, (_, i) => revision + 1 + i))
  }
}

test('the acknowledged state can be read when the power is lost directly after the removal of old logs', async () => {
  // After a loss of power, this disk has all changes of file names, but no bytes that were not synced.
  const disk = await newDisk({ next: () => 0.999 })
  const { store } = await openOn(disk)
  const isRemoved = () => !disk.paths.includes(`${folder}/log-0000000001`)
  for (let turn = 0; !isRemoved(); turn++) await put(store, at(`a-${turn % 4}`), { text: `${turn} ${'x'.repeat(900)}` })
  disk.restart('loss of power')
  const { snapshots } = await readState(disk, folder, 'acknowledged')
  expect(snapshots.get('main')?.objects.size).toBe(4)
})
