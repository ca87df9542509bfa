/** Measures how a hanging extension delays Clusters that its ExtensionConfig does not select. */
import { BeforeClusterCreate, Cluster } from '@capstan/api'
import { defineExtension, on } from '@capstan/extension'
import { Namespace } from '@capstan/kube'
import type { Figure } from './figure.ts'
import { median, now } from './figure.ts'
import { aHookedCluster, startHooksManagement } from './hooks-management.ts'

/**
 * Creates Clusters in one namespace, alternately alone and together with other Clusters whose BeforeClusterCreate hook hangs until
 * its timeout of 30 s. The first run is a warm-up and is not counted.
 */
export async function* hangingExtension(short: boolean): AsyncIterable<Figure> {
  const [hanging, outside, rounds] = short ? [40, 10, 1] : [200, 50, 5]
  await timesToAvailable(0, outside)
  const alone: number[][] = []
  const beside: number[][] = []
  for (let round = 0; round < rounds; round++) {
    alone.push(await timesToAvailable(0, outside))
    beside.push(await timesToAvailable(hanging, outside))
  }
  for (const [name, statistic] of [
    ['median', median],
    ['longest', (values: readonly number[]) => Math.max(...values)],
  ] as const) {
    const typical = (all: readonly number[][]) => median(all.map(statistic)) / 1000
    yield {
      name: `${outside} Clusters beside ${hanging} with a hanging hook, ${name} time to Available`,
      value: typical(beside),
      unit: 's',
    }
    yield { name: `${outside} Clusters alone, ${name} time to Available`, value: typical(alone), unit: 's' }
  }
}

/**
 * Creates `hanging` Clusters whose hook hangs, then `outside` other Clusters. Returns the milliseconds from creation to Available of each of
 * the other Clusters.
 */
async function timesToAvailable(hanging: number, outside: number): Promise<number[]> {
  const called = Promise.withResolvers<void>()
  const never = new Promise<never>(() => {})
  const extension = defineExtension({
    name: 'hanging',
    handlers: [
      on(BeforeClusterCreate, { name: 'creation', timeoutSeconds: 30 }, () => {
        called.resolve()
        return never
      }),
    ],
  })
  const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': 'guarded' } }
  const management = await startHooksManagement(extension, { namespaceSelector })
  try {
    await management.client.create(Namespace, { metadata: { name: 'guarded' } })
    for (let index = 0; index < hanging; index++) {
      const { metadata, spec } = aHookedCluster(`stuck-${index}`, 0)
      const topology = { ...spec.topology, classRef: { ...spec.topology.classRef, namespace: 'default' } }
      await management.client.create(Cluster, { metadata: { ...metadata, namespace: 'guarded' }, spec: { topology } })
    }
    if (hanging > 0) await called.promise
    const names = Array.from({ length: outside }, (_, index) => `free-${index}`)
    return await Promise.all(
      names.map(async (name) => {
        const startedAt = now()
        await management.client.create(Cluster, aHookedCluster(name, 0))
        return (await management.moments.of(`Available ${name}`)) - startedAt
      }),
    )
  } finally {
    await management.close()
  }
}
