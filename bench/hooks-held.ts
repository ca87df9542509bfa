/** Measures the time until a Cluster continues after an extension stops blocking it. */
import { BeforeClusterCreate, BeforeClusterUpgrade, Cluster, RetryHooksAnnotation } from '@capstan/api'
import { defineExtension, holdFor, on, proceedNow } from '@capstan/extension'
import type { Figure } from './figure.ts'
import { inParallel, median, now } from './figure.ts'
import { aHookedCluster, EventTimes, startHooksManagement } from './hooks-management.ts'

/**
 * BeforeClusterCreate blocks each Cluster for one second, and allows the creation in core's next call. BeforeClusterUpgrade blocks the
 * upgrade and asks for the next call after an hour. The bench does not wait for it: it sets the annotation that `capstan hooks retry` sets,
 * so that core calls the hook again at once. The hook then allows the upgrade.
 */
export async function* blockedClusters(short: boolean): AsyncIterable<Figure> {
  const count = short ? 3 : 40
  const moments = new EventTimes()
  const calledBefore = new Set<string>()
  const allowedUpgrades = new Set<string>()
  const extension = defineExtension({
    name: 'gates',
    handlers: [
      on(BeforeClusterCreate, { name: 'creation' }, ({ request: { cluster } }) => {
        const { name } = cluster.metadata
        if (!calledBefore.has(name)) {
          calledBefore.add(name)
          return holdFor(1, 'not yet')
        }
        moments.record(`creation allowed ${name}`)
        return proceedNow()
      }),
      on(BeforeClusterUpgrade, { name: 'upgrade' }, ({ request: { cluster } }) => {
        const { name } = cluster.metadata
        if (!allowedUpgrades.has(name)) return holdFor(3600, 'not yet')
        moments.record(`upgrade allowed ${name}`)
        return proceedNow()
      }),
    ],
  })
  const management = await startHooksManagement(extension, { moments })
  const created: number[] = []
  const upgraded: number[] = []
  const retried: number[] = []
  const patch = (name: string, body: object) =>
    management.client.patch(Cluster, { namespace: 'default', name }, { type: 'merge', body })
  try {
    await inParallel(count, 3, async (index) => {
      const name = `held-${index}`
      await management.client.create(Cluster, aHookedCluster(name, 0))
      const [allowed, infrastructure] = await Promise.all([
        moments.of(`creation allowed ${name}`),
        moments.of(`infrastructure ${name}`),
      ])
      created.push(infrastructure - allowed)

      await moments.of(`Available ${name}`)
      await patch(name, { spec: { topology: { version: 'v1.36.1' } } })
      await moments.of(`waits for BeforeClusterUpgrade ${name}`)
      allowedUpgrades.add(name)
      const retryRequested = now()
      await patch(name, { metadata: { annotations: { [RetryHooksAnnotation]: new Date().toISOString() } } })
      const [allowedUpgrade, written] = await Promise.all([
        moments.of(`upgrade allowed ${name}`),
        moments.of(`control plane ${name} v1.36.1`),
      ])
      upgraded.push(written - allowedUpgrade)
      retried.push(written - retryRequested)
    })
  } finally {
    await management.close()
  }
  const figure = (name: string, values: readonly number[]): Figure => ({ name, value: median(values), unit: 'ms' })
  yield figure('from the response of BeforeClusterCreate that allows the creation to the creation of the LocalCluster', created)
  yield figure(
    'from the response of BeforeClusterUpgrade that allows the upgrade to the new version of the control plane',
    upgraded,
  )
  yield figure('from the request of a retry to the new version of the control plane', retried)
}
