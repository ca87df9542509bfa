import { expect, test } from 'vitest'
import { failureAt, progress } from './simulation.ts'

const failure = { message: 'no capacity' }
const once = { message: 'no capacity', times: 1 }

// With a delay of 2 s, each attempt takes 2 s. The next attempt starts 5 s after a failure: the first lasts from 0 to 2 s, the second from
// 7 to 9 s.
test.each([
  ['is done at once without a delay', 0, {}, { state: 'done', at: 0 }],
  ['runs until the delay is over', 1999, { delay: '2s' }, { state: 'running', until: 2000 }],
  ['is done when the delay is over', 2000, { delay: '2s' }, { state: 'done', at: 2000 }],
  ['is done at any later time', 900_000, { delay: '2s' }, { state: 'done', at: 2000 }],
  ['runs until the delay is over before a simulated failure', 1000, { delay: '2s', failure }, { state: 'running', until: 2000 }],
  [
    'fails without a retry time for a permanent failure',
    2000,
    { delay: '2s', failure },
    { state: 'failed', message: 'no capacity' },
  ],
  ['fails permanently at any later time', 900_000, { delay: '2s', failure }, { state: 'failed', message: 'no capacity' }],
  [
    'fails with a retry time when only the first attempt fails',
    3000,
    { delay: '2s', failure: once },
    { state: 'failed', message: 'no capacity', retryAt: 7000 },
  ],
  ['runs for the same delay in the retry', 7000, { delay: '2s', failure: once }, { state: 'running', until: 9000 }],
  ['is done after the delay of the retry', 9000, { delay: '2s', failure: once }, { state: 'done', at: 9000 }],
  [
    'still ends 2 s after its start when the clock was set back by a second',
    -1000,
    { delay: '2s' },
    { state: 'running', until: 2000 },
  ],
  ['does not wait for the hour by which the clock was set back', -3_600_000, { delay: '2s' }, { state: 'done', at: -3_600_000 }],
  ['is done without a delay, even when the clock was set back', -1000, {}, { state: 'done', at: -1000 }],
  [
    'fails permanently, even when the clock was set back',
    -3_600_000,
    { delay: '2s', failure },
    { state: 'failed', message: 'no capacity' },
  ],
])('a simulated step %s', (_, now, script, expected) => {
  expect(progress(0, now, script)).toEqual(expected)
})

test('a simulated failure affects only its own stage', () => {
  const scripted: { at: 'provisioning' | 'node'; message: string } = { at: 'node', message: 'no capacity' }
  expect(failureAt(scripted, 'node')).toBe(scripted)
  expect(failureAt(scripted, 'provisioning')).toBeUndefined()
})
