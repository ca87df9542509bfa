import { setImmediate } from 'node:timers/promises'
import { ConfigMap, createClient, seededRandom, silent, VirtualClock } from '@capstan/kube'
import { afterEach, describe, expect, test } from 'vitest'
import { createApiServer } from '@capstan/kubernetes-kinds'
import { storesOf } from '../store/durable.ts'
import { Journal, makeState } from '../store/journal.ts'
import { SimulatedDisk } from '../store/simulated-disk.ts'
import type { Identity } from '../auth/authenticate.ts'
import { createHandler } from './handler.ts'
import { storeCheck } from './health.ts'
import { webHandler } from './web.ts'

const folder = '/data/state'
const admin: Identity = { kind: 'user', name: 'admin', groups: ['system:masters'] }
const stops: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

async function serve(disk: SimulatedDisk) {
  const clock = new VirtualClock()
  const journal = await Journal.open(folder, { clock, log: silent, files: disk, sync: true, checkpointAfter: 1_000_000 })
  const stores = storesOf(journal, clock)
  const store = await stores.store('management')
  const server = createApiServer({ clock, random: seededRandom(1), store })
  stops.push(() => server.close().then(() => stores.close()))
  await server.ready
  const handler = createHandler({ engine: server.engine, clock, checks: [storeCheck(store)] })
  const handle = webHandler(handler)
  const send = async (path: string, body?: object) => {
    const init = body ? { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } } : {}
    const response = await handle(new Request(`https://server${path}`, init), admin)
    const text = await response.text()
    return {
      status: response.status,
      retryAfter: response.headers.get('retry-after'),
      body: path.startsWith('/api') ? JSON.parse(text) : text,
    }
  }
  const create = (name: string) => send('/api/v1/namespaces/default/configmaps', { metadata: { name } })
  const names = async () => {
    const { items } = await createClient(server.transport()).list(ConfigMap, { namespace: 'default' })
    return items.map(({ metadata }) => metadata.name)
  }
  return { clock, send, create, names, store }
}

async function newDisk(): Promise<SimulatedDisk> {
  const disk = new SimulatedDisk(seededRandom(1))
  await makeState(disk, folder, new Map(), 0)
  return disk
}

describe.each([
  ['a full disk', 'write', 'ENOSPC: no space left on device, write'],
  ['a sync that fails', 'sync', 'EIO: i/o error, fdatasync'],
])('%s', (_, failingStep, text) => {
  test('makes writes fail while reads succeed; when the disk works again, writes are stored in a new log', async () => {
    const disk = await newDisk()
    const { clock, send, create, names, store } = await serve(disk)
    await create('before')
    const { revision } = store
    const logs = () => disk.paths.filter((path) => path.includes('/log-'))
    const [old] = logs()
    disk.beforeStep = (step) => {
      if (step === failingStep) throw new Error(text)
    }
    expect(await create('first')).toMatchObject({
      status: 500,
      body: {
        kind: 'Status',
        reason: 'InternalError',
        message: `Internal error occurred: the write could not be made durable: ${text}`,
      },
    })
    expect(await create('second')).toMatchObject({
      status: 503,
      retryAfter: '1',
      body: { reason: 'ServiceUnavailable', message: `the store takes no writes: ${text}`, details: { retryAfterSeconds: 1 } },
    })
    expect(await send('/readyz')).toMatchObject({ status: 500, body: expect.stringContaining('[-]etcd failed: reason withheld') })
    expect([(await send('/healthz')).status, (await send('/livez')).status]).toEqual([500, 200])
    expect([await names(), store.revision]).toEqual([['before'], revision])

    // The disk still fails. The store tries to open a new log once a second, and rejects writes until one is open.
    clock.step(clock.now() + 1000)
    for (let turn = 0; turn < 20; turn++) await setImmediate()
    expect((await create('third')).status).toBe(503)

    // The disk works again. The old log is only closed, because its content is unknown after a failed write or sync.
    let otherStepsOnOldLog = 0
    disk.beforeStep = (step, path) => {
      if (path === old && step !== 'close') otherStepsOnOldLog++
    }
    clock.step(clock.now() + 1000)
    for (let turn = 0; turn < 20; turn++) await setImmediate()
    expect((await create('fourth')).status).toBe(201)
    expect([(await send('/readyz')).status, otherStepsOnOldLog, logs().length]).toEqual([200, 0, 2])

    disk.restart('loss of power')
    const { names: namesAfterRestart, store: restartedStore } = await serve(disk)
    expect([await namesAfterRestart(), restartedStore.revision]).toEqual([['before', 'fourth'], revision + 1])
  })
})
