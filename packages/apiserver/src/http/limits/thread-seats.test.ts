import { VirtualClock } from '@capstan/kube'
import { expect, test } from 'vitest'
import { YAMLReader } from '../body/read-yaml.ts'
import { TooManyRequests } from '../exchange.ts'
import { threadSeats } from './thread-seats.ts'

/** YAML that takes much longer to parse than a test lasts. */
const expensive = '"'.repeat(1_000_000)
const long = Array.from({ length: 3000 }, (_, index) => `k${index}: v`).join('\n')

/** Creates a reader on a clock that does not advance. The test ends its requests. */
function newReader() {
  const clock = new VirtualClock()
  const yaml = new YAMLReader(clock, threadSeats(clock))
  return {
    clock,
    read(user: string, text: string) {
      const ending = new AbortController()
      const requester = { level: 'global-default', flow: user, isExempt: user === 'admin' }
      const outcome = yaml.read(text, { requester, ended: () => ending.signal }).then(
        () => 'read',
        (err: unknown) => (err instanceof TooManyRequests ? '429' : (err as Error).message),
      )
      return { outcome, end: () => ending.abort() }
    },
  }
}

test('expensive YAML of one user does not delay that of another', async () => {
  const { read } = newReader()
  const expensiveReads = Array.from({ length: 5 }, () => read('mallory', expensive))
  expect(await read('alice', long).outcome).toBe('read')
  for (const reading of expensiveReads) reading.end()
})

test('expensive YAML of many users does not delay that of a superuser', async () => {
  const { read } = newReader()
  const expensiveReads = Array.from({ length: 5 }, (_, index) => read(`mallory-${index}`, expensive))
  expect(await read('admin', long).outcome).toBe('read')
  for (const reading of expensiveReads) reading.end()
})

test('parsing of YAML ends with its request, whether it waits or runs', async () => {
  const { read } = newReader()
  const [running, waiting] = [read('mallory', expensive), read('mallory', expensive)]
  const next = read('mallory', long)
  running.end()
  waiting.end()
  expect(await running.outcome).toBe('yaml: the request has ended')
  expect(await waiting.outcome).toBe('429')
  expect(await next.outcome).toBe('read')
})

test('a request that waits too long for a thread gets 429', async () => {
  const { read, clock } = newReader()
  const running = read('mallory', expensive)
  const waiting = read('mallory', long)
  await Promise.resolve()
  clock.step(clock.now() + 10_000)
  // The thread of the first request is terminated asynchronously, so its seat is not free yet.
  clock.step(clock.now() + 20_000)
  expect(await waiting.outcome).toBe('429')
  expect(await running.outcome).toBe('yaml: document takes too long to read')
})
