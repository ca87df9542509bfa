import { hours, seconds, VirtualClock } from '@capstan/kube'
import { describe, expect, it, test } from 'vitest'
import { Breaker, type BreakerLimits } from './breaker.ts'
import { HookFailed } from './hook-failed.ts'

const limits: BreakerLimits = { failures: 3, shortest: seconds(1), longest: seconds(8), inFlight: 2 }
const maxWait = seconds(10)
const down = () => Promise.reject(new HookFailed('unreachable', 'connection refused'))
const up = () => Promise.resolve('fine')
const outage = (err: unknown) => err instanceof HookFailed && err.code === 'unreachable'

function aBreaker() {
  const clock = new VirtualClock()
  const breaker = new Breaker(clock, limits)
  const call = (handle: () => Promise<unknown>) => breaker.run(handle, outage, { maxWait }).catch((err) => err.message as string)
  const wait = (ms: number) => void clock.step(clock.now() + ms)
  return { clock, breaker, call, wait }
}

describe('an unresponsive server', () => {
  const notCalled = 'not called, because the last 3 calls failed: connection refused'

  it('is not called after some consecutive failures', async () => {
    const { breaker, call } = aBreaker()
    for (let i = 0; i < 3; i++) expect(await call(down)).toBe('connection refused')
    expect(breaker.state).toBe('open')
    expect(breaker.retryAfter).toBe(1000)
    expect(await call(up)).toBe(notCalled)
  })

  it('is called after the delay, also when the clock is set back', async () => {
    const { breaker, call, clock, wait } = aBreaker()
    for (let i = 0; i < 3; i++) await call(down)
    clock.shift(-hours(1))
    expect(breaker.retryAfter).toBe(1000)
    wait(seconds(1))
    expect(await call(up)).toBe('fine')
  })

  it('gets a single trial call after the delay, whose success closes the breaker', async () => {
    const { breaker, call, wait } = aBreaker()
    for (let i = 0; i < 3; i++) await call(down)
    wait(seconds(1))
    expect(breaker.state).toBe('half-open')
    const gate = Promise.withResolvers<string>()
    const trying = call(() => gate.promise)
    await Promise.resolve()
    expect(await call(up)).toBe(notCalled)
    gate.resolve('fine')
    expect(await trying).toBe('fine')
    expect(breaker.state).toBe('closed')
    expect(await call(up)).toBe('fine')
  })

  it('gets a single trial call after the delay, also when a call that ignores the breaker is aborted meanwhile', async () => {
    const { breaker, call, wait } = aBreaker()
    for (let i = 0; i < 3; i++) await call(down)
    wait(seconds(1))
    const gate = Promise.withResolvers<string>()
    const trying = call(() => gate.promise)
    const signal = AbortSignal.abort(new Error('stopped'))
    const other = breaker.run(() => Promise.reject(signal.reason), outage, { maxWait, signal, callWhenOpen: true })
    await expect(other).rejects.toThrow('stopped')
    expect(await call(up)).toBe(notCalled)
    gate.resolve('fine')
    expect(await trying).toBe('fine')
  })

  it('is called again after a delay that doubles with each failed trial, up to a limit', async () => {
    const { breaker, call, wait } = aBreaker()
    for (let i = 0; i < 3; i++) await call(down)
    const pauses: number[] = []
    for (let i = 0; i < 5; i++) {
      pauses.push(breaker.retryAfter)
      wait(breaker.retryAfter)
      await call(down)
    }
    expect(pauses).toEqual([1000, 2000, 4000, 8000, 8000])
  })
})

test('a failure response of the extension does not count as an outage, and resets the count of failures', async () => {
  const { breaker, call } = aBreaker()
  for (let i = 0; i < 5; i++) {
    await call(down)
    await call(() => Promise.reject(new HookFailed('failure', 'no')))
  }
  expect(breaker.state).toBe('closed')
})

describe('concurrent calls', () => {
  it('beyond the limit wait', async () => {
    const { call } = aBreaker()
    const gates = [Promise.withResolvers<string>(), Promise.withResolvers<string>()]
    const first = gates.map((gate) => call(() => gate.promise))
    let isSettled = false
    const third = call(up).then((response) => {
      isSettled = true
      return response
    })
    await Promise.resolve()
    expect(isSettled).toBe(false)
    gates[0]!.resolve('one')
    expect(await first[0]).toBe('one')
    expect(await third).toBe('fine')
    gates[1]!.resolve('two')
    expect(await first[1]).toBe('two')
  })

  it('beyond the limit fail if they wait too long', async () => {
    const { call, wait } = aBreaker()
    const gate = Promise.withResolvers<string>()
    const first = [call(() => gate.promise), call(() => gate.promise)]
    const third = call(up)
    await Promise.resolve()
    wait(maxWait)
    expect(await third).toBe('not called, because 2 calls are in progress')
    gate.resolve('late')
    expect(await Promise.all(first)).toEqual(['late', 'late'])
    expect(await call(up)).toBe('fine')
  })
})

test('an aborted call neither counts as a failure nor resets the count', async () => {
  const { breaker, call } = aBreaker()
  const abort = new AbortController()
  const aborted = () =>
    breaker.run(
      () => {
        abort.abort()
        return Promise.reject(new Error('the caller has left'))
      },
      outage,
      { maxWait, signal: abort.signal },
    )
  await call(down)
  await call(down)
  await expect(aborted()).rejects.toThrow('the caller has left')
  expect(breaker.state).toBe('closed')
  await call(down)
  expect(breaker.state).toBe('open')
})

test('a call that would wait for calls in progress fails at once if its signal has aborted', async () => {
  const { breaker, call } = aBreaker()
  const gate = Promise.withResolvers<string>()
  const inProgress = [call(() => gate.promise), call(() => gate.promise)]
  const signal = AbortSignal.abort(new Error('stopped'))
  await expect(breaker.run(up, outage, { maxWait, signal })).rejects.toThrow('stopped')
  gate.resolve('fine')
  expect(await Promise.all([...inProgress, call(up)])).toEqual(['fine', 'fine', 'fine'])
})
