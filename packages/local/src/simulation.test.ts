import { expect, test } from 'vitest'
import { failureAt, progress } from './simulation.ts'

const failure = { message: 'no capacity' }
const once = { message: 'no capacity', times: 1 }

// An attempt takes 2 s, and the next one starts 5 s after a failed one: 0 … 2 (… 7 … 9).
test.each([
  ['without a delay it is done at once', 0, {}, { state: 'done', at: 0 }],
  ['with a delay it runs first', 1999, { delay: '2s' }, { state: 'running', until: 2000 }],
  ['and is done when the delay is over', 2000, { delay: '2s' }, { state: 'done', at: 2000 }],
  ['it stays done', 900_000, { delay: '2s' }, { state: 'done', at: 2000 }],
  ['a scripted failure is reported after the delay', 1000, { delay: '2s', failure }, { state: 'running', until: 2000 }],
  ['a permanent failure is never retried', 2000, { delay: '2s', failure }, { state: 'failed', message: 'no capacity' }],
  [
    'a permanent failure is not retried later either',
    900_000,
    { delay: '2s', failure },
    { state: 'failed', message: 'no capacity' },
  ],
  ['one failure is retried', 3000, { delay: '2s', failure: once }, { state: 'failed', message: 'no capacity', retryAt: 7000 }],
  ['the next attempt takes as long', 7000, { delay: '2s', failure: once }, { state: 'running', until: 9000 }],
  ['and succeeds', 9000, { delay: '2s', failure: once }, { state: 'done', at: 9000 }],
  ['waits when the clock was set back', -1000, { delay: '2s' }, { state: 'running', until: 2000 }],
  ['does not wait for the hour by which the clock was set back', -3_600_000, { delay: '2s' }, { state: 'done', at: -3_600_000 }],
  ['is over without a delay, also when the clock was set back', -1000, {}, { state: 'done', at: -1000 }],
  [
    'a permanent failure stays one when the clock was set back',
    -3_600_000,
    { delay: '2s', failure },
    { state: 'failed', message: 'no capacity' },
  ],
])('%s', (_, now, script, expected) => {
  expect(progress(0, now, script)).toEqual(expected)
})

test('only the scripted stage fails', () => {
  const scripted: { at: 'provisioning' | 'node'; message: string } = { at: 'node', message: 'no capacity' }
  expect(failureAt(scripted, 'node')).toBe(scripted)
  expect(failureAt(scripted, 'provisioning')).toBeUndefined()
})
