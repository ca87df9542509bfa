import type { Cluster } from '@capstan/api'
import type { ReconcileContext } from '@capstan/controller'
import type { AppliedObjects } from './differences.ts'
import type { BlockingHook, HookAnswer, LifecycleHooks } from './lifecycle-hooks.ts'
import { changeCluster, type ClusterChange } from './pending-hooks.ts'
import type { UpgradeReport } from './topology-reconciled.ts'

/** What lives longer than one pass. */
export interface TopologyMemory {
  readonly hooks: LifecycleHooks
  readonly applied: AppliedObjects
  /** Clusters, by uid, that AfterControlPlaneInitialized was told of while its mark could not be removed yet. */
  readonly told: Set<string>
}

/** One pass: what it works with, and what it has learned so far. */
export class Pass {
  /** As last read or answered. */
  cluster: Cluster
  readonly context: ReconcileContext
  readonly memory: TopologyMemory
  readonly blocking: BlockingHook[] = []
  upgrade: UpgradeReport | undefined

  constructor(cluster: Cluster, context: ReconcileContext, memory: TopologyMemory) {
    this.cluster = cluster
    this.context = context
    this.memory = memory
  }

  async change(change: ClusterChange): Promise<void> {
    this.cluster = await changeCluster(this.context.client, this.cluster, change, this.context.signal)
  }

  /** Notes an answer. True when the hook lets go. */
  passes(answer: HookAnswer): boolean {
    if (answer.kind === 'go') return true
    this.blocking.push(answer)
    return false
  }
}
