/**
 * Updates a Machine in place to the state that its owner has written: calls an extension until it reports that the update is done. The
 * owner starts the update with the annotation `update-in-progress` and with the hook UpdateMachine in the annotation `pending-hooks`; this
 * controller removes both. Upstream: core/reconcilers/machine/machine_controller_inplace_update.go, v1.14.
 */
import {
  isMarkedForUpdate,
  isUpdateInProgress,
  isUpdatePending,
  Machine,
  MachineConditions,
  PendingHooksAnnotation,
  pendingHooksText,
  UpdateInProgressAnnotation,
  UpdateMachine,
  withoutState,
} from '@capstan/api'
import { proceed, requeue, wait } from '@capstan/controller'
import { type Kind, keyOf, type KubeObject, type NewCondition, orAbsent, seconds, withErrorContext } from '@capstan/kube'
import type { External } from '../external/get.ts'
import { externalOf } from '../external/observed.ts'
import { withWaiting } from '../waiting-records.ts'
import type { MachineIO, MachinePhase, MachineScope } from './scope.ts'
import type { UpdateResult, UpdateRequest } from './update-calls.ts'

/**
 * Calls the extension while the Machine has the annotation `update-in-progress` and the pending hook, and removes both when the update is
 * done. When the Machine has only the pending hook, because a user has removed the annotation or an earlier removal was interrupted, removes
 * the annotations that remain on the Machine and its objects, without a call.
 */
export const inPlaceUpdate: MachinePhase = async (scope, io) => {
  const { machine } = scope
  const { metadata, status } = machine
  if (!isMarkedForUpdate(machine)) {
    io.updates.forget(metadata.uid)
    // An object that could not be read may still have an annotation; the failed read is retried.
    if (!isUpdatePending(machine) || isUnread(scope)) return proceed()
    io.log.info(
      'In-place update annotation removed but UpdateMachine hook still pending, cleaning up orphaned hook and annotations',
    )
    await withErrorContext('failed to clean up orphaned UpdateMachine hook and annotations', () => complete(scope, io))
    return proceed()
  }
  if (!isUpdatePending(machine)) return wait('the owner of the Machine to mark the UpdateMachine hook as pending')
  if (!status?.initialization?.infrastructureProvisioned) return wait('the infrastructure to be provisioned')
  if (!status.initialization.bootstrapDataSecretCreated) return wait('the bootstrap data to be created')
  if (!status.nodeRef) return wait('the Machine to have a Node')
  if (scope.infrastructure.state === 'missing') {
    scope.update = { reason: 'InPlaceUpdateFailed', message: 'In-place update not possible: InfraMachine not found' }
    throw new Error('in-place update failed: InfraMachine not found')
  }
  if (scope.infrastructure.state !== 'found' || isUnread(scope)) return proceed()
  if (!io.updates.ready) return requeue(seconds(1), 'Runtime Extensions are still being discovered')

  const desired = await desiredObjects(machine, scope.infrastructure.external, externalOf(scope.bootstrap), io)
  if (!desired) return wait('infrastructure machine and bootstrap config to be marked for the update in place')
  const result = await callUpdateMachine(scope, desired, io)
  if (result.kind === 'blocked') {
    const { message } = result.waiting
    const suffix = message === '' ? '' : `: ${message}`
    machine.metadata.annotations = withWaiting(machine, [result.waiting], io.clock.now())!
    scope.update = { reason: 'InPlaceUpdating', message: `In-place update in progress${suffix}` }
    return requeue(result.retryAfter, 'the update in place to be done')
  }
  await withErrorContext('failed to complete in-place update', () => complete(scope, io))
  return proceed()
}

/** Whether the infrastructure machine or the bootstrap config could not be read, so that its phase has failed. */
const isUnread = ({ infrastructure, bootstrap }: MachineScope): boolean =>
  infrastructure.state === 'unread' || bootstrap.state === 'unread'

/**
 * Returns the desired Machine, infrastructure machine and, if it exists, bootstrap config; `undefined` while the infrastructure machine or
 * the bootstrap config lacks the annotation `update-in-progress`, or when one of them was deleted meanwhile. Reads both from the API server:
 * caches of different kinds may be of different ages, and an outdated desired state would be applied.
 */
async function desiredObjects(
  machine: Machine,
  infrastructure: External,
  bootstrap: External | undefined,
  { client, signal }: MachineIO,
): Promise<UpdateRequest['desired'] | undefined> {
  const latest = async ({ kind, object }: External) => {
    if (!isMarkedForUpdate(object)) return undefined
    const current = await orAbsent(client.get(kind, keyOf(object), { signal }))
    return current && isMarkedForUpdate(current) ? withoutState(current) : undefined
  }
  const infrastructureMachine = await latest(infrastructure)
  const bootstrapConfig = infrastructureMachine && bootstrap && (await latest(bootstrap))
  if (!infrastructureMachine || (bootstrap && !bootstrapConfig)) return undefined
  return { machine: withoutState(machine), infrastructureMachine, ...(bootstrapConfig && { bootstrapConfig }) }
}

async function callUpdateMachine(scope: MachineScope, desired: UpdateRequest['desired'], io: MachineIO): Promise<UpdateResult> {
  const retries = io.updates.retries.countFor(scope.cluster)
  try {
    return await io.withoutWorker(() => io.updates.call(scope.machine, { desired, retries, clock: io.clock }, io.signal))
  } catch (err) {
    // As upstream, the extension's message is only logged, since it may differ each time.
    const message = 'UpdateMachine hook failed: please check controller logs for errors'
    scope.update = { reason: 'InPlaceUpdateFailed', message }
    throw new Error(`in-place update failed: ${(err as Error).message}`, { cause: err })
  }
}

/**
 * Removes the annotations of the update from the Machine and its objects. `update-in-progress` of the Machine is removed first, so that an
 * interrupted removal leads to no further call. The pending hook is removed last, by the reconcile's commit: as long as it exists, an
 * interrupted removal is repeated.
 */
async function complete(scope: MachineScope, { client, clock, log, signal, updates }: MachineIO): Promise<void> {
  const { machine } = scope
  const unmark = async <T extends KubeObject>(kind: Kind<T>, object: T) => {
    if (!isMarkedForUpdate(object)) return
    const body = { metadata: { annotations: { [UpdateInProgressAnnotation]: null } } }
    await withErrorContext(
      `failed to remove ${UpdateInProgressAnnotation} annotation from ${kind.kind} ${object.metadata.namespace}/${object.metadata.name}`,
      () => client.patch(kind, keyOf(object), { type: 'merge', body }, { signal }),
    )
  }
  await unmark(Machine, machine)
  for (const external of [externalOf(scope.infrastructure), externalOf(scope.bootstrap)]) {
    if (external) await unmark(external.kind, external.object)
  }
  const pending = pendingHooksText(machine, { remove: [UpdateMachine.name] })
  const annotations = withWaiting(machine, [], clock.now())
  const { [UpdateInProgressAnnotation]: _, [PendingHooksAnnotation]: _pending, ...otherAnnotations } = annotations ?? {}
  // Sets an empty map rather than none: without a map, the patch would remove all annotations, also those that other writers added.
  machine.metadata.annotations = { ...otherAnnotations, ...(pending !== null && { [PendingHooksAnnotation]: pending }) }
  updates.forget(machine.metadata.uid)
  log.info('Completed in-place update')
}

/** Returns the Updating condition. Pure. */
export function updatingCondition({ machine, update }: Pick<MachineScope, 'machine' | 'update'>): NewCondition {
  const { Updating } = MachineConditions
  if (!isUpdateInProgress(machine)) return Updating.false('NotUpdating')
  return Updating.true(update?.reason ?? 'InPlaceUpdating', update?.message ?? 'In-place update in progress')
}
