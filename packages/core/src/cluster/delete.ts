/**
 * Deletes the objects of a Cluster that is being deleted: workers first, then the control plane, then the infrastructure. Then removes the
 * finalizer of the Cluster. Without a control plane provider, control plane Machines are deleted together with the workers. Upstream:
 * core/reconcilers/cluster/cluster_controller.go, reconcileDelete, v1.14.
 */
import { ClusterFinalizer, Machine, MachineDeployment, MachinePool, MachineSet, OkToDeleteAnnotation } from '@capstan/api'
import { type Outcome, proceed, wait } from '@capstan/controller'
import { isDeleting, type Kind, keyOf, type KubeObject, orAbsent, removeFinalizer, shortList } from '@capstan/kube'
import { deleteExternal, isGone } from '../external/delete.ts'
import { awaitsDeleteHook } from '../feature-gates.ts'
import { SeeLogs } from '../see-logs.ts'
import { isStandAlone } from './descendants.ts'
import type { ClusterIO, ClusterPhase, ClusterScope, DeletionStage } from './scope.ts'

export const remove: ClusterPhase = async (scope, io) => {
  const { cluster } = scope
  const mayAwaitHook = cluster.spec.topology && awaitsDeleteHook(io.settings.gates)
  if (mayAwaitHook && cluster.metadata.annotations?.[OkToDeleteAnnotation] === undefined) {
    return waitInStage(scope, 'WaitingForBeforeDeleteHook', 'Waiting for BeforeClusterDelete hook')
  }
  scope.deletion = internalError
  await deleteChildren(scope, io)
  const remaining = childrenLeft(scope)
  if (remaining !== '') return waitInStage(scope, 'WaitingForWorkersDeletion', remaining)

  scope.controlPlane = await deleteExternal(scope.controlPlane, io)
  if (!isGone(scope.controlPlane)) {
    return waitInStage(scope, 'WaitingForControlPlaneDeletion', `Waiting for ${cluster.spec.controlPlaneRef?.kind} to be deleted`)
  }
  scope.infrastructure = await deleteExternal(scope.infrastructure, io)
  if (!isGone(scope.infrastructure)) {
    return waitInStage(
      scope,
      'WaitingForInfrastructureDeletion',
      `Waiting for ${cluster.spec.infrastructureRef?.kind} to be deleted`,
    )
  }
  scope.deletion = { reason: 'DeletionCompleted', message: 'Deletion completed' }
  removeFinalizer(cluster, ClusterFinalizer)
  io.events.event(cluster, 'Normal', 'Deleted', `Cluster ${cluster.metadata.name} has been deleted`)
  return proceed()
}

/**
 * Deletes the MachinePools, MachineDeployments, MachineSets and Machines that the Cluster owns directly. The controllers of these objects and
 * garbage collection delete their dependents.
 */
async function deleteChildren({ cluster, descendants }: ClusterScope, io: ClusterIO): Promise<void> {
  if (!descendants) throw new Error('Cannot delete the objects of the Cluster: they could not be listed')
  const children = [
    ...descendants.machinePools.map((object) => ({ kind: MachinePool as Kind, object })),
    ...descendants.machineDeployments.map((object) => ({ kind: MachineDeployment as Kind, object })),
    ...descendants.machineSets.map((object) => ({ kind: MachineSet as Kind, object })),
    ...descendants.workerMachines.map((object) => ({ kind: Machine as Kind, object })),
    // A control plane provider deletes its own Machines.
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

/** Lists the remaining objects that must be gone before the control plane is deleted; returns an empty text when none is left. */
function childrenLeft({ cluster, descendants }: ClusterScope): string {
  if (!descendants) return ''
  const { controlPlaneMachines, machineDeployments, machinePools, machineSets, workerMachines } = descendants
  return [
    ...line('Control plane Machines', cluster.spec.controlPlaneRef ? [] : controlPlaneMachines),
    ...line('MachineDeployments', machineDeployments),
    ...line('MachineSets', machineSets),
    ...line('MachinePools', machinePools),
    ...line('Worker Machines', workerMachines),
  ].join('\n')
}

function line(title: string, objects: readonly KubeObject[]): string[] {
  if (objects.length === 0) return []
  const names = objects.map(({ metadata }) => metadata.name).sort()
  return [`* ${title}: ${shortList(names, 5)}`]
}

function waitInStage(scope: ClusterScope, reason: DeletionStage['reason'], message: string): Outcome {
  scope.deletion = { reason, message }
  return wait(message)
}

/** Deletion stage that is reported until a deletion step sets a more specific stage. */
export const internalError: DeletionStage = { reason: 'InternalError', message: SeeLogs }
