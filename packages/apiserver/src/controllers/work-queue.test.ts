import { type LogFields, seconds, silent, VirtualClock } from '@capstan/kube'
import { expect, test } from 'vitest'
import { quiet } from '@capstan/kubernetes-kinds/test-server'
import { WorkQueue } from './work-queue.ts'

function aQueue(run: (key: string) => Promise<void>) {
  const clock = new VirtualClock()
  const logged: LogFields[] = []
  const log = { ...silent, error: (_message: string, fields: LogFields = {}) => void logged.push(fields) }
  return { clock, logged, queue: new WorkQueue({ name: 'test', clock, log, run }) }
}

test('a key that is added several times during its run is run once more', async () => {
  const runs: string[] = []
  const finish: (() => void)[] = []
  const { queue } = aQueue((key) => {
    runs.push(key)
    return new Promise((resolve) => finish.push(resolve))
  })
  queue.add('a')
  for (let i = 0; i < 3; i++) queue.add('a')
  queue.add('b')
  expect(runs).toEqual(['a', 'b'])
  finish.shift()!()
  await quiet()
  expect(runs).toEqual(['a', 'b', 'a'])
})

test('a failed run is logged, and its key is retried with increasing delays until a run succeeds', async () => {
  const attemptTimes: number[] = []
  const start = Date.UTC(2026, 0, 1)
  const { queue, clock, logged } = aQueue(() => {
    attemptTimes.push((clock.now() - start) / 1000)
    return attemptTimes.length < 4 ? Promise.reject(new Error('no')) : Promise.resolve()
  })
  queue.add('a')
  await quiet()
  while (clock.step(start + seconds(100))) await quiet()
  expect(attemptTimes).toEqual([0, 1, 3, 7])
  expect(logged).toMatchObject([
    { controller: 'test', key: 'a', retryAfterSeconds: 1 },
    { retryAfterSeconds: 2 },
    { retryAfterSeconds: 4 },
  ])
})

test('a closed queue starts nothing and leaves no timer', async () => {
  let runs = 0
  const { queue, clock } = aQueue(() => {
    runs++
    return Promise.reject(new Error('no'))
  })
  queue.add('a')
  await quiet()
  queue.close()
  queue.add('b')
  await quiet()
  expect([runs, clock.nextDue]).toEqual([1, undefined])
})
