import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { listen } from '@capstan/apiserver'
import { seconds, silent, sleep, systemClock as clock, systemRandom as random } from '@capstan/kube'
import { type CertifiedKey, issueCertificate, makeAuthority } from '@capstan/kube/node'
import { memoryStores } from '@capstan/lab'
import { createWorkloads, serverNameOf } from '@capstan/local'
import type { BenchOptions, Figure } from './figure.ts'
import { median, now } from './figure.ts'
import type { ReadRequest, Reply } from './workload-clusters-client.ts'

interface Cluster {
  readonly key: { readonly namespace: string; readonly name: string }
  readonly authority: CertifiedKey
  readonly admin: CertifiedKey
}

/**
 * Measures many simulated workload clusters: the time and memory that each one costs, the rate of TLS reads, and the CPU use when all
 * are idle. All API servers run in this process, behind one port.
 */
export async function* workloadClustersBench({ short }: BenchOptions): AsyncIterable<Figure> {
  const count = short ? 100 : 1000
  const stores = memoryStores()
  const workloads = createWorkloads({ openStore: (name) => stores.store(name), clock, random, log: silent })
  const listener = await listen({
    port: 0,
    endpointFor: (name) => (name === undefined ? undefined : workloads.endpointFor(name)),
    clock,
  })
  const join = ({ key, authority }: Cluster) =>
    workloads.join(key, 'machine', { authority, endpointHost: listener.host, kubernetesVersion: 'v1.36.0' })
  const createClusters = async (prefix: string, size: number) => {
    const clusters: Cluster[] = []
    for (let index = 0; index < size; index++) clusters.push(await aCluster(`${prefix}-${index}`))
    return clusters
  }
  const client = startClient(listener.port)

  // Warm-up: V8 compiles the code, and the heap grows.
  const warm = await createClusters('warm', count / 5)
  for (const cluster of warm) await join(cluster)
  await client.readFromAll(warm)

  const before = await settledMemory()
  let started = now()
  let cpuAtStart = process.cpuUsage()
  const clusters = await createClusters('c', count)
  const perCluster = () => ({ elapsed: (now() - started) / count, cpu: cpuMilliseconds(cpuAtStart) / count })
  const certificates = perCluster()
  yield { name: 'authority and admin certificate of a workload API server', value: certificates.elapsed, unit: 'ms' }
  yield { name: 'authority and admin certificate of a workload API server, CPU', value: certificates.cpu, unit: 'ms' }
  ;[started, cpuAtStart] = [now(), process.cpuUsage()]
  for (const cluster of clusters) await join(cluster)
  const creation = perCluster()
  yield { name: 'a workload API server with its initial objects', value: creation.elapsed, unit: 'ms' }
  yield { name: 'a workload API server with its initial objects, CPU', value: creation.cpu, unit: 'ms' }
  const created = await settledMemory()
  yield {
    name: `heap of each of ${count} workload API servers with objects`,
    value: (created.heapUsed - before.heapUsed) / count / 1024,
    unit: 'KB',
  }

  const first = await client.readFromAll(clusters)
  yield { name: `first get from each of ${count}, on one port, over TLS`, value: first, unit: '/s' }
  yield { name: 'second get from each', value: await client.readFromAll(clusters), unit: '/s' }
  client.stop()
  // V8 still collects garbage from time to time. The median of several time windows excludes these collections.
  const shares: number[] = []
  for (let window = 0; window < (short ? 1 : 7); window++) {
    ;[started, cpuAtStart] = [now(), process.cpuUsage()]
    await sleep(clock, seconds(4))
    shares.push((100 * cpuMilliseconds(cpuAtStart)) / (now() - started))
  }
  yield { name: `CPU when idle with ${count} workload API servers, of one core`, value: median(shares), unit: '%' }
  const served = await settledMemory()
  yield { name: 'resident memory of each, TLS included', value: (served.rss - before.rss) / count / 1024, unit: 'KB' }
  await listener.close(0)
  await workloads.close()
}

function cpuMilliseconds(since: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since)
  return (user + system) / 1000
}

async function aCluster(name: string): Promise<Cluster> {
  const authority = await makeAuthority(clock, { commonName: 'kubernetes' })
  const admin = await issueCertificate(authority, clock, {
    commonName: 'kubernetes-admin',
    organizations: ['system:masters'],
    usages: ['client'],
  })
  return { key: { namespace: 'default', name }, authority, admin }
}

/** Starts a process for reads. Its `readFromAll` gets an object from each server, and resolves with the rate, in servers per second. */
function startClient(port: number) {
  const child = fork(fileURLToPath(new URL('workload-clusters-client.ts', import.meta.url)))
  return {
    async readFromAll(clusters: readonly Cluster[]): Promise<number> {
      const servers = clusters.map(({ key, authority, admin }) => ({
        servername: serverNameOf(key),
        authority: authority.certificate,
        admin,
      }))
      const replied = once(child, 'message')
      child.send({ port, servers } satisfies ReadRequest)
      const [response] = (await replied) as [Reply]
      if ('error' in response) throw new Error(response.error)
      return clusters.length / response.seconds
    },
    stop: () => child.kill(),
  }
}

/** Returns the memory in use after garbage collection. */
async function settledMemory(): Promise<NodeJS.MemoryUsage> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  for (let run = 0; run < 3; run++) {
    collect()
    await sleep(clock, 50)
  }
  return process.memoryUsage()
}
