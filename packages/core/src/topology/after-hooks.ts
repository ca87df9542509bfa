import {
  AfterControlPlaneInitialized,
  Cluster,
  ClusterConditions,
  ClusterTopologyUpgradeStepAnnotation,
  pendingHooks,
} from '@capstan/api'
import { isTrue, keyOf } from '@capstan/kube'
import type { Pass } from './pass.ts'
import { upgradeIsOver } from './upgrade.ts'
import { askUpgradeHook, type VersionDecision } from './versions.ts'

/**
 * Calls what is due after something has happened. AfterControlPlaneInitialized holds nothing up, not even when it fails: its
 * failure is given back, to be thrown when everything else is done.
 */
export async function callAfterHooks(
  pass: Pass,
  cluster: Cluster,
  { facts, controlPlane, workers }: VersionDecision,
): Promise<unknown> {
  let failure: unknown
  try {
    await tellControlPlaneInitialized(pass, cluster)
  } catch (err) {
    failure = err
  }
  if (facts.pending.has('AfterClusterUpgrade') && upgradeIsOver(facts, controlPlane, workers)) {
    const answer = await askUpgradeHook(pass, cluster, 'AfterClusterUpgrade', facts)
    if (pass.passes(answer)) {
      await pass.change({ remove: ['AfterClusterUpgrade'], annotations: { [ClusterTopologyUpgradeStepAnnotation]: null } })
    }
  }
  return failure
}

async function tellControlPlaneInitialized(pass: Pass, cluster: Cluster): Promise<void> {
  const { name } = AfterControlPlaneInitialized
  const { context, memory } = pass
  const own = memory.of(cluster)
  if (!pendingHooks(cluster).has(name) || !isTrue(cluster, ClusterConditions.ControlPlaneInitialized.type)) return
  if (!own.toldInitialized) {
    // The server has the last word on whether this was told before: a copy of the Cluster may be old.
    const live = await context.client.get(Cluster, keyOf(cluster), { signal: context.signal })
    if (!pendingHooks(live).has(name)) return
    pass.passes(await memory.hooks.call(AfterControlPlaneInitialized, cluster, {}, context.signal))
    own.toldInitialized = true
  }
  await pass.change({ remove: [name] })
  own.toldInitialized = false
}
