import { expect, test } from 'vitest'
import type { TopologyScope } from './scope.ts'
import type { UpgradeFacts } from './upgrade/upgrade.ts'
import { callUpgradeHook } from './versions.ts'

/** Returns the fields that `callUpgradeHook` adds to the request of BeforeWorkersUpgrade. */
async function requestOf(facts: Partial<UpgradeFacts>): Promise<unknown> {
  const requests: unknown[] = []
  const hooks = { call: (_hook: unknown, _cluster: unknown, request: unknown) => requests.push(request) }
  const scope = { memory: { hooks }, context: {}, cluster: {} } as unknown as TopologyScope
  const controlPlane = { version: 'v1.34.0' }
  const upgrade = { controlPlane, desired: 'v1.34.0', plan: { controlPlane: [], workers: [] }, ...facts }
  await callUpgradeHook(scope, 'BeforeWorkersUpgrade', upgrade as unknown as UpgradeFacts)
  return requests[0]
}

// Upstream: callBeforeWorkersUpgradeHook with UpgradeTracker.MinWorkersVersion, v1.14.
test('BeforeWorkersUpgrade gets the lowest version of the workers, or an empty version after the last worker was removed', async () => {
  expect(await requestOf({ lowestWorker: 'v1.33.0' })).toEqual({
    fromKubernetesVersion: 'v1.33.0',
    toKubernetesVersion: 'v1.34.0',
  })
  expect(await requestOf({ lowestWorker: undefined })).toEqual({
    fromKubernetesVersion: '',
    toKubernetesVersion: 'v1.34.0',
  })
})
