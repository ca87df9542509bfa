import type { ClusterResourceSet } from '@capstan/api'
import type { ReconcileContext } from '@capstan/controller'
import type { NewCondition, NewLegacyCondition } from '@capstan/kube'
import type { ClusterCache } from '../cluster-cache/cluster-cache.ts'

/** I/O available to a reconcile. */
export interface ResourceSetIO extends ReconcileContext {
  readonly clusters: ClusterCache
}

/** State of one reconcile of a ClusterResourceSet. */
export interface ResourceSetScope {
  /** A private draft. */
  readonly resourceSet: ClusterResourceSet
  /**
   * Absent when the condition ResourcesApplied stays unchanged. This is the case without selected Clusters, and when resources were not
   * applied because of errors that the condition does not cover. During deletion it is always the case, unless the Clusters could not be
   * determined.
   */
  report?: AppliedReport
  /** False when resources were not applied because a selected Cluster has no connection, unless a conflict ends the reconcile. */
  isConnected: boolean
}

/** The condition ResourcesApplied in the forms of v1beta2 and v1beta1. */
export interface AppliedReport {
  readonly condition: NewCondition
  readonly legacy: NewLegacyCondition
}
