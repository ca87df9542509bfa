import { Event, hours, seconds, silent } from '@capstan/kube'
import { expect, test } from 'vitest'
import { quiet, testServer, type TestServer } from '../test-server.ts'
import { runEventExpiry } from './event-expiry.ts'

const event = (name: string) => ({
  metadata: { name, namespace: 'default' },
  involvedObject: { kind: 'Namespace', name: 'default', namespace: 'default' },
})

/** Returns the names of the Events that exist after this number of seconds. */
async function eventsAfter(s: number, { clock, server }: TestServer): Promise<string[]> {
  const end = clock.now() + seconds(s)
  while (clock.step(end)) await quiet()
  await quiet()
  return server.store.list('events').map(({ metadata }) => metadata.name)
}

test.each([
  ['not changed', 0],
  ['set back', -hours(1)],
])('an Event is deleted after its lifetime, counted from its last write, when the clock is %s', async (_, step) => {
  const env = await testServer({ controllers: { eventLifetime: seconds(60) } })
  const { client, clock } = env
  const wait = (s: number) => eventsAfter(s, env)
  await client.create(Event, event('a'))
  await wait(10)
  await client.create(Event, event('b'))
  await wait(10)
  await client.patch(Event, { namespace: 'default', name: 'a' }, { type: 'merge', body: { reason: 'Again' } })
  clock.shift(step)
  expect(await wait(49)).toEqual(['a', 'b'])
  expect(await wait(2)).toEqual(['a'])
  expect(await wait(10)).toEqual([])
  expect(clock.nextDue, 'no timer is left').toBeUndefined()
})

test('after a restart, the lifetime of an Event is still counted from its last write', async () => {
  const env = await testServer()
  await env.client.create(Event, event('a'))
  await eventsAfter(50, env)
  await env.client.patch(Event, { namespace: 'default', name: 'a' }, { type: 'merge', body: { reason: 'Again' } })
  await eventsAfter(20, env)

  runEventExpiry({ store: env.server.store, clock: env.clock, log: silent }, seconds(60))
  expect(await eventsAfter(39, env)).toEqual(['a'])
  expect(await eventsAfter(2, env)).toEqual([])
})
