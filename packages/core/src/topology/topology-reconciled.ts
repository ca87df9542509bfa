/** The TopologyReconciled condition. Pure. Upstream: core/reconcilers/topology/cluster/conditions.go, v1.14. */
import { type Cluster, ClusterConditions, pausedCondition } from '@capstan/api'
import { isDeleting, legacyFalse, legacyTrue, type NewCondition, type NewLegacyCondition } from '@capstan/kube'
import { type BlockingHook, blockingMessage } from './lifecycle-hooks.ts'
import type { ControlPlaneVersion, WorkerVersion } from './upgrade.ts'
import type { UpgradePlan } from './upgrade-plan.ts'

/** What one pass learned, as far as users want to know. */
export interface TopologyReport {
  readonly cluster: Cluster
  readonly paused: boolean
  readonly error: unknown
  readonly blocking: readonly BlockingHook[]
  /** A hook of the upgrade is still to be called. */
  readonly upgradePending: boolean
  readonly upgrade: UpgradeReport | undefined
}

export interface UpgradeReport {
  readonly controlPlaneKind: string
  readonly controlPlane: ControlPlaneVersion
  readonly plan: UpgradePlan
  readonly workers: readonly (WorkerVersion & { readonly objectName: string })[]
}

const condition = ClusterConditions.TopologyReconciled

export function topologyReconciled(report: TopologyReport): NewCondition {
  const { cluster, blocking, upgrade } = report
  if (report.paused) return condition.false('Paused', pausedCondition(cluster, cluster).message)
  if (report.error !== undefined) return condition.false('ReconcileFailed', errorText(report.error))
  if (isDeleting(cluster)) {
    const hooks = blocking.length === 0 ? '' : `. ${blockingMessage(blocking, 'delete')}`
    return condition.false('Deleting', `Cluster is deleting${hooks}`)
  }
  if (!cluster.spec.infrastructureRef && !cluster.spec.controlPlaneRef) {
    if (blocking.length === 0) return condition.true('ReconcileSucceeded')
    return condition.false('ClusterCreating', blockingMessage(blocking, 'Cluster topology creation'))
  }
  if (upgrade && (report.upgradePending || isMoving(upgrade))) return upgrading(cluster, upgrade, blocking)
  return condition.true('ReconcileSucceeded')
}

/** The same in the form of v1beta1. */
export function legacyTopologyReconciled({ type, status, reason, message }: NewCondition): NewLegacyCondition {
  if (status === 'True') return legacyTrue(type)
  return reason === 'ReconcileFailed'
    ? legacyFalse(type, 'TopologyReconcileFailed', 'Error', message)
    : legacyFalse(type, reason, 'Info', message)
}

const isMoving = ({ controlPlane, workers }: UpgradeReport): boolean =>
  controlPlane.pending ||
  controlPlane.state === 'starting' ||
  controlPlane.state === 'upgrading' ||
  workers.some((worker) => worker.upgrading || worker.state !== 'settled')

function upgrading(cluster: Cluster, report: UpgradeReport, blocking: readonly BlockingHook[]): NewCondition {
  const { controlPlane, controlPlaneKind, plan, workers } = report
  const lines = [`Cluster is upgrading to ${cluster.spec.topology?.version}`]
  const controlPlaneMoves = controlPlane.state === 'starting' || controlPlane.state === 'upgrading'
  let deferredOnly = false

  if (blocking.length > 0) lines.push(blockingMessage(blocking, 'upgrade'))
  if (controlPlaneMoves) {
    lines.push(
      `${controlPlaneKind} upgrading to version ${controlPlane.version}${stillAhead(plan.controlPlane, controlPlane.version)}`,
    )
  } else if (plan.controlPlane.length > 0) {
    lines.push(`${controlPlaneKind} pending upgrade to version ${plan.controlPlane.join(', ')}`)
  }

  // One that still moves is not called deferred or pending, whatever comes next for it.
  const moving = namesOf(workers.filter((worker) => worker.upgrading))
  const deferred = namesOf(workers.filter((worker) => !worker.upgrading && worker.state === 'deferred'))
  const pending = namesOf(workers.filter((worker) => !worker.upgrading && worker.state === 'pending'))
  const uncreated = workers.filter((worker) => worker.state === 'pendingCreate').map((worker) => worker.name)
  if (moving.length > 0) {
    lines.push(
      `${machineDeployments(moving)} upgrading to version ${controlPlane.version}${stillAhead(plan.workers, controlPlane.version)}`,
    )
  }
  if (pending.length > 0 && plan.workers.length > 0) {
    lines.push(`${machineDeployments(pending)} pending upgrade to version ${plan.workers.join(', ')}`)
  }
  if (deferred.length > 0) {
    const how = 'deferred using defer-upgrade or hold-upgrade-sequence annotations'
    lines.push(`${machineDeployments(deferred)} upgrade to version ${controlPlane.version} ${how}`)
    deferredOnly = blocking.length === 0 && !controlPlaneMoves && moving.length === 0 && pending.length === 0
  }
  if (uncreated.length > 0) {
    lines.push(`${machineDeployments(uncreated)} creation deferred while control plane upgrade is in progress`)
  }
  return condition.false(deferredOnly ? 'MachineDeploymentsUpgradeDeferred' : 'ClusterUpgrading', lines.join('\n  * '))
}

const namesOf = (workers: readonly { readonly objectName: string }[]): string[] => workers.map((worker) => worker.objectName)

function stillAhead(plan: readonly string[], version: string): string {
  const ahead = plan.filter((step) => step !== version)
  return ahead.length === 0 ? '' : ` (${ahead.join(', ')} pending)`
}

/** `MachineDeployment a`, `MachineDeployments a, b, c, ... (2 more)`. */
function machineDeployments(names: readonly string[]): string {
  const sorted = [...names].sort()
  if (sorted.length === 1) return `MachineDeployment ${sorted[0]}`
  const more = sorted.length > 3 ? `, ... (${sorted.length - 3} more)` : ''
  return `MachineDeployments ${sorted.slice(0, 3).join(', ')}${more}`
}

const errorText = (error: unknown): string => (error instanceof Error ? error.message : String(error))
