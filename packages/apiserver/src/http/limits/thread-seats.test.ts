import { VirtualClock } from '@capstan/kube'
import { expect, test } from 'vitest'
import { threadSeats } from './thread-seats.ts'

test('ordinary users leave one thread for controllers and one for superusers', async () => {
  const take = threadSeats(new VirtualClock())
  const { signal } = new AbortController()
  const getsThread = (level: string, flow: string, isExempt = false) =>
    !(take({ level, flow, isExempt }, signal) instanceof Promise)
  expect(getsThread('global-default', 'a')).toBe(true)
  expect(getsThread('workload-low', 'b')).toBe(true)
  expect(getsThread('global-default', 'c')).toBe(false)
  expect(getsThread('workload-high', 'controller')).toBe(true)
  expect(getsThread('exempt', 'admin', true)).toBe(true)
})
