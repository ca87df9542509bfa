/**
 * Who may take which version now. Pure: hooks appear as facts (what is pending, what was answered), and where an answer is
 * missing the decision is to ask for it. Upstream: exp/topology/desiredstate, v1.14, with the order of marks of its #14171.
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

/** Hooks of a step that are marked pending when it begins; each holds the control plane back until it lets go. */
export const stepHooks = ['AfterControlPlaneUpgrade', 'BeforeWorkersUpgrade', 'AfterWorkersUpgrade'] as const

/** Hooks to mark when the control plane takes `version`: those of the workers only when it is theirs, too. */
export const marksOfStep = (version: string, { workers }: UpgradePlan): UpgradeHook[] => [
  'AfterClusterUpgrade',
  'AfterControlPlaneUpgrade',
  ...(workers[0] === version ? (['BeforeWorkersUpgrade', 'AfterWorkersUpgrade'] as const) : []),
]

export interface UpgradeFacts {
  /** `spec.topology.version`. */
  readonly desired: string
  readonly plan: UpgradePlan
  /** The version of the workers that is furthest behind; absent when there are none. */
  readonly lowestWorker: string | undefined
  /** Absent while there is no control plane object. */
  readonly controlPlane: { readonly version: string; readonly provisioning: boolean; readonly upgrading: boolean } | undefined
  readonly anyWorkerUpgrading: boolean
  /** Hooks that are marked pending on the Cluster. */
  readonly pending: ReadonlySet<string>
  /** The version that the control plane was last told to take, from the Cluster's upgrade-step annotation. */
  readonly step: string | undefined
  /** What hooks answered in this pass. A mark is removed as soon as its hook lets go. */
  readonly answers: ReadonlyMap<UpgradeHook, 'go' | 'blocked'>
}

export interface ControlPlaneVersion {
  readonly kind: 'version'
  readonly version: string
  readonly state: 'stable' | 'provisioning' | 'upgrading' | 'starting' | 'pending'
  /** The control plane has another version than the topology asks for. Kept beside `state`: one that is upgrading may be, too. */
  readonly pending: boolean
  /** The control plane may not go on before the workers have caught up with it. */
  readonly waitingForWorkers: boolean
}

export type ControlPlaneDecision = ControlPlaneVersion | { readonly kind: 'call'; readonly hook: UpgradeHook }

/** The version that the control plane should have after this pass, or the hook to call before that can be said. */
export function controlPlaneVersion(facts: UpgradeFacts): ControlPlaneDecision {
  const { controlPlane, desired, plan, pending: hooks, answers } = facts
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
  const held = pending ? 'pending' : 'stable'

  if (controlPlane.provisioning) return keep('provisioning')
  if (controlPlane.upgrading) return keep('upgrading')
  /** Whether a hook that was marked is still in the way: to be called, or blocking. */
  const due = (hook: UpgradeHook): ControlPlaneDecision | undefined => {
    if (!hooks.has(hook) || startWasInterrupted(facts)) return undefined
    return answers.get(hook) === 'blocked' ? keep(held) : { kind: 'call', hook }
  }
  const beforeWorkers = due('AfterControlPlaneUpgrade') ?? due('BeforeWorkersUpgrade')
  if (beforeWorkers) return beforeWorkers
  if (plan.workers[0] === current) return keep(held, true)
  if (facts.anyWorkerUpgrading) return keep(held)
  const afterWorkers = due('AfterWorkersUpgrade')
  if (afterWorkers) return afterWorkers
  if (!pending) return keep('stable')

  if (!hooks.has('AfterClusterUpgrade')) {
    const answer = answers.get('BeforeClusterUpgrade')
    if (answer === undefined) return { kind: 'call', hook: 'BeforeClusterUpgrade' }
    if (answer === 'blocked') return keep('pending')
  }
  const next = plan.controlPlane[0]
  if (next === undefined) throw new Error('cannot compute the control plane version: the upgrade plan is empty')
  const answer = answers.get('BeforeControlPlaneUpgrade')
  if (answer === undefined) return { kind: 'call', hook: 'BeforeControlPlaneUpgrade' }
  if (answer === 'blocked') return keep('pending')
  return { kind: 'version', version: next, state: 'starting', pending: false, waitingForWorkers: false }
}

/**
 * The marks of a step are written before the control plane takes the version, so that no stop in between loses a hook. If the
 * step is above the control plane's version, that stop happened: the control plane never took it, and nothing is after it yet.
 */
const startWasInterrupted = ({ controlPlane, step }: UpgradeFacts): boolean =>
  step !== undefined && controlPlane !== undefined && compareWithBuild(step, controlPlane.version) === 1

export interface WorkerTopology {
  readonly name: string
  /** Version of the existing object; absent when it is still to be created. */
  readonly current: string | undefined
  /** Some of its Machines have another version than the object itself. */
  readonly upgrading: boolean
  /** Has the defer-upgrade annotation. */
  readonly defer: boolean
  /** Has the hold-upgrade-sequence annotation, which also holds all that come after it. */
  readonly hold: boolean
}

export interface WorkerVersion {
  readonly name: string
  readonly version: string
  /** `pending` and `deferred` change nothing of the object now; `pendingCreate` is not created yet. */
  readonly state: 'settled' | 'taking' | 'pending' | 'deferred' | 'pendingCreate'
  readonly upgrading: boolean
}

/** The version that each worker topology should have after this pass, in the order in which the user lists them. */
export function workerVersions(
  facts: UpgradeFacts,
  controlPlane: ControlPlaneVersion,
  workers: readonly WorkerTopology[],
  concurrency: number,
): WorkerVersion[] {
  const stable = controlPlane.state === 'stable' && !controlPlane.pending
  const blocked = (['AfterControlPlaneUpgrade', 'BeforeWorkersUpgrade'] as const).some(
    (hook) => facts.answers.get(hook) === 'blocked',
  )
  let upgrading = workers.filter((worker) => worker.upgrading).length
  let held = false

  return workers.map((worker) => {
    held ||= worker.hold
    const { name, current } = worker
    const keep = (state: WorkerVersion['state'], version: string): WorkerVersion => ({
      name,
      version,
      state,
      upgrading: worker.upgrading,
    })
    if (current === undefined) return keep(stable && !blocked ? 'settled' : 'pendingCreate', facts.desired)
    if (current === facts.desired) return keep('settled', current)
    if (worker.defer || held) return keep('deferred', current)
    if (blocked) return keep('pending', current)
    if (upgrading >= concurrency) return keep('pending', current)
    if (!stable && !controlPlane.waitingForWorkers) return keep('pending', current)

    const next = facts.plan.workers[0]
    if (next === undefined)
      throw new Error(`cannot compute the version of MachineDeployment topology ${name}: the upgrade plan is empty`)
    if (next === current) return keep('pending', current)
    upgrading++
    return { name, version: next, state: 'taking', upgrading: true }
  })
}

/** Whether nothing of an upgrade is left to do but to tell so. */
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
