import { setImmediate } from 'node:timers/promises'
import { VirtualClock } from '@capstan/kube'
import { beforeEach, expect, test } from 'vitest'
import { MaxPause, WatchScheduler, BatchSize } from './watch-scheduler.ts'

let clock: VirtualClock
let scheduler: WatchScheduler
beforeEach(() => {
  clock = new VirtualClock()
  scheduler = new WatchScheduler(clock)
})

/** Notifies one watcher, in a run that takes `duration` milliseconds. */
async function notifyFor(duration: number): Promise<void> {
  expect(scheduler.turn()).toBeUndefined()
  advance(duration)
  await setImmediate()
}

const advance = (time: number): void => {
  const end = clock.now() + time
  while (clock.step(end));
}

/** Returns the milliseconds that a watcher has to wait from now on. */
async function waitTime(): Promise<number> {
  const from = clock.now()
  let isOver = false
  void Promise.resolve(scheduler.turn()).then(() => (isOver = true))
  for (let time = 0; time <= 1000; time++) {
    await setImmediate()
    if (isOver) return clock.now() - from
    advance(1)
  }
  throw new Error('a watcher waits forever')
}

test('watchers do not wait after a short run, even while other requests are in progress', async () => {
  scheduler.requestStarted()
  await notifyFor(0)
  await notifyFor(1)
  expect(scheduler.turn()).toBeUndefined()
})

test('all watchers of one batch are notified at once', async () => {
  scheduler.requestStarted()
  expect([scheduler.turn(), scheduler.turn(), scheduler.turn()]).toEqual([undefined, undefined, undefined])
})

test('a run of several batches yields to the event loop after each batch, and notifies watchers in order', async () => {
  const notified: number[] = []
  for (let watcher = 0; watcher < 2.5 * BatchSize; watcher++)
    void Promise.resolve(scheduler.turn()).then(() => notified.push(watcher))
  await Promise.resolve()
  const counts = [notified.length]
  for (let eventLoopTurn = 0; eventLoopTurn < 2; eventLoopTurn++) {
    await setImmediate()
    counts.push(notified.length)
  }
  expect(counts.map((count) => count / BatchSize)).toEqual([1, 2, 2.5])
  expect(notified).toEqual(notified.toSorted((a, b) => a - b))
})

test('after a long run, watchers pause for three times its duration while a request is in progress', async () => {
  scheduler.requestStarted()
  await notifyFor(10)
  expect(await waitTime()).toBe(30)
})

test('after a run of one second, watchers pause for the maximum time', async () => {
  scheduler.requestStarted()
  await notifyFor(1000)
  expect(await waitTime()).toBe(MaxPause)
})

test('after a long run without other requests in progress, watchers pause for only two milliseconds', async () => {
  await notifyFor(10)
  expect(await waitTime()).toBe(2)
})

test('the pause ends two milliseconds after the last of the other requests has ended', async () => {
  scheduler.requestStarted()
  scheduler.requestStarted()
  await notifyFor(10)
  scheduler.requestEnded()
  advance(5)
  scheduler.requestEnded()
  expect(await waitTime()).toBe(2)
})

test('gaps of one millisecond between requests do not end the pause early', async () => {
  scheduler.requestStarted()
  await notifyFor(10)
  const end = clock.now() + 30
  for (let request = 0; request < 9; request++) {
    scheduler.requestEnded()
    advance(1)
    scheduler.requestStarted()
    advance(2)
  }
  await waitTime()
  expect(clock.now()).toBe(end)
})

test('watchers that waited are notified in a new run, which a new pause follows', async () => {
  scheduler.requestStarted()
  await notifyFor(10)
  const turn = scheduler.turn()!
  advance(30)
  await turn
  advance(4)
  await setImmediate()
  expect(await waitTime()).toBe(12)
})

test('after a pause without other requests, no timer is left', async () => {
  await notifyFor(10)
  advance(100)
  await setImmediate()
  expect(clock.nextDue).toBeUndefined()
})
