import { createApiServer } from '@capstan/kubernetes-kinds'
import { ConfigMap, createClient, hours, minutes, seededRandom, timestamp, VirtualClock } from '@capstan/kube'
import { expect, test } from 'vitest'
import { virtualTimestamps } from './virtual-timestamps.ts'

/**
 * Starts a server whose clock is nine hours ahead of `clock`. Returns the clients `first` and `second`, which receive times of `clock`, and
 * the client `unwrapped`, which receives times of the server's clock.
 */
async function start() {
  const clock = new VirtualClock()
  const server = createApiServer({ clock: new VirtualClock(clock.now() + hours(9)), random: seededRandom(1) })
  await server.ready
  const stamps = virtualTimestamps(clock)
  const [first, second] = [0, 1].map(() => createClient(stamps.wrap(server.transport())))
  return { clock, first: first!, second: second!, unwrapped: createClient(server.transport()) }
}

const key = { namespace: 'default', name: 'a' }

test('the creation and deletion times of an object are the virtual times when they were first received, the same for all clients', async () => {
  const { clock, first, second } = await start()
  const createdAt = timestamp(clock.now())
  expect((await first.create(ConfigMap, { metadata: key })).metadata.creationTimestamp).toBe(createdAt)
  clock.step(clock.now() + minutes(5))
  expect((await second.get(ConfigMap, key)).metadata.creationTimestamp).toBe(createdAt)
  const listed = (await second.list(ConfigMap, { namespace: 'default' })).items.find(({ metadata }) => metadata.name === 'a')
  expect(listed?.metadata.creationTimestamp).toBe(createdAt)

  const deletedAt = timestamp(clock.now())
  await first.patch(ConfigMap, key, { type: 'merge', body: { metadata: { finalizers: ['example.com/hold'] } } })
  expect((await first.delete(ConfigMap, key))?.metadata.deletionTimestamp).toBe(deletedAt)
  clock.step(clock.now() + minutes(5))
  expect((await second.get(ConfigMap, key)).metadata).toMatchObject({
    creationTimestamp: createdAt,
    deletionTimestamp: deletedAt,
  })
})

test('watch events have the virtual creation time, and an update does not change the creation time on the server', async () => {
  const { first, second, unwrapped } = await start()
  const { metadata } = await first.list(ConfigMap, { namespace: 'default' })
  const watchEnd = new AbortController()
  const options = { namespace: 'default', resourceVersion: metadata.resourceVersion, signal: watchEnd.signal }
  const events = (await second.watch(ConfigMap, options))[Symbol.asyncIterator]()
  const created = await first.create(ConfigMap, { metadata: key })
  expect((await events.next()).value.object.metadata).toEqual(created.metadata)
  watchEnd.abort()

  const serverTime = (await unwrapped.get(ConfigMap, key)).metadata.creationTimestamp
  expect(serverTime).not.toBe(created.metadata.creationTimestamp)
  const updated = await first.update(ConfigMap, { ...created, data: { a: 'b' } })
  expect(updated.metadata.creationTimestamp).toBe(created.metadata.creationTimestamp)
  expect((await unwrapped.get(ConfigMap, key)).metadata.creationTimestamp).toBe(serverTime)
})
