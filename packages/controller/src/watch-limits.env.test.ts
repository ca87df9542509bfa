import { memoryStore } from '@capstan/apiserver'
import {
  type Client,
  ConfigMap,
  createClient,
  isReason,
  keyText,
  type KubeObject,
  Namespace,
  Secret,
  seededRandom,
  silent,
  systemClock,
  VirtualClock,
} from '@capstan/kube'
import { createApiServer } from '@capstan/kubernetes-kinds'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Controller, controller, watches } from './controller.ts'
import { createManager, type ManagerOptions } from './manager.ts'
import { proceed } from './outcome.ts'

let client: Client
const closing: (() => Promise<unknown>)[] = []
beforeEach(async () => {
  const server = createApiServer({ store: memoryStore(), clock: new VirtualClock(), random: seededRandom(1), log: silent })
  await server.ready
  closing.push(() => server.close())
  client = createClient(server.transport({ name: 'test', groups: ['system:masters'], agent: 'test' }))
  await client.create(Namespace, { metadata: { name: 'one' } })
  await client.create(Namespace, { metadata: { name: 'two' } })
})
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function startManager(limits: Partial<Pick<ManagerOptions, 'namespace' | 'eventFilter' | 'syncPeriod' | 'clock'>>) {
  const reconciled: string[] = []
  const maps = controller({
    name: 'maps',
    for: ConfigMap,
    watches: [{ kind: Namespace, map: ({ metadata }) => [{ name: `namespace ${metadata.name}` }] }],
    reconcile(key) {
      reconciled.push(keyText(key))
      return Promise.resolve(proceed())
    },
  })
  const manager = createManager({
    client,
    clock: systemClock,
    random: seededRandom(1),
    log: silent,
    controllers: [maps],
    ...limits,
  })
  closing.push(() => manager.stop())
  await manager.start()
  const until = async (key: string) => {
    while (!reconciled.includes(key)) await new Promise((resolve) => setImmediate(resolve))
  }
  return { manager, reconciled, until }
}

const create = (namespace: string, name: string, labels = {}) =>
  client.create(ConfigMap, { metadata: { namespace, name, labels } })

test('a manager of one namespace watches only objects of this namespace and cluster-scoped objects', async () => {
  await create('two', 'before')
  const { manager, reconciled, until } = await startManager({ namespace: 'one' })
  await create('two', 'after')
  await create('one', 'own')
  await until('one/own')
  await until('namespace two')
  expect(reconciled.filter((key) => key.startsWith('two/'))).toEqual([])
  expect((await manager.cache.list(ConfigMap)).items.map(({ metadata }) => metadata.namespace)).toEqual(['one'])
})

test("reading an unwatched namespace fails with upstream's error, not with NotFound", async () => {
  await create('two', 'there')
  const { manager } = await startManager({ namespace: 'one' })
  const message = 'unable to get: two/there because of unknown namespace for the cache'
  await expect(manager.cache.get(ConfigMap, { namespace: 'two', name: 'there' })).rejects.toThrow(message)
  expect(() => manager.cache.peek(ConfigMap, { namespace: 'two', name: 'there' })).toThrow(message)
  expect(() => manager.cache.list(ConfigMap, { namespace: 'two' })).toThrow(
    'unable to list: two because of unknown namespace for the cache',
  )
  await expect(manager.cache.get(ConfigMap, { namespace: 'one', name: 'none' })).rejects.toSatisfy((err) =>
    isReason(err, 'NotFound'),
  )
})

test('an event filter gets the new object, or the last state of a deleted object', async () => {
  const { manager, reconciled, until } = await startManager({ eventFilter: ({ metadata }) => metadata.labels?.mine === 'yes' })
  const label = (name: string, mine: string) =>
    client.patch(ConfigMap, { namespace: 'one', name }, { type: 'merge', body: { metadata: { labels: { mine } } } })
  await create('one', 'other')
  await create('one', 'mine', { mine: 'yes' })
  await until('one/mine')
  expect(reconciled).toEqual(['one/mine'])
  // The filter does not limit the cache.
  expect(manager.cache.peek(ConfigMap, { namespace: 'one', name: 'other' })).toBeDefined()

  await label('mine', 'no')
  await label('other', 'yes')
  await until('one/other')
  expect(reconciled).toEqual(['one/mine', 'one/other'])
  await client.delete(ConfigMap, { namespace: 'one', name: 'mine' })
  await client.delete(ConfigMap, { namespace: 'one', name: 'other' })
  while (reconciled.length < 3) await new Promise((resolve) => setImmediate(resolve))
  expect(reconciled).toEqual(['one/mine', 'one/other', 'one/other'])
})

test('an event filter also limits the reconciles that result from events of kinds watched at run time', async () => {
  const reconciled: string[] = []
  const maps = controller({
    name: 'maps',
    for: ConfigMap,
    async reconcile(key, io) {
      reconciled.push(keyText(key))
      await io.watch(Secret, ({ metadata }) => [{ namespace: metadata.namespace!, name: metadata.name }])
      return proceed()
    },
  })
  await startFiltered([maps])
  await untilCount(reconciled, 1)
  for (const name of ['other', 'mine']) await client.create(Secret, { metadata: { namespace: 'one', name } })
  await untilCount(reconciled, 2)
  expect(reconciled).toEqual(['one/mine', 'one/mine'])
})

/** Starts controllers with an event filter, and creates an object that the filter excludes and one that the filter accepts. */
async function startFiltered(controllers: readonly Controller[]): Promise<void> {
  const manager = createManager({
    client,
    clock: systemClock,
    random: seededRandom(1),
    log: silent,
    controllers,
    eventFilter: ({ metadata }) => metadata.labels?.mine === 'yes',
  })
  closing.push(() => manager.stop())
  await manager.start()
  await create('one', 'other')
  await create('one', 'mine', { mine: 'yes' })
}

async function untilCount(reconciled: readonly string[], count: number): Promise<void> {
  while (reconciled.length < count) await new Promise((resolve) => setImmediate(resolve))
}

test('with `filter: keys` in a watch, the event filter applies only to the mapped keys; with `filter: none`, not at all', async () => {
  const sameName = ({ metadata }: KubeObject) => [{ namespace: metadata.namespace!, name: metadata.name }]
  const reconciled: string[] = []
  const maps = (filter: 'keys' | 'none') =>
    controller({
      name: filter,
      for: ConfigMap,
      watches: [{ ...watches(Secret, sameName), filter }],
      async reconcile(key) {
        reconciled.push(`${filter} ${keyText(key)}`)
        return proceed()
      },
    })
  await startFiltered([maps('keys'), maps('none')])
  await untilCount(reconciled, 2)
  for (const name of ['other', 'mine']) await client.create(Secret, { metadata: { namespace: 'one', name } })
  await untilCount(reconciled, 5)
  expect(reconciled.slice(2).sort()).toEqual(['keys one/mine', 'none one/mine', 'none one/other'])
})

test('after the sync period every object that the event filter accepts is reconciled again, until the manager stops', async () => {
  const clock = new VirtualClock()
  await client.create(ConfigMap, { metadata: { name: 'a', namespace: 'one', labels: { mine: 'yes' } } })
  await client.create(ConfigMap, { metadata: { name: 'b', namespace: 'one' } })
  const { manager, reconciled } = await startManager({
    clock,
    syncPeriod: 60_000,
    eventFilter: ({ metadata }) => metadata.labels?.mine === 'yes',
  })
  const advance = async (ms: number) => {
    const end = clock.now() + ms
    do await new Promise((resolve) => setImmediate(resolve))
    while (clock.step(end))
    for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve))
  }
  const reconcileCount = () => reconciled.filter((key) => key === 'one/a').length
  await advance(1000)
  expect(reconcileCount()).toBe(1)
  // The period varies by a tenth.
  await advance(66_000)
  expect(reconcileCount()).toBe(2)
  await advance(66_000)
  expect(reconcileCount()).toBe(3)
  expect(reconciled).not.toContain('one/b')
  await manager.stop()
  await advance(200_000)
  expect(reconcileCount()).toBe(3)
})
