/**
 * Decides which versions the control plane and the workers get in this reconcile. Pure: pending hooks and hook responses are inputs; when a
 * response is missing, the decision is to call the hook. Upstream: exp/topology/desiredstate, v1.14.
 *
 * The pending hooks of a step are written before the version of the control plane, as in upstream's v1.14.0. If the version is then not
 * written, `startWasInterrupted` prevents calls of the hooks; v1.14.0 calls them. After v1.14.0, upstream's pull request 14171 changed the
 * order: the version is written before the pending hooks.
 */
import type { UpgradePlan } from './upgrade-plan.ts'
import { compareWithBuild } from '@capstan/api'

/** The hooks of an upgrade. */
export type UpgradeHook =
  | 'BeforeClusterUpgrade'
  | 'BeforeControlPlaneUpgrade'
  | 'AfterControlPlaneUpgrade'
  | 'BeforeWorkersUpgrade'
  | 'AfterWorkersUpgrade'
  | 'AfterClusterUpgrade'

/**
 * Hooks of one step of the upgrade: they become pending when the step begins, those of workers only if the step upgrades workers. While one
 * of them blocks, the control plane keeps its version. AfterClusterUpgrade is not one of them, because it ends the whole upgrade.
 */
export const stepHooks = ['AfterControlPlaneUpgrade', 'BeforeWorkersUpgrade', 'AfterWorkersUpgrade'] as const

/**
 * Returns the hooks that become pending when the control plane is upgraded to `version`. Hooks of workers are included only when `version`
 * is also the next step of the workers.
 */
export const hooksPendingAfterStart = (version: string, { workers }: UpgradePlan): UpgradeHook[] => [
  'AfterClusterUpgrade',
  'AfterControlPlaneUpgrade',
  ...(workers[0] === version ? (['BeforeWorkersUpgrade', 'AfterWorkersUpgrade'] as const) : []),
]

/** State from which the versions are decided. */
export interface UpgradeFacts {
  /** `spec.topology.version`. */
  readonly desired: string
  readonly plan: UpgradePlan
  /** The lowest version of the workers; absent when there are no workers. */
  readonly lowestWorker: string | undefined
  /** Absent while the control plane object does not exist. */
  readonly controlPlane: { readonly version: string; readonly provisioning: boolean; readonly upgrading: boolean } | undefined
  readonly anyWorkerUpgrading: boolean
  /** Hooks that are marked pending on the Cluster. */
  readonly pending: ReadonlySet<string>
  /**
   * The upgrade-step annotation: the version of the step that began last, recorded before the control plane gets this version. Before the
   * first step, the version of the control plane; absent when no upgrade is in progress.
   */
  readonly step: string | undefined
  /** Responses of hooks in this reconcile. A step hook is removed from `pending` once its response allows the upgrade to proceed. */
  readonly responses: ReadonlyMap<UpgradeHook, 'proceed' | 'blocked'>
}

/** The version that the control plane should have after this reconcile. */
export interface ControlPlaneVersion {
  readonly kind: 'version'
  readonly version: string
  /** `starting`: the control plane gets its next version in this reconcile. `pending`: its upgrade must wait. */
  readonly state: 'stable' | 'provisioning' | 'upgrading' | 'starting' | 'pending'
  /**
   * Whether the control plane keeps another version than the topology's in this reconcile, also while it is `upgrading` to an intermediate
   * step. False for `starting`. While true, the control plane object is not written.
   */
  readonly pending: boolean
  /** Whether the control plane must wait until the workers have reached its version. */
  readonly waitingForWorkers: boolean
}

export type ControlPlaneDecision = ControlPlaneVersion | { readonly kind: 'call'; readonly hook: UpgradeHook }

/** Returns the version that the control plane should have after this reconcile, or the hook to call first. */
export function controlPlaneVersion(facts: UpgradeFacts): ControlPlaneDecision {
  const { controlPlane, desired, plan, pending: hooks, responses } = facts
  if (!controlPlane) return { kind: 'version', version: desired, state: 'stable', pending: false, waitingForWorkers: false }

  const current = controlPlane.version
  const pending = current !== desired
  const keep = (state: ControlPlaneVersion['state'], waitingForWorkers = false): ControlPlaneVersion => ({
    kind: 'version',
    version: current,
    state,
    pending,
    waitingForWorkers,
  })
  const waitingState = pending ? 'pending' : 'stable'

  if (controlPlane.provisioning) return keep('provisioning')
  if (controlPlane.upgrading) return keep('upgrading')
  /**
   * Returns the decision for a pending hook: to call the hook, or to keep the version because the hook blocks. `undefined` if the hook is
   * not pending, or the start of the step was interrupted.
   */
  const due = (hook: UpgradeHook): ControlPlaneDecision | undefined => {
    if (!hooks.has(hook) || startWasInterrupted(facts)) return undefined
    return responses.get(hook) === 'blocked' ? keep(waitingState) : { kind: 'call', hook }
  }
  const beforeWorkers = due('AfterControlPlaneUpgrade') ?? due('BeforeWorkersUpgrade')
  if (beforeWorkers) return beforeWorkers
  if (plan.workers[0] === current) return keep(waitingState, true)
  if (facts.anyWorkerUpgrading) return keep(waitingState)
  const afterWorkers = due('AfterWorkersUpgrade')
  if (afterWorkers) return afterWorkers
  if (!pending) return keep('stable')

  if (!hooks.has('AfterClusterUpgrade')) {
    const response = responses.get('BeforeClusterUpgrade')
    if (response === undefined) return { kind: 'call', hook: 'BeforeClusterUpgrade' }
    if (response === 'blocked') return keep('pending')
  }
  const next = plan.controlPlane[0]
  if (next === undefined) throw new Error('cannot compute the control plane version: the upgrade plan is empty')
  const response = responses.get('BeforeControlPlaneUpgrade')
  if (response === undefined) return { kind: 'call', hook: 'BeforeControlPlaneUpgrade' }
  if (response === 'blocked') return keep('pending')
  return { kind: 'version', version: next, state: 'starting', pending: false, waitingForWorkers: false }
}

/**
 * Whether the start of a step was interrupted, by a crash or because the new version of the control plane could not be written. The pending
 * hooks of a step are written before this version, so that an interruption loses no hook. After an interruption, the recorded step is newer
 * than the control plane's version, and the hooks of the step are not due.
 */
export const startWasInterrupted = ({ controlPlane, step }: UpgradeFacts): boolean =>
  step !== undefined && controlPlane !== undefined && compareWithBuild(step, controlPlane.version) === 1

/** A MachineDeployment or MachinePool of a topology, with the state of its object. */
export interface WorkerTopology {
  readonly name: string
  /** Version of the existing object; absent before it is created. */
  readonly current: string | undefined
  /** Whether Machines of a MachineDeployment or their kubelets, or Nodes of a MachinePool, have another version than the object itself. */
  readonly upgrading: boolean
  /** Whether it has the defer-upgrade annotation. */
  readonly defer?: boolean
  /** Whether it has the hold-upgrade-sequence annotation, which also defers all following workers of the same kind. */
  readonly hold?: boolean
  /** Whether the topology no longer has it, but its object still exists. */
  readonly removed?: boolean
}

/** The version that a MachineDeployment or MachinePool should have after this reconcile. */
export interface WorkerVersion {
  readonly name: string
  readonly version: string
  /**
   * `settled`: the object has the topology's version, may be created with it, or is no longer in the topology. `starting` upgrades the object
   * in this reconcile; `pending` and `deferred` leave it unchanged; `pendingCreate` postpones its creation.
   */
  readonly state: 'settled' | 'starting' | 'pending' | 'deferred' | 'pendingCreate'
  readonly upgrading: boolean
}

/**
 * Returns the version that each worker topology of one kind should have after this reconcile, in the user's order. The concurrency limit
 * applies to MachineDeployments and MachinePools separately, as upstream.
 */
export function workerVersions(
  facts: UpgradeFacts,
  controlPlane: ControlPlaneVersion,
  workers: readonly WorkerTopology[],
  {
    concurrency,
    kind = 'MachineDeployment',
  }: { readonly concurrency: number; readonly kind?: 'MachineDeployment' | 'MachinePool' },
): WorkerVersion[] {
  const isStable = controlPlane.state === 'stable' && !controlPlane.pending
  const isBlocked = (['AfterControlPlaneUpgrade', 'BeforeWorkersUpgrade'] as const).some(
    (hook) => facts.responses.get(hook) === 'blocked',
  )
  let upgrading = workers.filter((worker) => worker.upgrading).length
  let isHeld = false

  return workers.map((worker) => {
    isHeld ||= worker.hold ?? false
    const { name, current } = worker
    const keep = (state: WorkerVersion['state'], version: string): WorkerVersion => ({
      name,
      version,
      state,
      upgrading: worker.upgrading,
    })
    if (current === undefined) return keep(isStable && !isBlocked ? 'settled' : 'pendingCreate', facts.desired)
    if (worker.removed || current === facts.desired) return keep('settled', current)
    if (worker.defer || isHeld) return keep('deferred', current)
    if (isBlocked) return keep('pending', current)
    if (upgrading >= concurrency) return keep('pending', current)
    if (!isStable && !controlPlane.waitingForWorkers) return keep('pending', current)

    const next = facts.plan.workers[0]
    if (next === undefined) {
      const kindText = kind === 'MachinePool' ? 'machine pool' : 'machine deployment'
      throw new Error(
        `failed to compute ${workerErrorPrefix(kind, name)}: cannot compute the ${kindText} version if the ${kindText} is pending upgrade and the upgrade plan is not set`,
      )
    }
    if (next === current) return keep('pending', current)
    if (!worker.upgrading) upgrading++
    return { name, version: next, state: 'starting', upgrading: true }
  })
}

/** Returns how errors about the worker topology `name` begin, after "failed to compute". The spelling "MachineDepoyment" is upstream's. */
export const workerErrorPrefix = (kind: 'MachineDeployment' | 'MachinePool', name: string): string =>
  `${kind}s: failed to compute ${kind === 'MachinePool' ? kind : 'MachineDepoyment'} for topology ${JSON.stringify(name)}`

/** Whether the upgrade is complete except for its final hook, AfterClusterUpgrade. */
export function upgradeIsOver(
  facts: UpgradeFacts,
  controlPlane: ControlPlaneVersion,
  workers: readonly WorkerVersion[],
): boolean {
  return (
    !stepHooks.some((hook) => facts.pending.has(hook)) &&
    controlPlane.state === 'stable' &&
    !controlPlane.pending &&
    workers.every((worker) => worker.state === 'settled' && !worker.upgrading)
  )
}
