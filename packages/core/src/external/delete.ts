import { type Client, isDeleting, keyOf, orAbsent } from '@capstan/kube'
import { found, type Observed } from './observed.ts'

/** Asks for the deletion of a referenced object, once. Gives back what is then known of it: `missing` when nothing holds it. */
export async function deleteExternal(
  what: Observed,
  { client, signal }: { client: Client; signal: AbortSignal },
): Promise<Observed> {
  if (what.state === 'unread') throw new Error('Cannot delete what could not be read')
  const external = found(what)
  if (!external || isDeleting(external.object)) return what
  const { kind, object } = external
  // Another object of the same name is not the one that was meant.
  const preconditions = { uid: object.metadata.uid }
  const left = await orAbsent(client.delete(kind, keyOf(object), { preconditions, signal }))
  return left ? { state: 'found', external: { ...external, object: left } } : { state: 'missing' }
}

/** Nothing is left to wait for. */
export const isGone = ({ state }: Observed): boolean => state === 'missing' || state === 'none'
