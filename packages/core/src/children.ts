/** What MachineSets and MachineDeployments do with the objects that they control. */
import type { ReconcileContext } from '@capstan/controller'
import { isDeleting, isReason, type Kind, keyOf, type KubeObject, messageOf, type OwnerReference } from '@capstan/kube'

type ChildrenIO = Pick<ReconcileContext, 'client' | 'events' | 'signal'>

/** Writes the child with these owners, who include the new one. Nothing is adopted by, or while, going away. */
export async function adoptChild<T extends KubeObject>(
  kind: Kind<T>,
  child: T,
  owner: KubeObject,
  ownerReferences: readonly OwnerReference[],
  { client, events, signal }: ChildrenIO,
): Promise<T | undefined> {
  if (isDeleting(owner) || isDeleting(child)) return undefined
  const { name, resourceVersion } = child.metadata
  const body = { metadata: { ownerReferences, resourceVersion } }
  try {
    const adopted = await client.patch(kind, keyOf(child), { type: 'merge', body }, { signal })
    events.event(owner, 'Normal', 'SuccessfulAdopt', `Adopted ${kind.kind} "${name}"`)
    return adopted
  } catch (err) {
    events.event(owner, 'Warning', 'FailedAdopt', `Failed to adopt ${kind.kind} "${name}": ${messageOf(err)}`)
    throw err
  }
}

/** Asks for the deletion of children that are not going already. All are tried before the first failure is thrown. */
export async function deleteChildren<T extends KubeObject>(
  kind: Kind<T>,
  children: readonly T[],
  owner: KubeObject,
  { client, events, signal }: ChildrenIO,
): Promise<void> {
  const errors: unknown[] = []
  for (const child of children) {
    if (isDeleting(child)) continue
    const { name, uid } = child.metadata
    try {
      await client.delete(kind, keyOf(child), { preconditions: { uid }, signal })
      events.event(owner, 'Normal', 'SuccessfulDelete', `Deleted ${kind.kind} "${name}"`)
    } catch (err) {
      if (isReason(err, 'NotFound')) continue
      events.event(owner, 'Warning', 'FailedDelete', `Failed to delete ${kind.kind} "${name}": ${messageOf(err)}`)
      errors.push(err)
    }
  }
  if (errors.length > 0) throw new AggregateError(errors, errors.map(messageOf).join('; '))
}
