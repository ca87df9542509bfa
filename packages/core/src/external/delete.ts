import { type Client, isDeleting, keyOf, orAbsent } from '@capstan/kube'
import { externalOf, type Observed } from './observed.ts'

/** Deletes a referenced object, once, and returns its state: `missing` when no finalizer keeps it. */
export async function deleteExternal(
  what: Observed,
  { client, signal }: { client: Client; signal: AbortSignal },
): Promise<Observed> {
  if (what.state === 'unread') throw new Error('Cannot delete an object that could not be read')
  const external = externalOf(what)
  if (!external || isDeleting(external.object)) return what
  const { kind, object } = external
  // Protects a newer object of the same name.
  const preconditions = { uid: object.metadata.uid }
  const left = await orAbsent(client.delete(kind, keyOf(object), { preconditions, signal }))
  return left ? { state: 'found', external: { ...external, object: left } } : { state: 'missing' }
}

/** Whether the deletion is complete. */
export const isGone = ({ state }: Observed): boolean => state === 'missing' || state === 'none'
