import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Cluster } from '@capstan/api'
import { type Client, getCondition, isTrue, seconds, sleep, systemClock } from '@capstan/kube'
import { createFrom } from '@capstan/testing'
import type { LongestWait } from './clusters-client.ts'
import type { BenchOptions, Figure } from './figure.ts'
import { inParallel, megabytes, now } from './figure.ts'
import { startManagement } from './management.ts'

/**
 * Measures many clusters at once, each with one control plane machine and two workers, without simulated delays: the time from apply to
 * Available, the longest time without a response to another client meanwhile, the additional resident memory, an upgrade of all clusters by
 * a minor version, the CPU when idle, and the deletion.
 */
export async function* clustersBench({ short }: BenchOptions): AsyncIterable<Figure> {
  for (const count of short ? [1, 10] : [1, 100, 1000]) yield* measure(count, short ? 2 : 10)
}

async function* measure(count: number, idleSeconds: number): AsyncIterable<Figure> {
  globalThis.gc?.()
  const { management, kubeconfig, close } = await startManagement()
  const { client } = management
  const clusters = `${count} cluster${count === 1 ? '' : 's'}`
  const otherRequests = await startOtherRequests(kubeconfig)
  const memoryBefore = process.memoryUsage().rss
  await createFrom(client, new URL('clusterclass.yaml', import.meta.url))
  const create = () => inParallel(count, 50, (index) => client.create(Cluster, aCluster(`c-${index}`)))
  yield { name: `apply to Available, ${clusters}`, value: await timeUntil(client, count, isAvailable, create), unit: 's' }
  const { longest } = await otherRequests.stop()
  yield { name: `longest time without a response over HTTPS meanwhile, ${clusters}`, value: longest, unit: 'ms' }
  yield { name: `resident memory for ${clusters}`, value: megabytes(process.memoryUsage().rss - memoryBefore), unit: 'MB' }

  const operations = [{ op: 'replace' as const, path: '/spec/topology/version', value: versions.second }]
  const upgrade = () =>
    inParallel(count, 50, (index) => client.patch(Cluster, { namespace, name: `c-${index}` }, { type: 'json', operations }))
  yield { name: `upgrade of ${clusters}`, value: await timeUntil(client, count, isUpgraded, upgrade), unit: 's' }
  await sleep(systemClock, seconds(idleSeconds / 2))
  const [before, idleSince] = [process.cpuUsage(), now()]
  await sleep(systemClock, seconds(idleSeconds))
  const used = process.cpuUsage(before)
  yield {
    name: `CPU when idle with ${clusters}, of one core`,
    // CPU in microseconds, divided by the time in milliseconds, as a percentage.
    value: (used.user + used.system) / 10 / (now() - idleSince),
    unit: '%',
  }
  const remove = () => inParallel(count, 50, (index) => client.delete(Cluster, { namespace, name: `c-${index}` }))
  yield { name: `deletion of ${clusters}`, value: await timeUntil(client, count, 'deleted', remove), unit: 's' }
  await close()
}

/** Starts a child process that repeatedly gets one object over HTTPS. `stop` ends it and returns its longest time without a response. */
async function startOtherRequests(kubeconfig: string): Promise<{ stop(): Promise<LongestWait> }> {
  const child = fork(fileURLToPath(new URL('clusters-client.ts', import.meta.url)), [kubeconfig])
  await once(child, 'message')
  return {
    async stop() {
      child.send('stop')
      const [longestWait] = (await once(child, 'message')) as [LongestWait]
      return longestWait
    },
  }
}

const namespace = 'default'
const versions = { first: 'v1.36.0', second: 'v1.37.0' }

const isAvailable = (cluster: Cluster) => isTrue(cluster, 'Available')
const isUpgraded = (cluster: Cluster) =>
  isAvailable(cluster) &&
  getCondition(cluster, 'RollingOut')?.status === 'False' &&
  [cluster.status?.controlPlane, cluster.status?.workers].every((part) =>
    part?.versions?.every(({ version }) => version === versions.second),
  )

/** Returns the seconds from the beginning of `act` until `count` Clusters are deleted, or `reached` returns true for `count` Clusters. */
async function timeUntil(
  client: Client,
  count: number,
  reached: 'deleted' | ((cluster: Cluster) => boolean),
  act: () => Promise<unknown>,
): Promise<number> {
  const abort = new AbortController()
  const { metadata } = await client.list(Cluster)
  const events = await client.watch(Cluster, { resourceVersion: metadata.resourceVersion, signal: abort.signal })
  const started = now()
  const acted = act()
  const done = new Set<string>()
  for await (const { type, object } of events) {
    const { name } = object.metadata
    if (reached === 'deleted' ? type === 'DELETED' : reached(object)) done.add(name)
    else done.delete(name)
    if (done.size === count) break
  }
  abort.abort()
  await acted
  return (now() - started) / 1000
}

export const aCluster = (name: string) => ({
  metadata: { name, namespace },
  spec: {
    topology: {
      classRef: { name: 'bench' },
      version: versions.first,
      controlPlane: { replicas: 1 },
      workers: { machineDeployments: [{ class: 'worker', name: 'md', replicas: 2 }] },
    },
  },
})
