/**
 * Makes about one in five writes of the controllers to the management cluster fail, half of them before and half after they are applied. A
 * cluster must still be created and upgraded without additional Machines, and its deletion must leave no Cluster, MachineSet, Machine,
 * LocalMachine or LocalCluster. The seed determines which writes fail.
 */
import { readFileSync } from 'node:fs'
import { Cluster, Machine, MachineSet, pluralOf } from '@capstan/api'
import {
  getCondition,
  minutes,
  type Random,
  seconds,
  seededRandom,
  silent,
  StatusError,
  type Transport,
  type UnknownObject,
  unknownKind,
  VirtualClock,
  withSend,
} from '@capstan/kube'
import { advance, createTraffic } from '@capstan/testing'
import { expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { createManagementCluster } from './management-cluster.ts'
import { memoryStores } from './stores.ts'

const Writes: ReadonlySet<string> = new Set(['create', 'update', 'patch', 'delete'])

/** Drops a tenth of the requests and a tenth of the responses of writes while `isOn` returns true. */
const lossy = (transport: Transport, random: Random, isOn: () => boolean): Transport =>
  withSend(transport, async (request, signal) => {
    if (!isOn() || !Writes.has(request.verb)) return transport.send(request, signal)
    const chance = random.next()
    if (chance < 0.1) throw new StatusError('ServiceUnavailable', 'the request was lost')
    const response = await transport.send(request, signal)
    if (chance > 0.9) throw new StatusError('ServiceUnavailable', 'the response was lost')
    return response
  })

/** Manifests of the demo's class, without its delays. */
const classDocuments = parseAllDocuments(
  readFileSync(new URL('../../lab/demo/class.yaml', import.meta.url), 'utf8').replaceAll(/\d+ms/g, '0s'),
).map((document) => document.toJS() as UnknownObject)

async function startWithLosses(seed: number) {
  const clock = new VirtualClock()
  const stores = memoryStores()
  const traffic = createTraffic()
  const random = seededRandom(seed)
  let isLossy = true
  const management = await createManagementCluster({
    stores,
    clock,
    random: seededRandom(1),
    log: silent,
    endpoint: { host: '127.0.0.1', port: 6443 },
    reach: (_, inProcess) => lossy(traffic.count(inProcess), random, () => isLossy),
  })
  const pendingWork = { managers: () => [management.manager], stores: () => stores.all(), traffic }
  const list = async (kind: typeof Cluster | typeof Machine | typeof MachineSet) =>
    (await management.client.list(kind as typeof Cluster)).items
  let maxMachines = 0
  return {
    ...management,
    list,
    maxMachines: () => maxMachines,
    /**
     * Advances the clock, first while writes fail, then without failures. While writes fail, counts the Machines each second and
     * records the largest number.
     */
    async advanceWithLosses() {
      maxMachines = 0
      isLossy = true
      for (let i = 0; i < 20; i++) {
        await advance(clock, seconds(1), pendingWork)
        maxMachines = Math.max(maxMachines, (await list(Machine)).length)
      }
      isLossy = false
      await advance(clock, minutes(5), pendingWork)
    },
  }
}

test.each([3, 6, 7, 11, 42])('a cluster is created, upgraded and deleted although writes fail (seed %i)', async (seed) => {
  const management = await startWithLosses(seed)
  const key = { namespace: 'default', name: 'demo' }
  for (const object of classDocuments) {
    await management.client.create(unknownKind({ ...object, plural: pluralOf(object.kind) }), object)
  }
  const workers = { machineDeployments: [{ class: 'worker', name: 'a', replicas: 2 }] }
  const topology = { classRef: { name: 'demo' }, version: 'v1.36.0', controlPlane: { replicas: 1 }, workers }
  await management.client.create(Cluster, { metadata: key, spec: { topology } })
  await management.advanceWithLosses()
  let cluster = await management.client.get(Cluster, key)
  expect(getCondition(cluster, 'Available')?.status).toBe('True')
  // No additional Machine was created. Depending on which writes failed, fewer Machines may have existed while writes failed.
  expect(management.maxMachines()).toBeLessThanOrEqual(3)
  expect(await management.list(Machine)).toHaveLength(3)

  await management.client.patch(Cluster, key, { type: 'merge', body: { spec: { topology: { version: 'v1.37.0' } } } })
  await management.advanceWithLosses()
  cluster = await management.client.get(Cluster, key)
  expect(cluster.status?.controlPlane?.versions).toEqual([{ version: 'v1.37.0', replicas: 1 }])
  expect(cluster.status?.workers?.versions).toEqual([{ version: 'v1.37.0', replicas: 2 }])
  expect(management.maxMachines()).toBeLessThanOrEqual(4)
  expect((await management.list(Machine)).length).toBe(3)

  await management.client.delete(Cluster, key)
  await management.advanceWithLosses()
  expect([
    ...(await management.list(Cluster)),
    ...(await management.list(Machine)),
    ...(await management.list(MachineSet)),
  ]).toEqual([])
  for (const kind of ['LocalMachine', 'LocalCluster'] as const) {
    const { items } = await management.client.list(
      unknownKind({ apiVersion: 'infrastructure.capstan.dev/v1alpha1', kind, plural: pluralOf(kind) }),
    )
    expect(items).toEqual([])
  }
  await management.close()
})
