import { Event, hours, seconds } from '@capstan/kube'
import { expect, test } from 'vitest'
import { quiet, testServer } from '../test-server.ts'

test.each([
  ['not changed', 0],
  ['set back', -hours(1)],
])('an Event is deleted after its lifetime, counted from its last write, by a clock that is %s', async (_, step) => {
  const { client, clock, server } = await testServer({ controllers: { eventLifetime: seconds(60) } })
  const event = (name: string) => ({
    metadata: { name, namespace: 'default' },
    involvedObject: { kind: 'Namespace', name: 'default', namespace: 'default' },
  })
  const wait = async (s: number) => {
    const end = clock.now() + seconds(s)
    while (clock.step(end)) await quiet()
    await quiet()
    return server.store.list('events').map(({ metadata }) => metadata.name)
  }
  await client.create(Event, event('a'))
  await wait(10)
  await client.create(Event, event('b'))
  await wait(10)
  await client.patch(Event, { namespace: 'default', name: 'a' }, { type: 'merge', body: { reason: 'Again' } })
  clock.shift(step)
  expect(await wait(49)).toEqual(['a', 'b'])
  expect(await wait(2)).toEqual(['a'])
  expect(await wait(10)).toEqual([])
  expect(clock.nextDue, 'nothing is left to wait for').toBeUndefined()
})
