import {
  AfterControlPlaneInitialized,
  Cluster,
  ClusterConditions,
  ClusterTopologyUpgradeStepAnnotation,
  pendingHooks,
} from '@capstan/api'
import { isTrue, keyOf } from '@capstan/kube'
import type { TopologyScope } from '../scope.ts'
import { upgradeIsOver } from '../upgrade/upgrade.ts'
import { callUpgradeHook, type VersionDecision } from '../versions.ts'

/**
 * Calls AfterControlPlaneInitialized and AfterClusterUpgrade when they are due. AfterControlPlaneInitialized never blocks, even when it
 * fails: its error is returned, and the caller throws it at the end of the reconcile.
 */
export async function callAfterHooks(
  scope: TopologyScope,
  cluster: Cluster,
  { facts, controlPlane, workers, pools }: VersionDecision,
): Promise<unknown> {
  let failure: unknown
  try {
    await callAfterControlPlaneInitialized(scope, cluster)
  } catch (err) {
    failure = err
  }
  if (facts.pending.has('AfterClusterUpgrade') && upgradeIsOver(facts, controlPlane, [...workers, ...pools])) {
    const result = await callUpgradeHook(scope, 'AfterClusterUpgrade', facts)
    if (scope.recordResult(result)) {
      await scope.change({ remove: ['AfterClusterUpgrade'], annotations: { [ClusterTopologyUpgradeStepAnnotation]: null } })
    }
  }
  return failure
}

async function callAfterControlPlaneInitialized(scope: TopologyScope, cluster: Cluster): Promise<void> {
  const { name } = AfterControlPlaneInitialized
  const { context, memory } = scope
  const clusterMemory = memory.stateOf(cluster)
  if (!pendingHooks(cluster).has(name) || !isTrue(cluster, ClusterConditions.ControlPlaneInitialized.type)) return
  if (!clusterMemory.initializedCalled) {
    // A stale Cluster from the cache could cause a second call of the hook.
    const live = await context.client.get(Cluster, keyOf(cluster), { signal: context.signal })
    if (!pendingHooks(live).has(name)) return
    scope.recordResult(await memory.hooks.call(AfterControlPlaneInitialized, scope.cluster, {}, context))
    clusterMemory.initializedCalled = true
  }
  await scope.change({ remove: [name] })
  clusterMemory.initializedCalled = false
}
