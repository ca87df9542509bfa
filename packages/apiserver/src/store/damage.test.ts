import { type KubeObject, seededRandom, silent, VirtualClock } from '@capstan/kube'
import { beforeAll, describe, expect, test } from 'vitest'
import { DamagedData } from './damage.ts'
import { storesOf } from './durable.ts'
import { encodeFrame } from './frame.ts'
import { changeLine } from './snapshot.ts'
import { Journal, makeState } from './journal.ts'
import { SimulatedDisk } from './simulated-disk.ts'
import type { Store } from './store.ts'
import { at, put } from './store.suite.ts'

const folder = '/data/state'
const journalOf = (disk: SimulatedDisk) =>
  Journal.open(folder, { clock: new VirtualClock(), log: silent, files: disk, sync: true, checkpointAfter: 3000 })

/** A folder with two checkpoints and some logs, and its content. */
let intactDisk: SimulatedDisk
let content: string
let nextFrame: number
let newestLog: string
const contentOf = (store: Store) => JSON.stringify([store.revision, store.list('configmaps')])

beforeAll(async () => {
  intactDisk = new SimulatedDisk(seededRandom(1))
  await makeState(intactDisk, folder, new Map(), 0)
  const journal = await journalOf(intactDisk)
  const store = await storesOf(journal, new VirtualClock()).store('main')
  for (let i = 0; i < 40; i++) await put(store, at(`object-${i % 6}`), { turn: String(i), padding: 'x'.repeat(i * 5) })
  content = contentOf(store)
  await store.close()
  await journal.close()
  newestLog = intactDisk.paths.findLast((path) => path.includes('/log-'))!
  // Frames are numbered from 1 across all logs: each log, named by its number, begins with a frame for its header, and each of the 40
  // changes has a frame.
  nextFrame = 40 + Number(newestLog.slice(-10)) + 1
  expect(intactDisk.paths.filter((path) => path.includes('checkpoint'))).toHaveLength(2)
})

type Outcome = { kind: 'complete' } | { kind: 'rejected'; path: string } | { kind: 'different'; content: string }

async function outcomeOf(disk: SimulatedDisk): Promise<Outcome> {
  try {
    const journal = await journalOf(disk)
    const foundContent = contentOf(await storesOf(journal, new VirtualClock()).store('main'))
    await journal.close()
    return foundContent === content ? { kind: 'complete' } : { kind: 'different', content: foundContent }
  } catch (err) {
    if (err instanceof DamagedData) return { kind: 'rejected', path: err.path }
    throw err
  }
}

/** Damages each file in each of the given ways, and counts the outcomes. */
async function outcomesOf(damages: (bytes: Buffer) => Iterable<Buffer>): Promise<Record<string, number>> {
  const counts: Record<string, number> = { complete: 0, rejected: 0 }
  for (const path of intactDisk.paths) {
    const bytes = await intactDisk.read(path)
    for (const damaged of damages(bytes)) {
      const disk = intactDisk.copy()
      disk.damage(path, () => damaged)
      const outcome = await outcomeOf(disk)
      if (outcome.kind === 'different') expect.fail(`${path}: ${outcome.content}`)
      if (outcome.kind === 'rejected') expect(outcome.path).toBe(path)
      counts[outcome.kind] = counts[outcome.kind]! + 1
    }
  }
  return counts
}

describe('all acknowledged writes are readable, or the error of opening names the damaged file, after', () => {
  test('the change of one bit, at many positions', async () => {
    const counts = await outcomesOf(function* (bytes) {
      for (let at = 0; at < bytes.length; at += 1 + (at % 31)) {
        const damaged = Buffer.from(bytes)
        damaged[at]! ^= 1 << (at % 8)
        yield damaged
      }
    })
    expect(counts.rejected).toBeGreaterThan(50)
    // The older checkpoint and its logs are not needed.
    expect(counts['complete']).toBeGreaterThan(50)
  })

  test('the truncation of a file, at many positions', async () => {
    const counts = await outcomesOf(function* (bytes) {
      for (let size = 0; size < bytes.length; size += 1 + (size % 23)) yield bytes.subarray(0, size)
    })
    expect(counts.rejected).toBeGreaterThan(50)
  })

  test('filling a sector or a whole file with zeros', async () => {
    const counts = await outcomesOf(function* (bytes) {
      yield Buffer.alloc(bytes.length)
      for (let at = 0; at < bytes.length; at += 512) yield Buffer.from(bytes).fill(0, at, Math.min(at + 512, bytes.length))
    })
    expect(counts.rejected).toBeGreaterThan(3)
  })

  test('the removal of any file', async () => {
    for (const path of intactDisk.paths) {
      const disk = intactDisk.copy()
      await disk.remove(path)
      const outcome = await outcomeOf(disk)
      expect(outcome.kind === 'complete' || (outcome.kind === 'rejected' && outcome.path === path), path).toBe(true)
    }
  })
})

describe('data that was never acknowledged', () => {
  const frame = () => {
    const object = {
      metadata: { name: 'new', resourceVersion: '41' },
      data: { padding: 'y'.repeat(1500) },
    } as unknown as KubeObject
    return encodeFrame(nextFrame, changeLine('main', { revision: 41, key: at('new'), previous: undefined, object }, 0))
  }
  const withTail = async (tail: Buffer) => {
    const disk = intactDisk.copy()
    disk.damage(newestLog, (bytes) => Buffer.concat([bytes, tail]))
    return outcomeOf(disk)
  }

  test('is dropped when it was truncated, and kept when it is complete', async () => {
    const complete = frame()
    for (let size = 0; size < complete.length; size += size < 40 || size > complete.length - 40 ? 1 : 11)
      expect(await withTail(complete.subarray(0, size)), `cut at ${size}`).toEqual({ kind: 'complete' })
    expect(await withTail(complete)).toMatchObject({ kind: 'different', content: expect.stringContaining('"name":"new"') })
  })

  test('is dropped when some of its sectors are missing', async () => {
    const { length } = await intactDisk.read(newestLog)
    const boundary = 512 - (length % 512)
    for (const from of [0, boundary, boundary + 512]) {
      const tail = Buffer.from(frame()).fill(0, from, Math.min(from + 512, from === 0 ? boundary : Infinity))
      expect(await withTail(tail), `from ${from}`).toEqual({ kind: 'complete' })
    }
    expect(await withTail(Buffer.alloc(3000))).toEqual({ kind: 'complete' })
  })

  test('is reported as damage when a bit has changed, or when a part is missing and another frame follows', async () => {
    const tail = frame()
    tail[200]! ^= 4
    expect(await withTail(tail)).toEqual({ kind: 'rejected', path: newestLog })
    const torn = Buffer.from(frame().fill(0, 300, 1000))
    const later = encodeFrame(nextFrame + 1, '{}')
    expect(await withTail(Buffer.concat([torn, later]))).toEqual({ kind: 'rejected', path: newestLog })
  })
})
