import { ClusterConditions, ControlPlaneContract } from '@capstan/api'
import { proceed, wait } from '@capstan/controller'
import { isDeleting, isTrue, type NewCondition, TerminalError } from '@capstan/kube'
import { mirroredCondition } from '../external/mirrored.ts'
import { readTyped } from '../external/observed.ts'
import { SeeLogs } from '../see-logs.ts'
import { awaitsTopology, copyEndpoint, deletedText, missingOfTopology, observeAndAdopt } from './reference.ts'
import type { ClusterIO, ClusterPhase, ClusterScope } from './scope.ts'

/**
 * Adopts the control plane object. Once the control plane is initialized, sets `status.initialization.controlPlaneInitialized` of the
 * Cluster, which stays true, and copies the endpoint of the object if the Cluster has no complete endpoint.
 */
export const controlPlane: ClusterPhase = async (scope, io) => {
  const { cluster } = scope
  const ref = cluster.spec.controlPlaneRef
  if (!isDeleting(cluster) && awaitsTopology(cluster)) {
    scope.controlPlane = { state: 'none' }
    return wait('the topology to be generated')
  }
  if (!ref) {
    scope.controlPlane = { state: 'none' }
    return proceed()
  }
  scope.controlPlane = await observeAndAdopt(scope, io, ref)
  if (scope.controlPlane.state !== 'found') {
    if (isDeleting(cluster)) return proceed()
    if (wasInitialized(scope)) throw new TerminalError(`${ref.kind} has been deleted after being initialized`)
    return wait(`${ref.kind} ${ref.name} to exist`)
  }
  const { external } = scope.controlPlane
  if (isDeleting(external.object)) return proceed()
  if (!readTyped(external, ControlPlaneContract.initialized, 'boolean') && !wasInitialized(scope)) {
    return wait(`${ref.kind} ${ref.name} to be initialized`)
  }

  copyEndpoint(cluster, external, ControlPlaneContract.controlPlaneEndpoint)
  markInitialized(scope, io)
  return proceed()
}

/** Records a control plane without provider as initialized once one of its Machines has a Node: its API server has then responded. */
export const standAloneControlPlane: ClusterPhase = async (scope, io) => {
  const { cluster, descendants } = scope
  if (cluster.spec.controlPlaneRef || cluster.spec.topology || !descendants) return proceed()
  if (descendants.controlPlaneMachines.some(({ status }) => status?.nodeRef)) markInitialized(scope, io)
  return proceed()
}

function markInitialized(scope: ClusterScope, io: ClusterIO): void {
  if (wasInitialized(scope)) return
  const { cluster } = scope
  const status = (cluster.status ??= {})
  status.initialization = { ...status.initialization, controlPlaneInitialized: true }
  io.events.event(
    cluster,
    'Normal',
    'ControlPlaneInitialized',
    `Cluster ${cluster.metadata.name} ControlPlaneInitialized is now True`,
  )
}

const WaitingForFirstNode = 'Waiting for the first control plane machine to have status.nodeRef set'

/** Returns the ControlPlaneInitialized condition; none once it is True, since it never changes after that. Pure. */
export function controlPlaneInitializedConditions(scope: ClusterScope): NewCondition[] {
  return isTrue(scope.cluster, ClusterConditions.ControlPlaneInitialized.type) ? [] : [initializedCondition(scope)]
}

function initializedCondition(scope: ClusterScope): NewCondition {
  const { cluster, controlPlane, descendants } = scope
  const condition = ClusterConditions.ControlPlaneInitialized
  const kind = cluster.spec.controlPlaneRef?.kind
  if (kind === undefined) {
    if (cluster.spec.topology) return condition.unknown('ObjectDoesNotExist', missingOfTopology(cluster))
    if (wasInitialized(scope)) return condition.true('Initialized')
    if (!descendants) return condition.unknown('InternalError', SeeLogs)
    return condition.false('NotInitialized', WaitingForFirstNode)
  }
  switch (controlPlane.state) {
    case 'found':
      // As upstream, reads the provider's value, even if the Cluster does not record it, for example while the object is being deleted.
      try {
        return readTyped(controlPlane.external, ControlPlaneContract.initialized, 'boolean')
          ? condition.true('Initialized')
          : condition.false('NotInitialized', 'Control plane not yet initialized')
      } catch {
        return condition.unknown('InternalError', SeeLogs)
      }
    case 'missing':
      // Upstream reports InternalError here unless the infrastructure cluster is missing: it tests the wrong object.
      return condition.unknown('ObjectDoesNotExist', `${kind} does not exist`)
    case 'none':
      return condition.unknown('ObjectDoesNotExist', missingOfTopology(cluster))
    case 'unread':
      return condition.unknown('InternalError', SeeLogs)
  }
}

/** Returns the ControlPlaneAvailable condition. Pure. */
export function controlPlaneAvailableCondition(scope: ClusterScope): NewCondition {
  const { cluster, controlPlane } = scope
  const condition = ClusterConditions.ControlPlaneAvailable
  const kind = cluster.spec.controlPlaneRef?.kind
  if (kind === undefined || controlPlane.state === 'none') {
    if (cluster.spec.topology) return condition.false('ObjectDoesNotExist', missingOfTopology(cluster))
    return wasInitialized(scope) ? condition.true('Available') : condition.false('NotAvailable', WaitingForFirstNode)
  }
  return mirroredCondition(controlPlane, {
    kind,
    as: condition,
    source: 'Available',
    milestone: ControlPlaneContract.initialized,
    reached: wasInitialized(scope),
    deleted: wasInitialized(scope) ? deletedText(cluster, kind) : undefined,
  })
}

const wasInitialized = ({ cluster }: ClusterScope): boolean => cluster.status?.initialization?.controlPlaneInitialized === true
