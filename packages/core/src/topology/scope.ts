import type { Cluster } from '@capstan/api'
import type { ReconcileContext } from '@capstan/controller'
import type { RuntimeClient } from '@capstan/extension'
import { type Clock, keyOf, keyText, type ObjectKey } from '@capstan/kube'
import { AppliedObjects } from './differences.ts'
import { type BlockingHook, type FailedHook, type HookResult, LifecycleHooks } from './hooks/lifecycle-hooks.ts'
import { PatchResponses } from './patches/patch-responses.ts'
import { changeCluster, type ClusterChange } from './hooks/pending-hooks.ts'
import type { UpgradeReport } from './topology-reconciled.ts'
import type { UpgradePlan } from './upgrade/upgrade-plan.ts'

/** State that outlives one reconcile, for each Cluster. */
export class TopologyMemory {
  readonly hooks: LifecycleHooks
  /** Absent when the feature gate RuntimeSDK is disabled. */
  readonly runtime: RuntimeClient | undefined
  readonly #clock: Clock
  readonly #clusters = new Map<string, ClusterMemory>()

  constructor(runtime: RuntimeClient | undefined, clock: Clock) {
    this.runtime = runtime
    this.#clock = clock
    this.hooks = new LifecycleHooks(runtime, clock)
  }

  /** Returns the state of the Cluster with this uid, not that of an earlier Cluster with the same name. */
  stateOf(cluster: Cluster): ClusterMemory {
    const { uid } = cluster.metadata
    const name = keyText(keyOf(cluster))
    const existing = this.#clusters.get(name)
    if (existing?.uid === uid) return existing
    const newMemory = {
      uid,
      applied: new AppliedObjects(),
      responses: new PatchResponses(this.#clock),
      initializedCalled: false,
      ignored: '',
    }
    this.#clusters.set(name, newMemory)
    return newMemory
  }

  forget(key: ObjectKey): void {
    this.#clusters.delete(keyText(key))
    this.hooks.forget(key)
  }
}

interface ClusterMemory {
  readonly uid: string
  readonly applied: AppliedObjects
  readonly responses: PatchResponses
  /** Whether AfterControlPlaneInitialized was called, but could not be removed from the pending hooks yet. */
  initializedCalled: boolean
  /** The parts of ClusterClass patches that the last reconcile ignored, as a text; empty for none. An event reports each new text that is not empty. */
  ignored: string
}

/** Inputs of one reconcile, and its results so far. */
export class TopologyScope {
  /** The Cluster as last read, or as returned by the last write. */
  cluster: Cluster
  readonly context: ReconcileContext
  readonly memory: TopologyMemory
  readonly blocking: BlockingHook[] = []
  /**
   * The hook that failed last in this reconcile. A failure ends the reconcile at once; a failure of AfterControlPlaneInitialized ends it only
   * after the desired state is applied.
   */
  failed: FailedHook | undefined
  /** Hooks that allowed this reconcile to proceed, including hooks of which no handler selects the Cluster. */
  readonly notBlocking = new Set<string>()
  /**
   * The steps of the upgrade, none if no upgrade is due; `undefined` until they are known. Set before the hooks that allow the steps are
   * called, so that the status shows the steps even if such a hook fails.
   */
  plan: UpgradePlan | undefined
  /** The decided versions, for the condition TopologyReconciled. `undefined` until all of them are decided. */
  upgrade: UpgradeReport | undefined

  constructor(cluster: Cluster, context: ReconcileContext, memory: TopologyMemory) {
    this.cluster = cluster
    this.context = context
    this.memory = memory
  }

  /** Writes a change of the Cluster. */
  async change(change: ClusterChange): Promise<void> {
    this.cluster = await changeCluster(this.context, this.cluster, change)
  }

  /** Records the result of a hook. Returns whether the reconcile may proceed. @throws the error of a failed call */
  recordResult(result: HookResult): boolean {
    switch (result.kind) {
      case 'proceed':
        this.notBlocking.add(result.hook)
        return true
      case 'blocked':
        this.blocking.push(result)
        return false
      case 'failed':
        return this.recordFailure(result)
    }
  }

  /** Records a failed hook. @throws the error of the call */
  recordFailure(hook: FailedHook & { readonly error: unknown }): never {
    this.failed = hook
    throw hook.error
  }
}
