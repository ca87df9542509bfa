import { setImmediate } from 'node:timers/promises'
import { VirtualClock } from '@capstan/kube'
import { beforeEach, expect, test } from 'vitest'
import { LongestRest, Rounds, Together } from './rounds.ts'

let clock: VirtualClock
let rounds: Rounds
beforeEach(() => {
  clock = new VirtualClock()
  rounds = new Rounds(clock)
})

/** A round in which telling the watchers takes so long. */
async function round(took: number): Promise<void> {
  expect(rounds.turn()).toBeUndefined()
  pass(took)
  await setImmediate()
}

const pass = (time: number): void => {
  const end = clock.now() + time
  while (clock.step(end));
}

/** Milliseconds that a watcher waits from now on. */
async function waits(): Promise<number> {
  const from = clock.now()
  let isOver = false
  void Promise.resolve(rounds.turn()).then(() => (isOver = true))
  for (let time = 0; time <= 1000; time++) {
    await setImmediate()
    if (isOver) return clock.now() - from
    pass(1)
  }
  throw new Error('a watcher waits for ever')
}

test('watchers who are told in no time wait for nothing, whoever asks', async () => {
  rounds.asked()
  await round(0)
  await round(1)
  expect(rounds.turn()).toBeUndefined()
})

test('all who are told in one round begin at once', async () => {
  rounds.asked()
  expect([rounds.turn(), rounds.turn(), rounds.turn()]).toEqual([undefined, undefined, undefined])
})

test('many who are told in one round let the event loop turn now and then, and are told in their order', async () => {
  const told: number[] = []
  for (let watcher = 0; watcher < 2.5 * Together; watcher++) void Promise.resolve(rounds.turn()).then(() => told.push(watcher))
  await Promise.resolve()
  const counts = [told.length]
  for (let turn = 0; turn < 2; turn++) {
    await setImmediate()
    counts.push(told.length)
  }
  expect(counts.map((count) => count / Together)).toEqual([1, 2, 2.5])
  expect(told).toEqual(told.toSorted((a, b) => a - b))
})

test('after a round, those who ask have three times as long', async () => {
  rounds.asked()
  await round(10)
  expect(await waits()).toBe(30)
})

test('watchers never wait longer than a moment', async () => {
  rounds.asked()
  await round(1000)
  expect(await waits()).toBe(LongestRest)
})

test('nobody who asks, nobody to wait for', async () => {
  await round(10)
  expect(await waits()).toBe(2)
})

test('who has asked and is answered is waited for no longer', async () => {
  rounds.asked()
  rounds.asked()
  await round(10)
  rounds.answered()
  pass(5)
  rounds.answered()
  expect(await waits()).toBe(2)
})

test('who asks one thing after the other is waited for until the time is up', async () => {
  rounds.asked()
  await round(10)
  const end = clock.now() + 30
  for (let request = 0; request < 9; request++) {
    rounds.answered()
    pass(1)
    rounds.asked()
    pass(2)
  }
  await waits()
  expect(clock.now()).toBe(end)
})

test('what waited is a round of its own', async () => {
  rounds.asked()
  await round(10)
  const turn = rounds.turn()!
  pass(30)
  await turn
  pass(4)
  await setImmediate()
  expect(await waits()).toBe(12)
})

test('nothing is left behind once it is quiet', async () => {
  await round(10)
  pass(100)
  await setImmediate()
  expect(clock.nextDue).toBeUndefined()
})
