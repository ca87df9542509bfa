import { setImmediate } from 'node:timers/promises'
import { VirtualClock } from '@capstan/kube'
import { expect, test } from 'vitest'
import { WebhookCaller } from './webhook-caller.ts'

test('a call fails if the request that causes it has already ended, even if the transport ignores the abort signal; no timer remains', async () => {
  const clock = new VirtualClock()
  const transport = { post: () => new Promise<never>(() => {}), close() {} }
  const caller = new WebhookCaller({ clock, transport })
  const call = caller.call({ url: 'https://127.0.0.1:9443/x' }, 10, {}, AbortSignal.abort())
  const pending = setImmediate('still pending')
  await expect(Promise.race([call, pending])).rejects.toThrow('context canceled')
  expect(clock.nextDue).toBeUndefined()
})
