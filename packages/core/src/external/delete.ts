import { type Client, isDeleting, keyOf, orAbsent } from '@capstan/kube'
import { externalOf, type Observed } from './observed.ts'

/**
 * Deletes a referenced object, unless it is being deleted already. Returns its new state: `missing` when no finalizer keeps it.
 *
 * @throws Error when the object was not read, StatusError when the deletion fails
 */
export async function deleteExternal(
  observed: Observed,
  { client, signal }: { client: Client; signal: AbortSignal },
): Promise<Observed> {
  if (observed.state === 'unread') throw new Error('Cannot delete an object that could not be read')
  const external = externalOf(observed)
  if (!external || isDeleting(external.object)) return observed
  const { kind, object } = external
  // Protects a newer object of the same name.
  const preconditions = { uid: object.metadata.uid }
  const remaining = await orAbsent(client.delete(kind, keyOf(object), { preconditions, signal }))
  return remaining ? { state: 'found', external: { ...external, object: remaining } } : { state: 'missing' }
}

/** Whether the object does not exist, or there is no reference. */
export const isGone = ({ state }: Observed): boolean => state === 'missing' || state === 'none'
