/** Adopts and deletes the Machines of MachineSets, and the MachineSets of MachineDeployments. */
import type { ReconcileContext } from '@capstan/controller'
import {
  controllerOf,
  controllerReference,
  draft,
  ensureOwnerReference,
  isDeleting,
  isReason,
  type Kind,
  keyOf,
  type KubeObject,
  messageOf,
  type OwnerReference,
} from '@capstan/kube'
import { throwAggregate } from './aggregate-errors.ts'

type ChildrenIO = Pick<ReconcileContext, 'client' | 'events' | 'log' | 'signal'>

/**
 * Makes `owner` the controller of the child, also while the owner is being deleted. Returns `undefined` when another object has become the
 * controller, the child was deleted and created again, or a request failed; the reconcile then continues without the child. As upstream,
 * records an Event for an adoption and for a failed request.
 */
export async function adoptChild<T extends KubeObject>(
  kind: Kind<T>,
  child: T,
  owner: KubeObject,
  ownerKind: Kind,
  io: ChildrenIO,
): Promise<T | undefined> {
  const { events, log } = io
  const { name } = child.metadata
  try {
    const adopted = await makeController(kind, child, controllerReference(owner, ownerKind), io)
    if (!adopted) return undefined
    events.event(owner, 'Normal', 'SuccessfulAdopt', `Adopted ${kind.kind} "${name}"`)
    return adopted
  } catch (err) {
    log.warn('Failed to adopt', { [kind.kind]: keyOf(child), err })
    events.event(owner, 'Warning', 'FailedAdopt', `Failed to adopt ${kind.kind} "${name}": ${messageOf(err)}`)
    return undefined
  }
}

/**
 * Adds the controller reference to the child. After a conflict, tries again with the newest version: without this child, the owner would
 * create another child. Returns `undefined` when another object has become the controller, or the child was deleted and created again.
 */
async function makeController<T extends KubeObject>(
  kind: Kind<T>,
  child: T,
  reference: OwnerReference,
  { client, signal }: ChildrenIO,
): Promise<T | undefined> {
  let newest = child
  for (let attempts = 1; ; attempts++) {
    if (newest.metadata.uid !== child.metadata.uid) return undefined
    const controller = controllerOf(newest)
    // The owner may control the child already: an earlier patch succeeded, but its response was lost.
    if (controller) return controller.uid === reference.uid ? newest : undefined
    const owned = draft(newest)
    ensureOwnerReference(owned, reference)
    const { ownerReferences, resourceVersion } = owned.metadata
    const body = { metadata: { ownerReferences, resourceVersion } }
    try {
      return await client.patch(kind, keyOf(child), { type: 'merge', body }, { signal })
    } catch (err) {
      if (!isReason(err, 'Conflict') || attempts === MaxAttempts) throw err
      newest = await client.get(kind, keyOf(child), { signal })
    }
  }
}

const MaxAttempts = 10

/**
 * Deletes children that are not being deleted already. Attempts every deletion, then throws one error with all failures. With `owner`,
 * records an Event of the owner for each deletion. Callers omit `owner` while the owner itself is being deleted: upstream
 * then records no such Events.
 */
export async function deleteChildren<T extends KubeObject>(
  kind: Kind<T>,
  children: readonly T[],
  owner: KubeObject | undefined,
  { client, events, signal }: ChildrenIO,
): Promise<void> {
  const errors: unknown[] = []
  for (const child of children) {
    if (isDeleting(child)) continue
    const { name, uid } = child.metadata
    try {
      await client.delete(kind, keyOf(child), { preconditions: { uid }, signal })
      if (owner) events.event(owner, 'Normal', 'SuccessfulDelete', `Deleted ${kind.kind} "${name}"`)
    } catch (err) {
      if (!isReason(err, 'NotFound')) errors.push(err)
    }
  }
  throwAggregate(errors)
}
