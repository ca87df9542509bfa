import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { eventLoopYielder, hours, inPieces, seconds, timeLeft, VirtualClock, type Work } from './clock.ts'

/** Creates an event loop whose time passes only with work. It records the tasks of each turn, and the pauses. */
function fakeEventLoop({ countsTurns = true } = {}) {
  let now = 0
  const turns: string[][] = [[]]
  const pauses: number[] = []
  const yieldIfDue = eventLoopYielder({
    now: () => now,
    turnNumber: countsTurns ? () => turns.length : undefined,
    async turn() {
      await setImmediate()
      turns.push([])
    },
    async pause(ms) {
      pauses.push(ms)
      for (let turn = 0; turn < ms; turn++) {
        await setImmediate()
        turns.push([])
      }
    },
  })
  return {
    turns,
    pauses,
    async work(name: string, pieces: number): Promise<void> {
      for (let piece = 1; piece <= pieces; piece++) {
        for (let pause = yieldIfDue(); pause; pause = yieldIfDue()) await pause
        now++
        turns.at(-1)!.push(`${name}${piece}`)
        await Promise.resolve()
      }
    },
    /** Runs pieces of work that take `length` milliseconds each. */
    async long(pieces: number, length = 60): Promise<void> {
      const work = function* (): Work<void> {
        for (let piece = 1; piece <= pieces; piece++) {
          yield
          now += length
          turns.at(-1)!.push(`long${piece}`)
        }
      }
      await inPieces(Object.assign(new VirtualClock(), { yieldIfDue }), work())
    },
  }
}

test.each([true, false])(
  'eventLoopYielder allows ten milliseconds of work in each turn of the event loop; turns are counted: %s',
  async (countsTurns) => {
    const { work, turns } = fakeEventLoop({ countsTurns })
    await work('a', 25)
    expect(turns.map(({ length }) => length)).toEqual([10, 10, 5])
  },
)

test('eventLoopYielder does not count the time between two turns, and schedules the end of a turn only for waiting work', async () => {
  let [now, turnNumber, scheduled] = [0, 1, 0]
  const turn = async () => void scheduled++
  const yieldIfDue = eventLoopYielder({ now: () => now, turnNumber: () => turnNumber, turn, pause: async () => {} })
  for (let count = 0; count < 5; count++) {
    now += 50
    turnNumber++
    expect(yieldIfDue()).toBeUndefined()
    now += 9
    expect(yieldIfDue()).toBeUndefined()
  }
  expect(scheduled).toBe(0)
  now++
  await Promise.all([yieldIfDue(), yieldIfDue()])
  expect(scheduled).toBe(1)
  expect(yieldIfDue()).toBeUndefined()
})

test('eventLoopYielder schedules the end of a turn at the first call in the turn if turns are not counted', async () => {
  let [now, scheduled] = [0, 0]
  const turn = async () => {
    scheduled++
    await setImmediate()
  }
  const yieldIfDue = eventLoopYielder({ now: () => now, turnNumber: undefined, turn, pause: async () => {} })
  for (let count = 1; count <= 5; count++) {
    now += 50
    expect(yieldIfDue()).toBeUndefined()
    now += 9
    expect(yieldIfDue()).toBeUndefined()
    expect(scheduled).toBe(count)
    await setImmediate()
  }
})

test('after a turn, the tasks that have waited longest continue', async () => {
  const { work, turns } = fakeEventLoop()
  await Promise.all([work('busy', 10), ...'abcdefghijklmno'.split('').map((name) => work(name, 2))])
  expect(turns.map((tasks) => tasks.join(' '))).toMatchInlineSnapshot(`
    [
      "busy1 a1 b1 c1 d1 e1 f1 g1 h1 i1",
      "j1 k1 l1 m1 n1 o1 busy2 a2 b2 c2",
      "d2 e2 f2 g2 h2 i2 j2 k2 l2 m2",
      "n2 o2 busy3 busy4 busy5 busy6 busy7 busy8 busy9 busy10",
    ]
  `)
})

test('waiting work runs to its end after a piece that took too long', async () => {
  const { work, long, turns } = fakeEventLoop()
  await Promise.all([long(3), work('small', 15)])
  expect(turns.map((tasks) => tasks.join(' ')).filter(Boolean)).toMatchInlineSnapshot(`
    [
      "long1",
      "small1 small2 small3 small4 small5 small6 small7 small8 small9 small10",
      "small11 small12 small13 small14 small15",
      "long2",
      "long3",
    ]
  `)
})

test.each([true, false])(
  'work pauses after a turn of at least twenty milliseconds, for a tenth of its length and at most ten milliseconds; turns are counted: %s',
  async (countsTurns) => {
    const pausesAfter = async (length: number) => {
      const { long, pauses } = fakeEventLoop({ countsTurns })
      await long(2, length)
      return pauses
    }
    expect(await Promise.all([1, 10, 19, 20, 60, 5000].map(pausesAfter))).toEqual([[], [], [], [2], [6], [10]])
  },
)

test('work in pieces pauses at a yield when a pause is due, and returns its result', async () => {
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

test('a virtual clock that is set back keeps the delays of its callbacks', () => {
  const clock = new VirtualClock(0)
  const ran: number[] = []
  clock.schedule(seconds(10), () => ran.push(clock.elapsed()))
  clock.shift(-hours(1))
  expect([clock.now(), clock.elapsed(), clock.nextDue]).toEqual([-hours(1), 0, seconds(10) - hours(1)])
  while (clock.step(clock.now() + seconds(20)));
  expect(ran).toEqual([seconds(10)])
})

test.each([
  ['the whole period at its start', 0, 10],
  ['the rest of the period later', 4, 6],
  ['zero at the end of the period', 10, 0],
  ['a negative number after the period', 12, -2],
  ['at most twice the period when the clock was set back', -10, 20],
  ['zero when the clock was set back by more than the period', -3600, 0],
])('timeLeft returns %s', (_, now, left) => {
  expect(timeLeft({ since: 0, length: seconds(10), now: seconds(now) })).toBe(seconds(left))
})
