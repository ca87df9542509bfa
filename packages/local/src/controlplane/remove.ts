import { Machine } from '@capstan/api'
import { type Outcome, proceed, type ReconcileContext, wait } from '@capstan/controller'
import { isDeleting, keyOf, removeFinalizer } from '@capstan/kube'
import { LocalControlPlaneFinalizer } from '../kinds/local-control-plane.ts'
import { ensureCertificates } from './certificates.ts'
import { observeMachines } from './observe.ts'
import type { ControlPlaneScope } from './scope.ts'

/** Deletes the control plane Machines after the last worker was deleted. Removes the finalizer when no control plane Machine exists. */
export async function remove(scope: ControlPlaneScope, io: ReconcileContext): Promise<Outcome> {
  const { controlPlane, cluster } = scope
  observeMachines(scope, io)
  scope.certificates = await ensureCertificates(controlPlane, cluster, io)
  if (scope.machines.length === 0) {
    scope.deletion = 'completed'
    removeFinalizer(controlPlane, LocalControlPlaneFinalizer)
    return proceed()
  }
  if (scope.workers.length > 0) {
    scope.deletion = 'waiting for workers'
    return wait(`Machines to be deleted: ${scope.workers.join(', ')}`)
  }
  scope.deletion = 'waiting for machines'
  for (const { machine } of scope.machines) {
    if (isDeleting(machine)) continue
    await io.client.delete(Machine, keyOf(machine), { preconditions: { uid: machine.metadata.uid } })
  }
  return wait('control plane Machines to be deleted')
}
