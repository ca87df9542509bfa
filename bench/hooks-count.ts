/** Counts core's calls to an extension in the lifecycles of many Clusters. Core should call each of six hooks once for each Cluster. */
import {
  AfterClusterUpgrade,
  AfterControlPlaneInitialized,
  AfterControlPlaneUpgrade,
  BeforeClusterCreate,
  BeforeClusterDelete,
  BeforeClusterUpgrade,
  Cluster,
} from '@capstan/api'
import { defineExtension, on, proceedNow } from '@capstan/extension'
import { seconds, sleep, systemClock } from '@capstan/kube'
import type { Figure } from './figure.ts'
import { inParallel, now } from './figure.ts'
import { aHookedCluster, EventTimes, startHooksManagement } from './hooks-management.ts'

const hooks = [
  BeforeClusterCreate,
  AfterControlPlaneInitialized,
  BeforeClusterUpgrade,
  AfterControlPlaneUpgrade,
  AfterClusterUpgrade,
  BeforeClusterDelete,
] as const

/**
 * Creates `count` Clusters, each with `workers` workers, upgrades them by a patch version and deletes them, with six hooks that never block.
 * Sends at most 50 requests at a time. Yields the duration, and the mean number of calls per Cluster, for each hook and in total.
 * For a hook that was called more than once for a Cluster, also yields the maximum.
 */
export async function* countedCalls(count: number, workers: number): AsyncIterable<Figure> {
  const moments = new EventTimes()
  /** Number of calls by hook and Cluster. */
  const calls = new Map<string, number>()
  const extension = defineExtension({
    name: 'counted',
    handlers: hooks.map((hook) => on(hook, { name: hook.name.toLowerCase() }, () => proceedNow())),
  })
  const management = await startHooksManagement(extension, {
    moments,
    onCall({ hook, request }) {
      const { name } = (request as { readonly cluster?: Cluster }).cluster?.metadata ?? {}
      if (name === undefined) return
      const callKey = `${hook.name} ${name}`
      calls.set(callKey, (calls.get(callKey) ?? 0) + 1)
      moments.record(callKey)
    },
  })
  const names = Array.from({ length: count }, (_, index) => `c-${index}`)
  const each = (act: (name: string) => Promise<unknown>) => inParallel(count, 50, (index) => act(names[index]!))
  const untilAll = (event: (name: string) => string) => Promise.all(names.map((name) => moments.of(event(name))))
  /** Waits, so that superfluous calls are also counted. */
  const waitForFurtherCalls = () => sleep(systemClock, seconds(0.3))
  const key = (name: string) => ({ namespace: 'default', name })
  try {
    const started = now()
    await each((name) => management.client.create(Cluster, aHookedCluster(name, workers)))
    await untilAll((name) => `Available ${name}`)
    await untilAll((name) => `AfterControlPlaneInitialized ${name}`)
    await waitForFurtherCalls()
    const version = { spec: { topology: { version: 'v1.36.1' } } }
    await each((name) => management.client.patch(Cluster, key(name), { type: 'merge', body: version }))
    await untilAll((name) => `AfterClusterUpgrade ${name}`)
    await waitForFurtherCalls()
    await each((name) => management.client.delete(Cluster, key(name)))
    await untilAll((name) => `gone ${name}`)
    await waitForFurtherCalls()
    yield { name: `six hooks: created, upgraded and deleted, ${count} clusters`, value: (now() - started) / 1000, unit: 's' }
  } finally {
    await management.close()
  }
  for (const hook of hooks) {
    const perCluster = names.map((name) => calls.get(`${hook.name} ${name}`) ?? 0)
    const maximum = Math.max(...perCluster)
    const mean = perCluster.reduce((sum, number) => sum + number, 0) / count
    yield { name: `calls of ${hook.name} per cluster, ${count} clusters`, value: mean, unit: 'times' }
    if (maximum > 1) yield { name: `calls of ${hook.name}, maximum for one cluster`, value: maximum, unit: 'times' }
  }
  const total = [...calls.values()].reduce((sum, number) => sum + number, 0)
  yield { name: `calls per cluster, ${count} clusters`, value: total / count, unit: 'times' }
}
