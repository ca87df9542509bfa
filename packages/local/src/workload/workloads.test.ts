import { memoryStore, type Store } from '@capstan/apiserver'
import { ConfigMap, createClient, isReason, Namespace, seededRandom, silent, VirtualClock } from '@capstan/kube'
import { beforeAll, expect, test } from 'vitest'
import { type CertifiedKey, makeAuthority } from '@capstan/kube/node'
import { X509Certificate } from 'node:crypto'
import { type Boot, createWorkloads, storeName } from './workloads.ts'

const clock = new VirtualClock()
const demo = { namespace: 'default', name: 'demo' }
const serverName = 'demo.default.clusters.capstan.dev'
let authority: CertifiedKey
beforeAll(async () => {
  authority = await makeAuthority(clock, { commonName: 'kubernetes' })
})
const boot = (): Boot => ({ authority, endpointHost: '10.0.0.1', kubernetesVersion: 'v1.36.0' })

/** Creates workloads with stores in memory, which remain when an API server stops. */
function memoryWorkloads() {
  const stores = new Map<string, Store>()
  const opened: string[] = []
  const workloads = createWorkloads({
    openStore: (name) => {
      opened.push(name)
      const store = stores.get(name) ?? memoryStore()
      stores.set(name, store)
      return Promise.resolve(store)
    },
    removeStore: (name) => {
      stores.delete(name)
      return Promise.resolve()
    },
    clock,
    random: seededRandom(1),
    log: silent,
  })
  return { workloads, opened, stores }
}

test('machines that join at the same time share one API server', async () => {
  const { workloads, opened } = memoryWorkloads()
  const clients = await Promise.all(['m1', 'm2', 'm3'].map((machine) => workloads.join(demo, machine, boot())))
  expect(new Set(clients).size).toBe(1)
  expect(opened).toEqual(['workload_default_demo'])
  const { items } = await clients[0]!.list(Namespace)
  expect(items.map(({ metadata }) => metadata.name)).toEqual(['default', 'kube-node-lease', 'kube-public', 'kube-system'])
  expect(
    (await clients[0]!.get(ConfigMap, { namespace: 'kube-system', name: 'kubeadm-config' })).data?.ClusterConfiguration,
  ).toContain('kubernetesVersion: v1.36.0')
  await workloads.close()
})

test('the API server stops with its last machine, and then rejects requests', async () => {
  const { workloads } = memoryWorkloads()
  await workloads.join(demo, 'm1', boot())
  await workloads.join(demo, 'm2', boot())
  const client = createClient(workloads.transportFor(serverName)!)
  await workloads.leave(demo, 'm1')
  expect(workloads.clientFor(demo, 'm1')).toBeUndefined()
  expect(await client.list(Namespace)).toBeDefined()

  await workloads.leave(demo, 'm2')
  expect(workloads.clientFor(demo)).toBeUndefined()
  expect(workloads.endpointFor(serverName)).toBeUndefined()
  const rejected = await client.list(Namespace).catch((err: unknown) => err)
  expect(isReason(rejected, 'ServiceUnavailable')).toBe(true)
})

test('the API server reports the lowest version of its machines', async () => {
  const { workloads } = memoryWorkloads()
  const version = async () => {
    const request = {
      method: 'GET',
      url: '/version',
      headers: {},
      signal: new AbortController().signal,
      streamSignal: new AbortController().signal,
      body: () => Promise.resolve(Buffer.alloc(0)),
    }
    const { body } = await workloads
      .endpointFor(serverName)!
      .handler(request, { kind: 'user', name: 'kubernetes-admin', groups: ['system:masters'] } as never)
    return (JSON.parse(body as string) as { gitVersion: string }).gitVersion
  }
  await workloads.join(demo, 'old', boot())
  await workloads.join(demo, 'new', { ...boot(), kubernetesVersion: 'v1.37.0' })
  const endpoint = workloads.endpointFor(serverName)
  expect(await version()).toBe('v1.36.0')
  await workloads.leave(demo, 'old')
  expect(await version()).toBe('v1.37.0')
  expect(workloads.endpointFor(serverName)).toBe(endpoint)
  await workloads.close()
})

test('whenStarted resolves when the API server starts, and listeners are notified', async () => {
  const { workloads } = memoryWorkloads()
  const started: string[] = []
  const stop = workloads.onStarted(({ name }) => started.push(name))
  const awaited = workloads.whenStarted(serverName)
  await workloads.join(demo, 'm1', boot())
  expect(await awaited).toBe(workloads.transportFor(serverName))
  expect(await workloads.whenStarted(serverName)).toBe(workloads.transportFor(serverName))
  await workloads.join(demo, 'm2', boot())
  stop()
  await workloads.join({ ...demo, name: 'other' }, 'm1', boot())
  expect(started).toEqual(['demo'])
  await workloads.close()
})

test('the data of a removed cluster are deleted', async () => {
  const { workloads, stores } = memoryWorkloads()
  await workloads.join(demo, 'm1', boot())
  await Promise.all([workloads.remove(demo), workloads.remove(demo)])
  expect(stores.size).toBe(0)
  expect(workloads.clientFor(demo)).toBeUndefined()
})

test('a join fails when the store cannot be opened, and the next attempt succeeds', async () => {
  let attempts = 0
  const workloads = createWorkloads({
    openStore: () => (attempts++ === 0 ? Promise.reject(new Error('disk full')) : Promise.resolve(memoryStore())),
    clock,
    random: seededRandom(1),
    log: silent,
  })
  await expect(workloads.join(demo, 'm1', boot())).rejects.toThrow('disk full')
  expect(await workloads.join(demo, 'm1', boot())).toBeDefined()
  await workloads.close()
})

test('the cluster authority signs the serving certificate, which names the server, its Service, loopback and the endpoint', async () => {
  const { workloads } = memoryWorkloads()
  await workloads.join(demo, 'm1', boot())
  const { serving, clientCA } = workloads.endpointFor(serverName)!
  const keyPair = typeof serving === 'function' ? await serving() : serving
  const certificate = new X509Certificate(keyPair.certificate)
  expect(certificate.checkIssued(new X509Certificate(clientCA!))).toBe(true)
  for (const name of [serverName, 'localhost', 'kubernetes.default.svc']) expect(certificate.checkHost(name)).toBe(name)
  for (const address of ['127.0.0.1', '10.0.0.1']) expect(certificate.checkIP(address)).toBe(address)
  await workloads.close()
})

test('the clusters a/b.c and a.b/c (namespace/name) have different stores', () => {
  expect(storeName({ namespace: 'a', name: 'b.c' })).not.toBe(storeName({ namespace: 'a.b', name: 'c' }))
})
