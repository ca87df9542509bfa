import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Cluster } from '@capstan/api'
import { seconds, sleep, systemClock } from '@capstan/kube'
import type { Plane } from '@capstan/lab'
import { createFrom } from '@capstan/testing'
import type { Answered } from './clusters-client.ts'
import type { BenchOptions, Figure } from './figure.ts'
import { inParallel, megabytes, now } from './figure.ts'
import { startBenchPlane } from './plane.ts'

/** Measures the time from apply to Available of many clusters at once, each with one control plane machine and two workers, without simulated delays. */
export async function* clustersBench({ short }: BenchOptions): AsyncIterable<Figure> {
  for (const count of short ? [1, 10] : [1, 100, 1000]) yield* measure(count, short ? 2 : 10)
}

async function* measure(count: number, windowSeconds: number): AsyncIterable<Figure> {
  globalThis.gc?.()
  const { plane, kubeconfig, close } = await startBenchPlane()
  const asking = await startAsking(kubeconfig)
  const memoryBefore = process.memoryUsage().rss
  await createFrom(plane.client, new URL('clusterclass.yaml', import.meta.url))
  const started = now()
  const available = allAvailable(plane, count)
  await inParallel(count, 50, (index) => plane.client.create(Cluster, aCluster(`c-${index}`)))
  await available
  yield { name: `apply to Available, ${count} cluster${count === 1 ? '' : 's'}`, value: (now() - started) / 1000, unit: 's' }
  const { longest } = await asking.stop()
  yield {
    name: `longest time without a response over HTTPS meanwhile, ${count} cluster${count === 1 ? '' : 's'}`,
    value: longest,
    unit: 'ms',
  }
  yield {
    name: `resident memory for ${count} cluster${count === 1 ? '' : 's'}`,
    value: megabytes(process.memoryUsage().rss - memoryBefore),
    unit: 'MB',
  }
  if (count >= 10) {
    await sleep(systemClock, seconds(windowSeconds / 2))
    const [before, at] = [process.cpuUsage(), now()]
    await sleep(systemClock, seconds(windowSeconds))
    const used = process.cpuUsage(before)
    yield {
      name: `CPU when idle with ${count} clusters, of one core`,
      value: (used.user + used.system) / 10 / (now() - at),
      unit: '%',
    }
  }
  await close()
}

/** A client in a child process that repeatedly gets one object over HTTPS. */
async function startAsking(kubeconfig: string): Promise<{ stop(): Promise<Answered> }> {
  const child = fork(fileURLToPath(new URL('clusters-client.ts', import.meta.url)), [kubeconfig])
  await once(child, 'message')
  return {
    async stop() {
      child.send('stop')
      const [answered] = (await once(child, 'message')) as [Answered]
      return answered
    },
  }
}

async function allAvailable(plane: Plane, count: number): Promise<void> {
  const abort = new AbortController()
  const done = new Set<string>()
  const { metadata } = await plane.client.list(Cluster)
  const events = await plane.client.watch(Cluster, { resourceVersion: metadata.resourceVersion, signal: abort.signal })
  for await (const { object } of events) {
    const available = object.status?.conditions?.find(({ type }) => type === 'Available')
    if (available?.status === 'True') done.add(object.metadata.name)
    if (done.size === count) break
  }
  abort.abort()
}

export const aCluster = (name: string) => ({
  metadata: { name, namespace: 'default' },
  spec: {
    topology: {
      classRef: { name: 'bench' },
      version: 'v1.36.0',
      controlPlane: { replicas: 1 },
      workers: { machineDeployments: [{ class: 'worker', name: 'md', replicas: 2 }] },
    },
  },
})
