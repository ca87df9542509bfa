/**
 * Reports a Cluster's conditions in the v1beta1 form, under `status.deprecated.v1beta1`. Pure, except for the draft that it changes.
 * Upstream: cluster_controller_phases.go and reconcileDelete, v1.14.
 */
import { ControlPlaneContract, InfraClusterContract } from '@capstan/api'
import { isDeleting, legacyFalse, legacyTrue, mirrorProviderReady, type NewLegacyCondition } from '@capstan/kube'
import { isReached } from '../external/observed.ts'
import { reportLegacyConditions } from '../legacy-status.ts'
import type { ClusterScope } from './scope.ts'

/** Types of the v1beta1 conditions that this controller owns. */
export const OwnedLegacyConditions = ['Ready', 'ControlPlaneInitialized', 'ControlPlaneReady', 'InfrastructureReady']

export function reportLegacyStatus(scope: ClusterScope, now: number): void {
  const computed = [...infrastructureReady(scope), ...controlPlaneReady(scope), ...controlPlaneInitialized(scope)]
  reportLegacyConditions(scope.cluster, computed, { now, ready: { of: ['ControlPlaneReady', 'InfrastructureReady'] } })
}

function infrastructureReady({ cluster, infrastructure, deletion }: ClusterScope): NewLegacyCondition[] {
  const type = 'InfrastructureReady'
  switch (infrastructure.state) {
    case 'unread':
      return []
    case 'none':
      // The infrastructure is managed externally, unless the topology will create it.
      return isDeleting(cluster) || cluster.spec.topology ? [] : [legacyTrue(type)]
    case 'missing':
      return deletion.reason === 'DeletionCompleted' ? [legacyFalse(type, 'Deleted', 'Info')] : []
    case 'found': {
      const { external } = infrastructure
      const isProvisioned = isReached(external, InfraClusterContract.provisioned)
      if (isProvisioned === undefined) return []
      return [mirrorProviderReady(external.object, type, fallback(type, 'WaitingForInfrastructure', isProvisioned, cluster))]
    }
  }
}

function controlPlaneReady({ cluster, controlPlane, deletion }: ClusterScope): NewLegacyCondition[] {
  const type = 'ControlPlaneReady'
  switch (controlPlane.state) {
    case 'unread':
    case 'none':
      return []
    case 'missing':
      return deletion.reason === 'WaitingForInfrastructureDeletion' || deletion.reason === 'DeletionCompleted'
        ? [legacyFalse(type, 'Deleted', 'Info')]
        : []
    case 'found': {
      const { external } = controlPlane
      const isInitialized = isReached(external, ControlPlaneContract.initialized)
      if (isInitialized === undefined) return []
      return [mirrorProviderReady(external.object, type, fallback(type, 'WaitingForControlPlane', isInitialized, cluster))]
    }
  }
}

/**
 * Condition for a provider object without a Ready condition. As upstream, the object counts as being deleted while the Cluster is being
 * deleted.
 */
function fallback(type: string, reason: string, isDone: boolean, cluster: ClusterScope['cluster']): NewLegacyCondition {
  if (isDeleting(cluster)) return legacyFalse(type, 'Deleting', 'Info')
  return isDone ? legacyTrue(type) : legacyFalse(type, reason, 'Info')
}

/** Returns the ControlPlaneInitialized condition, which stays True once the control plane was initialized. */
function controlPlaneInitialized({ cluster, controlPlane, descendants }: ClusterScope): NewLegacyCondition[] {
  const type = 'ControlPlaneInitialized'
  if (cluster.status?.initialization?.controlPlaneInitialized) return [legacyTrue(type)]
  switch (controlPlane.state) {
    case 'unread':
    case 'missing':
      return []
    case 'none': {
      if (isDeleting(cluster) || cluster.spec.topology || !descendants) return []
      const message = 'Waiting for the first control plane machine to have its status.nodeRef set'
      return [legacyFalse(type, 'MissingNodeRef', 'Info', message)]
    }
    case 'found': {
      const { external } = controlPlane
      if (isDeleting(external.object) || isReached(external, ControlPlaneContract.initialized) === undefined) return []
      const message = 'Waiting for control plane provider to indicate the control plane has been initialized'
      return [legacyFalse(type, 'WaitingForControlPlaneProviderInitialized', 'Info', message)]
    }
  }
}
