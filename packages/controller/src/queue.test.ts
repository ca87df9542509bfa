import { hours, seconds, VirtualClock } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { Queue } from './queue.ts'

const start = Date.UTC(2026, 0, 1)

function setup(options: { burst?: number; interval?: number; changeCost?: number } = {}) {
  const clock = new VirtualClock(start)
  const reports: string[] = []
  const metrics = {
    added: () => reports.push('added'),
    retried: () => reports.push('retried'),
    taken: (ms: number) => reports.push(`taken after ${ms}`),
    done: (ms: number) => reports.push(`done after ${ms}`),
  }
  const queue = new Queue(clock, { ...options, onReady: () => {}, metrics })
  const finish = (key: string, result: Partial<Parameters<Queue['done']>[1]> = {}) =>
    queue.done(key, { changed: false, failed: false, held: false, ...result })
  return { clock, queue, finish, reports, elapsed: () => (clock.now() - start) / 1000 }
}

describe('Queue', () => {
  test('a key that is added twice runs once', () => {
    const { queue } = setup()
    queue.add('a')
    queue.add('a')
    expect([queue.take(), queue.take()]).toEqual(['a', undefined])
  })

  test('reports how long keys waited and ran, and that a key was added with a delay', () => {
    const { clock, queue, finish, reports } = setup()
    queue.add('a')
    queue.add('a')
    queue.add('b', { lowPriority: true })
    expect(queue.depths).toEqual({ normal: 1, low: 1 })
    clock.step(start + 30)
    queue.take()
    clock.step(start + 50)
    finish('a', { failed: true })
    clock.step(start + 55)
    queue.take()
    expect(reports).toEqual(['added', 'added', 'taken after 30', 'done after 20', 'retried', 'added', 'taken after 0'])
  })

  test('a key that is added while it runs is run once more afterwards', () => {
    const { queue, finish } = setup()
    queue.add('a')
    queue.take()
    queue.add('a')
    expect(queue.take()).toBeUndefined()
    finish('a')
    expect(queue.take()).toBe('a')
  })

  test('keys of low priority run after keys of normal priority', () => {
    const { queue } = setup()
    queue.add('old', { lowPriority: true })
    queue.add('new')
    expect([queue.take(), queue.take()]).toEqual(['new', 'old'])
  })

  test('a ready key of low priority that is added again with normal priority runs after the other keys of normal priority', () => {
    const { clock, queue, reports } = setup()
    for (const key of ['a', 'b', 'c']) queue.add(key, { lowPriority: true })
    queue.add('d')
    clock.step(start + 30)
    queue.add('b')
    queue.add('b', { lowPriority: true })
    expect(queue.depths).toEqual({ normal: 2, low: 2 })
    expect([queue.take(), queue.take(), queue.take(), queue.take(), queue.take()]).toEqual(['d', 'b', 'a', 'c', undefined])
    expect(reports.filter((report) => report === 'added')).toHaveLength(4)
  })

  test('a key on hold runs when it is released, if it was added while it was on hold', () => {
    const { queue, finish } = setup()
    queue.add('a')
    queue.take()
    finish('a', { held: true })
    queue.add('a')
    expect(queue.take()).toBeUndefined()
    queue.release('a')
    expect(queue.take()).toBe('a')
    finish('a', { held: true })
    queue.release('a')
    expect(queue.take()).toBeUndefined()
  })

  test('an event that arrives during a failing reconcile bypasses the backoff', () => {
    const { queue, finish } = setup()
    queue.add('a')
    queue.take()
    queue.add('a')
    finish('a', { failed: true })
    expect(queue.take()).toBe('a')
  })

  test.each([
    ["the reconcile's own change does not bypass", 'own', undefined],
    ["another client's change bypasses", 'other', 'a'],
  ])('%s the backoff after a failed reconcile', (_, change, next) => {
    for (const when of ['while running', 'on hold', 'after release']) {
      const { queue, finish } = setup()
      queue.add('a')
      queue.take()
      if (when === 'while running') queue.add('a', { change })
      finish('a', { failed: true, held: true, ignores: (ignored) => ignored === 'own' })
      if (when === 'on hold') queue.add('a', { change })
      queue.release('a')
      if (when === 'after release') queue.add('a', { change })
      expect([when, queue.take()]).toEqual([when, next])
    }
  })

  test('a failure is retried after 5 ms, the delay doubles with each failure, and a success resets it', () => {
    const { clock, queue, finish, elapsed } = setup({ burst: 100 })
    const times: number[] = []
    queue.add('a')
    for (let i = 0; i < 5; i++) {
      queue.take()
      finish('a', { failed: true })
      clock.step(clock.nextDue!)
      times.push(elapsed() * 1000)
    }
    expect(times).toEqual([5, 15, 35, 75, 155])
    queue.take()
    finish('a', { changed: true })
    queue.add('a')
    queue.take()
    finish('a', { failed: true })
    clock.step(clock.nextDue!)
    expect(elapsed() * 1000).toBe(160)
  })

  test.each([
    ['during', true],
    ['after', false],
  ])('a key whose reconciles change nothing runs once a second after a burst, if added %s each reconcile', (_, duringRun) => {
    const { clock, queue, finish, elapsed } = setup({ burst: 3 })
    const runs: number[] = []
    queue.add('a')
    while (elapsed() < 3) {
      const key = queue.take()
      if (key === undefined) {
        if (clock.nextDue === undefined) break
        clock.step(clock.nextDue)
        continue
      }
      runs.push(elapsed())
      if (duringRun) queue.add('a')
      finish('a', { changed: false })
      if (!duringRun) queue.add('a')
      if (runs.length > 10) break
    }
    expect(runs.slice(0, 6)).toEqual([0, 0, 0, 0, 1, 2])
  })

  test('a key whose reconciles change something has a budget for four times as many reconciles, and then runs four times a second', () => {
    const { clock, queue, finish, elapsed } = setup({ burst: 3 })
    const times: number[] = []
    queue.add('b')
    for (let i = 0; i < 21; i++) {
      if (queue.depth === 0) clock.step(clock.nextDue!)
      times.push(elapsed())
      expect(queue.take()).toBe('b')
      queue.add('b')
      finish('b', { changed: true })
    }
    expect(times.slice(0, 13)).toEqual(Array(13).fill(0))
    expect(times.slice(13)).toEqual([0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2])
  })

  test('with changeCost 1, reconciles that change something are limited like reconciles that change nothing', () => {
    const { clock, queue, finish, elapsed } = setup({ burst: 2, interval: seconds(15), changeCost: 1 })
    const runs: number[] = []
    for (queue.add('a'); runs.length < 6; ) {
      if (queue.take() === undefined) {
        clock.step(clock.nextDue!)
        continue
      }
      runs.push(elapsed())
      queue.add('a')
      finish('a', { changed: true })
    }
    expect(runs).toEqual([0, 0, 0, 15, 30, 45])
  })

  test('the earliest delay of a key applies', () => {
    const { clock, queue, elapsed } = setup()
    queue.addAfter('a', seconds(10))
    queue.addAfter('a', seconds(3))
    queue.addAfter('a', seconds(20))
    clock.step(start + seconds(60))
    expect([queue.take(), elapsed()]).toEqual(['a', 3])
  })

  test.each([
    ['back', -hours(1)],
    ['ahead', hours(1)],
  ])('a clock set %s does not change rate limits', (_, step) => {
    const { clock, queue, finish } = setup({ burst: 3 })
    queue.add('a')
    queue.take()
    clock.shift(step)
    queue.add('a')
    finish('a')
    expect(queue.take()).toBe('a')
    for (let run = 0; run < 3; run++) {
      queue.add('a')
      finish('a')
      queue.take()
    }
    expect(queue.take()).toBeUndefined()
    queue.add('a')
    expect([queue.depth, clock.nextDue! - clock.now()]).toEqual([0, seconds(1)])
  })

  test('a clock set back does not lengthen delays', () => {
    const { clock, queue } = setup()
    queue.addAfter('a', seconds(10))
    clock.shift(-hours(1))
    queue.addAfter('a', seconds(20))
    clock.step(clock.now() + seconds(10))
    expect(queue.take()).toBe('a')
  })

  test('a key whose delay ends while it is on hold runs when it is released, even when the clock was set back', () => {
    const { clock, queue, finish } = setup()
    queue.add('a')
    queue.take()
    finish('a', { held: true, after: seconds(1) })
    clock.step(clock.now() + seconds(1))
    clock.shift(-hours(1))
    queue.release('a')
    expect(queue.take()).toBe('a')
  })

  describe('changes that may wait', () => {
    const ran = (ms: number, result: Parameters<ReturnType<typeof setup>['finish']>[1] = {}) => {
      const env = setup()
      env.queue.add('a')
      env.queue.take()
      env.clock.step(start + ms)
      env.finish('a', { changed: true, ...result })
      return env
    }

    test('run a key at once after its pause has ended', () => {
      const { clock, queue } = ran(50)
      clock.step(start + 250)
      queue.add('a', { mayWait: true })
      expect(queue.take()).toBe('a')
    })

    test('run a key once after a pause of four times the duration of its last run', () => {
      const { clock, queue, elapsed } = ran(50)
      queue.add('a', { mayWait: true })
      queue.add('a', { mayWait: true })
      expect(queue.depth).toBe(0)
      clock.step(start + seconds(1))
      expect([queue.take(), elapsed(), queue.take()]).toEqual(['a', 0.25, undefined])
    })

    test('wait for at most a second', () => {
      const { clock, queue, elapsed } = ran(seconds(30))
      queue.add('a', { mayWait: true })
      clock.step(start + seconds(60))
      expect([queue.take(), elapsed()]).toEqual(['a', 31])
    })

    test('do not wait after a run of a few milliseconds', () => {
      const { queue } = ran(4)
      queue.add('a', { mayWait: true })
      expect(queue.take()).toBe('a')
    })

    test('do not delay other changes', () => {
      const { queue } = ran(50)
      queue.add('a', { mayWait: true })
      queue.add('a')
      expect(queue.take()).toBe('a')
    })

    test('wait longer when the cache received the writes of the run late', () => {
      const { clock, queue, elapsed } = ran(50, { held: true })
      queue.add('a', { mayWait: true })
      clock.step(start + 100)
      queue.release('a')
      expect(queue.depth).toBe(0)
      clock.step(start + seconds(1))
      expect([queue.take(), elapsed()]).toEqual(['a', 0.5])
    })

    test('do not delay a key whose own delay ended while it was on hold', () => {
      const { clock, queue } = ran(50, { failed: true, held: true })
      clock.step(start + seconds(1))
      queue.add('a', { mayWait: true })
      queue.release('a')
      expect(queue.take()).toBe('a')
    })

    test.each([
      ['wait after the run during which they arrive', true, 0],
      ['do not delay another change that arrives during the same run', false, 1],
    ])('%s', (_, mayWait, ready) => {
      const { clock, queue, finish } = setup()
      queue.add('a')
      queue.take()
      queue.add('a', { change: 'status', mayWait: true })
      queue.add('a', { change: 'spec', mayWait })
      clock.step(start + 50)
      finish('a', { changed: true })
      expect(queue.depth).toBe(ready)
      clock.step(start + seconds(1))
      expect(queue.take()).toBe('a')
    })
  })

  test('an idle key is neither ready, running nor delayed', () => {
    const { queue, finish } = setup()
    queue.add('a')
    queue.take()
    finish('a')
    expect([queue.depth, queue.running, queue.delayed]).toEqual([0, 0, 0])
  })

  describe('state of keys', () => {
    test.each([
      ['change something', true],
      ['change nothing', false],
    ])('is dropped for most idle keys when their reconciles %s and their budgets are full again', (_, changed) => {
      const { clock, queue, finish } = setup()
      let largest = 0
      for (let i = 0; i < 10_000; i++) {
        queue.add(`k${i}`)
        queue.take()
        // Spends a part of the budget. The budget is full again after at most a second, so only the last keys have a reduced budget.
        finish(`k${i}`, { changed })
        clock.step(clock.now() + 10)
        largest = Math.max(largest, queue.size)
      }
      expect(largest).toBe(1000)
    })

    test('is kept for all keys that wait, are on hold, run again after a failure or have a reduced budget', () => {
      const { clock, queue, finish } = setup({ burst: 1 })
      const run = (key: string, result: Parameters<typeof finish>[1]) => {
        queue.add(key)
        queue.take()
        finish(key, result)
      }
      run('held', { changed: true, held: true })
      run('later', { changed: true, after: hours(1) })
      for (let i = 0; i < 3; i++) {
        run('failed', { failed: true })
        clock.step(clock.nextDue!)
        clock.step(clock.now() + seconds(10))
      }
      expect(queue.take()).toBe('failed')
      for (let i = 0; i < 996; i++) run(`k${i}`, { changed: false })
      clock.step(clock.now() + seconds(10))
      run('limited', { changed: false })
      run('limited', { changed: false })
      queue.add('limited')
      expect(queue.size).toBe(1000)
      // Before it adds key 1001, the queue drops the state of idle keys.
      queue.add('new')
      expect([queue.size, queue.take(), queue.take()]).toEqual([5, 'new', undefined])

      // After three failures, the fourth is retried after 40 ms.
      finish('failed', { failed: true })
      const failedAt = clock.now()
      queue.add('held')
      expect(queue.take()).toBeUndefined()
      queue.release('held')
      expect(queue.take()).toBe('held')
      clock.step(clock.nextDue!)
      expect([queue.take(), clock.now() - failedAt]).toEqual(['failed', 40])
    })
  })
})
