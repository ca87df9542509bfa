/**
 * Decides which unhealthy Machine of a control plane is deleted, so that a new Machine replaces it, and when the deletion must wait. Pure.
 * A simulated control plane has no etcd: each Machine with a Node counts as an etcd member, which is healthy as long as the Machine is
 * healthy.
 * Upstream: remediation.go of controlplane/kubeadm, v1.14.
 */
import { compareText, durationText, hours, seconds, timeLeft } from '@capstan/kube'
import type { LocalControlPlane } from '../kinds/local-control-plane.ts'
import type { PlannedMachine } from './plan.ts'

/**
 * Record of a started remediation: in an annotation of the control plane until the replacement exists, then in an annotation of the
 * replacement.
 */
export interface RemediationRecord {
  /** Name of the deleted Machine. */
  readonly machine: string
  /** Time of the deletion, in RFC 3339. */
  readonly timestamp: string
  /**
   * Number of retries in a row, including this remediation; 0 if it is not a retry. A retry replaces a Machine that itself
   * replaced an unhealthy Machine and failed within `minHealthyPeriodSeconds`.
   */
  readonly retryCount: number
}

/** Annotation of a control plane between the deletion of an unhealthy Machine and the creation of its replacement. */
export const RemediationInProgressAnnotation = 'controlplane.capstan.dev/remediation-in-progress'

/** Annotation of a Machine that replaces an unhealthy Machine. */
export const RemediationForAnnotation = 'controlplane.capstan.dev/remediation-for'

/** Parses the value of an annotation. @throws Error when the value is not a record */
export function parseRecord(value: string): RemediationRecord {
  const record = JSON.parse(value) as RemediationRecord
  if (typeof record?.machine !== 'string' || typeof record.timestamp !== 'string' || typeof record.retryCount !== 'number') {
    throw new Error(`Cannot read a remediation from annotation value ${value}`)
  }
  return record
}

/** A control plane Machine, healthy or not, with the fields that planning and remediation need. */
export interface ObservedMachine extends PlannedMachine {
  /** Whether a MachineHealthCheck has found a problem. */
  readonly failsHealthCheck: boolean
  /** Whether a MachineHealthCheck has requested that the control plane remediates the Machine. */
  readonly remediationRequested: boolean
  /** Whether a user has requested the remediation of the Machine. */
  readonly marked: boolean
  /** The remediation for which this Machine was created as the replacement. */
  readonly replaces?: RemediationRecord | undefined
}

/** Inputs of `planRemediation`. */
export interface RemediationFacts {
  readonly machines: readonly ObservedMachine[]
  readonly initialized: boolean
  /** Whether an unhealthy Machine was deleted and its replacement is not created yet. */
  readonly inProgress: boolean
  /** Version to which the topology of the Cluster upgrades the control plane next; `undefined` if no such upgrade is pending. */
  readonly pendingVersion?: string | undefined
  /** `spec.remediation` of the control plane. */
  readonly limits: NonNullable<LocalControlPlane['spec']['remediation']>
  /** In milliseconds since the Unix epoch. */
  readonly now: number
}

export type Remediation =
  | { readonly kind: 'none' }
  /** The deletion must wait. `until` is the time at which to decide again, if no watch event leads to an earlier decision. */
  | {
      readonly kind: 'wait'
      readonly machine: string
      readonly reason: 'CannotBeRemediated' | 'RemediationDeferred'
      readonly message: string
      readonly until?: number | undefined
    }
  | { readonly kind: 'delete'; readonly machine: string; readonly record: RemediationRecord }

/** Returns the next remediation, or why it must wait. The texts are upstream's, but name LocalControlPlane. */
export function planRemediation(facts: RemediationFacts): Remediation {
  const { machines, initialized, inProgress, pendingVersion } = facts
  const [first] = machines.filter((machine) => machine.remediationRequested).sort(byRemediationOrder)
  if (!first || first.deleting || inProgress) return { kind: 'none' }
  const machine = first.name
  const wait = (reason: 'CannotBeRemediated' | 'RemediationDeferred', detail: string, until?: number): Remediation => ({
    kind: 'wait',
    machine,
    reason,
    message: `LocalControlPlane ${detail}`,
    until,
  })

  if (pendingVersion !== undefined) {
    const detail = `can't remediate while waiting for a version upgrade to ${pendingVersion} to be propagated from Cluster.spec.topology`
    return wait('RemediationDeferred', detail)
  }
  const record = nextRecord(first, facts)
  if ('until' in record) {
    const detail = `can't remediate this machine because the operation already failed in the latest ${durationText(record.period)} (RetryPeriodSeconds)`
    return wait('RemediationDeferred', detail, record.until)
  }
  if ('retries' in record) {
    const detail = `can't remediate this machine because the operation already failed ${record.retries} times (MaxRetry)`
    return wait('CannotBeRemediated', detail)
  }
  if (!initialized) return { kind: 'delete', machine, record }

  if (machines.length <= 1) return wait('CannotBeRemediated', "can't remediate if current replicas are less or equal to 1")
  if (machines.some((candidate) => !candidate.failsHealthCheck && !candidate.hasNode)) {
    const detail = 'waiting for control plane Machine provisioning to complete before triggering remediation'
    return wait('RemediationDeferred', detail)
  }
  if (machines.some((candidate) => candidate.deleting)) {
    const detail = 'waiting for control plane Machine deletion to complete before triggering remediation'
    return wait('RemediationDeferred', detail)
  }
  const otherMachines = machines.filter((candidate) => candidate !== first)
  const isSafe = otherMachines.some(({ healthy }) => healthy) && (!first.hasNode || keepsQuorum(otherMachines))
  if (!isSafe) {
    const detail = `can't remediate this Machine because this could result in loosing Kubernetes control plane components or in etcd quorum loss`
    return wait('CannotBeRemediated', detail)
  }
  return { kind: 'delete', machine, record }
}

/**
 * Whether the healthy etcd members of these Machines are a quorum. With `joining`, one more member is counted, and as unhealthy unless it
 * is the first or second member.
 * Upstream: targetEtcdClusterHealthy.
 */
export function keepsQuorum(machines: readonly PlannedMachine[], joining = false): boolean {
  const members = machines.filter(({ hasNode }) => hasNode)
  const healthy = members.filter((member) => member.healthy).length
  const voting = members.length + (joining ? 1 : 0)
  // Otherwise the first two members could not join: one or two members have a quorum only if all of them are healthy.
  const countsAsHealthy = joining && members.length <= 1
  return healthy + (countsAsHealthy ? 1 : 0) >= Math.floor(voting / 2) + 1
}

function byRemediationOrder(a: ObservedMachine, b: ObservedMachine): number {
  return (
    Number(b.marked) - Number(a.marked) ||
    Number(a.hasNode) - Number(b.hasNode) ||
    Number(a.healthy) - Number(b.healthy) ||
    compareText(a.created, b.created) ||
    compareText(a.name, b.name)
  )
}

/** Upstream: DefaultMinHealthyPeriodSeconds. */
const DefaultMinHealthyPeriod = hours(1)

/** Returns the record of a remediation that starts now, or the limit that forbids it. */
function nextRecord(
  { name, replaces }: ObservedMachine,
  { limits, now }: RemediationFacts,
): RemediationRecord | { readonly until: number; readonly period: number } | { readonly retries: number } {
  const first = { machine: name, timestamp: `${new Date(now).toISOString().slice(0, 19)}Z`, retryCount: 0 }
  if (!replaces) return first
  const last = Date.parse(replaces.timestamp)
  const { maxRetry, retryPeriodSeconds = 0, minHealthyPeriodSeconds } = limits
  const minHealthyPeriod = minHealthyPeriodSeconds === undefined ? DefaultMinHealthyPeriod : seconds(minHealthyPeriodSeconds)
  // A replacement that fails after this period is assumed to have another problem than the Machine that it replaced.
  if (timeLeft({ since: last, length: minHealthyPeriod, now }) <= 0) return first
  const period = seconds(retryPeriodSeconds)
  const remaining = timeLeft({ since: last, length: period, now })
  if (remaining > 0) return { until: now + remaining, period }
  if (maxRetry !== undefined && replaces.retryCount >= maxRetry) return { retries: maxRetry }
  return { ...first, retryCount: replaces.retryCount + 1 }
}
