import type { Cluster } from '@capstan/api'
import type { ReconcileContext } from '@capstan/controller'
import type { RuntimeClient } from '@capstan/extension'
import { type Clock, keyOf, keyText, type ObjectKey } from '@capstan/kube'
import { AppliedObjects } from './differences.ts'
import { type BlockingHook, type FailedHook, type HookAnswer, LifecycleHooks } from './lifecycle-hooks.ts'
import { changeCluster, type ClusterChange } from './pending-hooks.ts'
import type { UpgradeReport } from './topology-reconciled.ts'

/** What lives longer than one pass. */
export class TopologyMemory {
  readonly hooks: LifecycleHooks
  readonly runtime: RuntimeClient
  readonly #clusters = new Map<string, ClusterMemory>()

  constructor(runtime: RuntimeClient, clock: Clock) {
    this.runtime = runtime
    this.hooks = new LifecycleHooks(runtime, clock)
  }

  /** What is remembered of this very Cluster, not of an earlier one of its name. */
  of(cluster: Cluster): ClusterMemory {
    const { uid } = cluster.metadata
    const name = keyText(keyOf(cluster))
    const known = this.#clusters.get(name)
    if (known?.uid === uid) return known
    const fresh = { uid, applied: new AppliedObjects(), toldInitialized: false, ignored: '' }
    this.#clusters.set(name, fresh)
    return fresh
  }

  forget(key: ObjectKey): void {
    this.#clusters.delete(keyText(key))
  }
}

interface ClusterMemory {
  readonly uid: string
  readonly applied: AppliedObjects
  /** AfterControlPlaneInitialized was called, and its mark could not be removed yet. */
  toldInitialized: boolean
  /** What of patches was left out, as last told. */
  ignored: string
}

/** One pass: what it works with, and what it has learned so far. */
export class Pass {
  /** As last read or answered. */
  cluster: Cluster
  readonly context: ReconcileContext
  readonly memory: TopologyMemory
  readonly blocking: BlockingHook[] = []
  /** The hook that ended this pass by failing. */
  failed: FailedHook | undefined
  /** Hooks that let go, whether somebody was asked or not. */
  readonly passed = new Set<string>()
  upgrade: UpgradeReport | undefined

  constructor(cluster: Cluster, context: ReconcileContext, memory: TopologyMemory) {
    this.cluster = cluster
    this.context = context
    this.memory = memory
  }

  async change(change: ClusterChange): Promise<void> {
    this.cluster = await changeCluster(this.context.client, this.cluster, change, this.context.signal)
  }

  /** Notes an answer. True when the hook lets go. @throws what it failed with */
  passes(answer: HookAnswer): boolean {
    switch (answer.kind) {
      case 'go':
        this.passed.add(answer.hook)
        return true
      case 'blocked':
        this.blocking.push(answer)
        return false
      case 'failed':
        return this.fails(answer)
    }
  }

  /** Notes a hook that failed. @throws what it failed with */
  fails(hook: FailedHook & { readonly error: unknown }): never {
    this.failed = hook
    throw hook.error
  }
}
