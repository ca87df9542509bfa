/** Counts the requests for a Cluster on an API server that is slowed down: it processes two requests at once, each in 10 ms. */
import { Cluster } from '@capstan/api'
import { isTrue, seededRandom, silent, type Transport, VirtualClock } from '@capstan/kube'
import { createManagementCluster, memoryStores } from '@capstan/lab'
import { expect, test } from 'vitest'
import { createFrom } from './manifests.ts'
import { createTraffic, settle } from './settle.ts'

/** Number of requests that the API server processes at the same time. */
const AtOnce = 2
/** Milliseconds that a request takes. */
const Duration = 10
/** Milliseconds until a watch event arrives. */
const Delay = 3

/** While `isOn` returns true, delays requests and watch events, and records the requests. */
function slow(transport: Transport, clock: VirtualClock, requests: string[], isOn: () => boolean): Transport {
  const sleep = (ms: number) => new Promise<void>((resolve) => void clock.schedule(ms, resolve))
  const freeAt = Array.from({ length: AtOnce }, () => 0)
  return {
    close: () => transport.close(),
    async watch(request, signal) {
      const events = await transport.watch(request, signal)
      return (async function* () {
        for await (const event of events) {
          if (isOn()) await sleep(Delay)
          yield event
        }
      })()
    },
    async send(request, signal) {
      if (!isOn()) return transport.send(request, signal)
      requests.push(`${request.verb} ${[request.plural, request.subresource].filter(Boolean).join('/')}`)
      const next = freeAt.indexOf(Math.min(...freeAt))
      freeAt[next] = Math.max(clock.elapsed(), freeAt[next]!) + Duration
      await sleep(freeAt[next]! - clock.elapsed())
      return transport.send(request, signal)
    },
  }
}

test('the controllers send fewer than 110 requests, fewer than 5 of them gets, until a Cluster with three machines is Available', async () => {
  const clock = new VirtualClock()
  const stores = memoryStores()
  const traffic = createTraffic()
  const requests: string[] = []
  let isSlow = false
  const management = await createManagementCluster({
    stores,
    clock,
    random: seededRandom(1),
    log: silent,
    endpoint: { host: '127.0.0.1', port: 6443 },
    reach: (_, inProcess) => slow(traffic.count(inProcess), clock, requests, () => isSlow),
  })
  // Requests and watch events wait for virtual time, so `settle` returns after a few turns without progress, and the test advances the time.
  const pendingWork = { managers: () => [management.manager], stores: () => stores.all(), traffic, patience: 5 }
  await createFrom(management.client, new URL('../../../bench/clusterclass.yaml', import.meta.url))
  await settle(pendingWork)
  isSlow = true
  const key = { namespace: 'default', name: 'a' }
  const workers = { machineDeployments: [{ class: 'worker', name: 'md-0', replicas: 2 }] }
  const topology = { classRef: { name: 'bench' }, version: 'v1.35.0', controlPlane: { replicas: 1 }, workers }
  await management.client.create(Cluster, { metadata: key, spec: { topology } })
  while (!isTrue(await management.client.get(Cluster, key), 'Available') && clock.elapsed() < 60_000) {
    await settle(pendingWork)
    clock.step(clock.now() + 5)
  }
  const count = (text: string) => requests.filter((request) => request === text).length
  expect(isTrue(await management.client.get(Cluster, key), 'Available')).toBe(true)
  expect(requests.length).toBeLessThan(110)
  expect(requests.filter((request) => request.startsWith('get ')).length).toBeLessThan(5)
  // One Machine is created by the control plane; the MachineSet creates the others by server-side apply, which is a patch.
  expect([count('get secrets'), count('create machines'), count('patch localmachines/status')]).toEqual([0, 1, 3])
  await management.close()
})
