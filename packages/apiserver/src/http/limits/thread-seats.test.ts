import { VirtualClock } from '@capstan/kube'
import { expect, test } from 'vitest'
import { threadSeats } from './thread-seats.ts'

test('users whose YAML takes long leave a thread for controllers, and one for superusers', async () => {
  const take = threadSeats(new VirtualClock())
  const { signal } = new AbortController()
  const isTaken = (level: string, flow: string, isExempt = false) => !(take({ level, flow, isExempt }, signal) instanceof Promise)
  expect(isTaken('global-default', 'a')).toBe(true)
  expect(isTaken('workload-low', 'b')).toBe(true)
  expect(isTaken('global-default', 'c')).toBe(false)
  expect(isTaken('workload-high', 'controller')).toBe(true)
  expect(isTaken('exempt', 'admin', true)).toBe(true)
})
