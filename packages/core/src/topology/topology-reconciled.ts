/** Computes the TopologyReconciled condition. Pure. Upstream: core/reconcilers/topology/cluster/status.go, v1.14. */
import { type Cluster, ClusterConditions, pausedCondition } from '@capstan/api'
import {
  appendAll,
  isDeleting,
  legacyFalse,
  legacyTrue,
  type NewCondition,
  type NewLegacyCondition,
  shortList,
} from '@capstan/kube'
import { type BlockingHook, blockingMessage } from './hooks/lifecycle-hooks.ts'
import type { ControlPlaneVersion, WorkerVersion } from './upgrade/upgrade.ts'
import type { UpgradePlan } from './upgrade/upgrade-plan.ts'

/** Result of one reconcile, as reported to users. */
export interface TopologyReport {
  readonly cluster: Cluster
  readonly paused: boolean
  /** Error with which the reconcile failed, or `undefined`. */
  readonly error: unknown
  readonly blocking: readonly BlockingHook[]
  /** Whether an upgrade has begun and its last hook, AfterClusterUpgrade, has not succeeded yet. */
  readonly upgradePending: boolean
  readonly upgrade: UpgradeReport | undefined
}

/** Versions that the reconcile has decided, for the message of the condition. */
export interface UpgradeReport {
  readonly controlPlaneKind: string
  readonly controlPlane: ControlPlaneVersion
  readonly plan: UpgradePlan
  readonly workers: readonly NamedVersion[]
  readonly pools: readonly NamedVersion[]
}

type NamedVersion = WorkerVersion & { readonly objectName: string }

const condition = ClusterConditions.TopologyReconciled

export function topologyReconciledCondition(report: TopologyReport): NewCondition {
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
  if (upgrade && (report.upgradePending || isUpgrading(upgrade))) return upgradingCondition(cluster, upgrade, blocking)
  return condition.true('ReconcileSucceeded')
}

/** Converts the condition to the v1beta1 form. */
export function legacyTopologyReconciled({ type, status, reason, message }: NewCondition): NewLegacyCondition {
  if (status === 'True') return legacyTrue(type)
  return reason === 'ReconcileFailed'
    ? legacyFalse(type, 'TopologyReconcileFailed', 'Error', message)
    : legacyFalse(type, reason, 'Info', message)
}

const isUpgrading = ({ controlPlane, workers, pools }: UpgradeReport): boolean =>
  controlPlane.pending ||
  controlPlane.state === 'starting' ||
  controlPlane.state === 'upgrading' ||
  [...workers, ...pools].some((worker) => worker.upgrading || worker.state !== 'settled')

function upgradingCondition(cluster: Cluster, report: UpgradeReport, blocking: readonly BlockingHook[]): NewCondition {
  const { controlPlane, controlPlaneKind, plan } = report
  const lines = [`Cluster is upgrading to ${cluster.spec.topology?.version}`]
  const isControlPlaneUpgrading = controlPlane.state === 'starting' || controlPlane.state === 'upgrading'

  if (blocking.length > 0) lines.push(blockingMessage(blocking, 'upgrade'))
  if (isControlPlaneUpgrading) {
    lines.push(
      `${controlPlaneKind} upgrading to version ${controlPlane.version}${pendingStepsText(plan.controlPlane, controlPlane.version)}`,
    )
  } else if (plan.controlPlane.length > 0) {
    lines.push(`${controlPlaneKind} pending upgrade to version ${plan.controlPlane.join(', ')}`)
  }
  const deployments = linesOf('MachineDeployment', report.workers, report)
  const pools = linesOf('MachinePool', report.pools, report)
  appendAll(lines, deployments.lines, pools.lines)
  const message = lines.join('\n  * ')
  if (blocking.length === 0 && !isControlPlaneUpgrading) {
    if (deployments.isDeferredOnly) return condition.false('MachineDeploymentsUpgradeDeferred', message)
    if (pools.isDeferredOnly) return condition.false('MachinePoolsUpgradeDeferred', message)
  }
  return condition.false('ClusterUpgrading', message)
}

/** Returns the message lines about workers of one kind, and whether workers are deferred while none is upgrading or pending. */
function linesOf(
  kind: 'MachineDeployment' | 'MachinePool',
  workers: readonly NamedVersion[],
  { controlPlane: { version }, plan }: UpgradeReport,
): { readonly lines: string[]; readonly isDeferredOnly: boolean } {
  const lines: string[] = []
  // Workers that are upgrading are not listed as deferred or pending, even if they are deferred or pending for a later version.
  const upgradingNames = namesOf(workers.filter((worker) => worker.upgrading))
  const deferred = namesOf(workers.filter((worker) => !worker.upgrading && worker.state === 'deferred'))
  const pending = namesOf(workers.filter((worker) => !worker.upgrading && worker.state === 'pending'))
  const uncreated = workers.filter((worker) => worker.state === 'pendingCreate').map((worker) => worker.name)
  if (upgradingNames.length > 0) {
    lines.push(`${nameList(kind, upgradingNames)} upgrading to version ${version}${pendingStepsText(plan.workers, version)}`)
  }
  if (pending.length > 0 && plan.workers.length > 0) {
    lines.push(`${nameList(kind, pending)} pending upgrade to version ${plan.workers.join(', ')}`)
  }
  if (deferred.length > 0) {
    lines.push(`${nameList(kind, deferred)} upgrade to version ${version} deferred using ${deferAnnotations[kind]} annotations`)
  }
  if (uncreated.length > 0) {
    lines.push(`${nameList(kind, uncreated)} creation deferred while control plane upgrade is in progress`)
  }
  return { lines, isDeferredOnly: deferred.length > 0 && upgradingNames.length === 0 && pending.length === 0 }
}

/** Annotations that defer an upgrade, as upstream's messages name them. */
const deferAnnotations = {
  MachineDeployment: 'defer-upgrade or hold-upgrade-sequence',
  MachinePool: 'topology.cluster.x-k8s.io/defer-upgrade or hold-upgrade-sequence',
} as const

const namesOf = (workers: readonly { readonly objectName: string }[]): string[] => workers.map((worker) => worker.objectName)

function pendingStepsText(plan: readonly string[], version: string): string {
  const pendingSteps = plan.filter((step) => step !== version)
  return pendingSteps.length === 0 ? '' : ` (${pendingSteps.join(', ')} pending)`
}

/** Formats `MachineDeployment a`, or `MachineDeployments a, b, c, ... (2 more)`. */
function nameList(kind: string, names: readonly string[]): string {
  const sorted = [...names].sort()
  if (sorted.length === 1) return `${kind} ${sorted[0]}`
  return `${kind}s ${shortList(sorted, 3)}`
}

const errorText = (error: unknown): string => (error instanceof Error ? error.message : String(error))
