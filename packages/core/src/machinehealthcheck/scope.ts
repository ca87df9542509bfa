import type { Cluster, MachineHealthCheck } from '@capstan/api'
import type { ReconcileContext, Phase } from '@capstan/controller'
import type { NewLegacyCondition } from '@capstan/kube'
import type { ClusterCache } from '../cluster-cache/cluster-cache.ts'
import type { RemediationLimit } from './remediation-limit.ts'

/** State of one reconcile of a MachineHealthCheck: its inputs and decisions. */
export interface MachineHealthCheckScope {
  /** A private draft, changed by phases and committed once at the end. */
  readonly healthCheck: MachineHealthCheck
  readonly cluster: Cluster
  /** Absent until all Machines were checked. */
  limit: RemediationLimit | undefined
  /** Whether any Machine failed a check. */
  isAnyUnhealthy: boolean
  /** Problems with remediation templates and requests, as v1beta1 conditions of the MachineHealthCheck. */
  readonly legacyProblems: NewLegacyCondition[]
}

/** I/O available to phases. */
export interface MachineHealthCheckIO extends ReconcileContext {
  readonly clusters: ClusterCache
}

export type MachineHealthCheckPhase = Phase<MachineHealthCheckScope, MachineHealthCheckIO>
