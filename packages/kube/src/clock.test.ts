import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { eventLoopYielder, inPieces, VirtualClock } from './clock.ts'

/** An event loop on which each task takes a millisecond. Records the tasks of each turn. */
function aLoop() {
  let now = 0
  const turns: string[][] = [[]]
  const yieldIfDue = eventLoopYielder({
    now: () => now,
    async turn() {
      await setImmediate()
      turns.push([])
    },
  })
  return {
    turns,
    async work(name: string, pieces: number): Promise<void> {
      for (let piece = 1; piece <= pieces; piece++) {
        for (let pause = yieldIfDue(); pause; pause = yieldIfDue()) await pause
        now++
        turns.at(-1)!.push(`${name}${piece}`)
        await Promise.resolve()
      }
    },
  }
}

test('runs ten milliseconds of work in each turn of the event loop', async () => {
  const { work, turns } = aLoop()
  await work('a', 25)
  expect(turns.map(({ length }) => length)).toEqual([10, 10, 5])
})

test('continues after a turn with the tasks that have waited longest', async () => {
  const { work, turns } = aLoop()
  await Promise.all([work('busy', 10), ...'abcdefghijklmno'.split('').map((name) => work(name, 2))])
  expect(turns.map((done) => done.join(' '))).toMatchInlineSnapshot(`
    [
      "busy1 a1 b1 c1 d1 e1 f1 g1 h1 i1",
      "j1 k1 l1 m1 n1 o1 busy2 a2 b2 c2",
      "d2 e2 f2 g2 h2 i2 j2 k2 l2 m2",
      "n2 o2 busy3 busy4 busy5 busy6 busy7 busy8 busy9 busy10",
    ]
  `)
})

test('work in pieces pauses at its yields when that is due, and returns its result', async () => {
  const done: string[] = []
  function* work() {
    for (const piece of ['first', 'second', 'third']) {
      done.push(piece)
      yield
    }
    return 'all'
  }
  const pauses = [undefined, Promise.resolve().then(() => void done.push('others')), undefined, undefined]
  const clock = Object.assign(new VirtualClock(), { yieldIfDue: () => pauses.shift() })
  expect(await inPieces(clock, work())).toBe('all')
  expect(done).toEqual(['first', 'second', 'others', 'third'])
})
