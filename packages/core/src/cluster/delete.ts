/**
 * Takes a Cluster down: workers first, then the control plane, then the infrastructure.
 * Upstream: core/reconcilers/cluster/cluster_controller.go, reconcileDelete, v1.14.
 */
import { ClusterFinalizer, Machine, MachineDeployment, MachineSet, OkToDeleteAnnotation } from '@capstan/api'
import { type Outcome, proceed, wait } from '@capstan/controller'
import { isDeleting, type Kind, keyOf, type KubeObject, orAbsent, removeFinalizer } from '@capstan/kube'
import { deleteExternal, isGone } from '../external/delete.ts'
import { SeeLogs } from '../phase-errors.ts'
import { isStandAlone } from './descendants.ts'
import type { ClusterIO, ClusterPhase, ClusterScope, DeletionStage } from './scope.ts'

export const remove: ClusterPhase = async (scope, io) => {
  const { cluster } = scope
  if (cluster.spec.topology && cluster.metadata.annotations?.[OkToDeleteAnnotation] === undefined) {
    return stage(scope, 'WaitingForBeforeDeleteHook', 'Waiting for BeforeClusterDelete hook')
  }
  scope.deletion = internalError
  await deleteChildren(scope, io)
  const left = childrenLeft(scope)
  if (left !== '') return stage(scope, 'WaitingForWorkersDeletion', left)

  scope.controlPlane = await deleteExternal(scope.controlPlane, io)
  if (!isGone(scope.controlPlane)) {
    return stage(scope, 'WaitingForControlPlaneDeletion', `Waiting for ${cluster.spec.controlPlaneRef?.kind} to be deleted`)
  }
  scope.infrastructure = await deleteExternal(scope.infrastructure, io)
  if (!isGone(scope.infrastructure)) {
    return stage(scope, 'WaitingForInfrastructureDeletion', `Waiting for ${cluster.spec.infrastructureRef?.kind} to be deleted`)
  }
  scope.deletion = { reason: 'DeletionCompleted', message: 'Deletion completed' }
  removeFinalizer(cluster, ClusterFinalizer)
  io.events.event(cluster, 'Normal', 'Deleted', `Cluster ${cluster.metadata.name} has been deleted`)
  return proceed()
}

/** Asks what the Cluster owns to go; what is owned by that follows by itself. */
async function deleteChildren({ cluster, descendants }: ClusterScope, io: ClusterIO): Promise<void> {
  if (!descendants) throw new Error('Cannot delete what belongs to the Cluster: it could not be listed')
  const children = [
    ...descendants.machineDeployments.map((object) => ({ kind: MachineDeployment as Kind, object })),
    ...descendants.machineSets.map((object) => ({ kind: MachineSet as Kind, object })),
    ...descendants.workerMachines.map((object) => ({ kind: Machine as Kind, object })),
    // A control plane provider deletes its own.
    ...(cluster.spec.controlPlaneRef
      ? []
      : descendants.controlPlaneMachines.map((object) => ({ kind: Machine as Kind, object }))),
  ]
  const owned = children.filter(({ object }) => isStandAlone(cluster)(object) && !isDeleting(object))
  const results = await Promise.allSettled(
    owned.map(({ kind, object }) =>
      orAbsent(io.client.delete(kind, keyOf(object), { preconditions: { uid: object.metadata.uid }, signal: io.signal })),
    ),
  )
  const errors = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
  if (errors.length > 0) throw new AggregateError(errors, `Cannot delete ${errors.length} of the objects that the Cluster owns`)
}

/** What must be gone before the control plane goes, in words; empty when all is. */
function childrenLeft({ cluster, descendants }: ClusterScope): string {
  if (!descendants) return ''
  const { controlPlaneMachines, machineDeployments, machineSets, workerMachines } = descendants
  return [
    ...line('Control plane Machines', cluster.spec.controlPlaneRef ? [] : controlPlaneMachines),
    ...line('MachineDeployments', machineDeployments),
    ...line('MachineSets', machineSets),
    ...line('Worker Machines', workerMachines),
  ].join('\n')
}

const MaxNames = 5

function line(what: string, objects: readonly KubeObject[]): string[] {
  if (objects.length === 0) return []
  const names = objects.map(({ metadata }) => metadata.name).sort()
  const more = names.length - MaxNames
  return [`* ${what}: ${names.slice(0, MaxNames).join(', ')}${more > 0 ? `, ... (${more} more)` : ''}`]
}

function stage(scope: ClusterScope, reason: DeletionStage['reason'], message: string): Outcome {
  scope.deletion = { reason, message }
  return wait(message)
}

/** Holds until a step knows better. */
export const internalError: DeletionStage = { reason: 'InternalError', message: SeeLogs }
