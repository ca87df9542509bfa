import type { MapFunction, ReconcileContext } from '@capstan/controller'
import { CustomResourceDefinition, orAbsent } from '@capstan/kube'
import { externalKind } from './contract-version.ts'
import type { ContractRef, External } from './get.ts'

/**
 * Reads a referenced object and watches its kind; changes enqueue the keys that `map` returns. Returns `undefined` when the object does not
 * exist; a cache miss is confirmed by a live read.
 * @throws Error when the CustomResourceDefinition is missing or declares no supported contract, StatusError when the live read fails
 */
export async function observeExternal(
  context: Pick<ReconcileContext, 'cache' | 'client' | 'signal' | 'watch'>,
  ref: ContractRef,
  namespace: string,
  map: MapFunction,
): Promise<External | undefined> {
  const { cache, client, signal } = context
  // Only for the cache, from which `externalKind` reads CustomResourceDefinitions: their changes trigger no reconcile.
  await context.watch(CustomResourceDefinition, noKeys)
  const kindOfRef = await externalKind(cache, ref)
  await context.watch(kindOfRef.kind, map)
  const key = { namespace, name: ref.name }
  const object = cache.peek(kindOfRef.kind, key) ?? (await orAbsent(client.get(kindOfRef.kind, key, { signal })))
  return object && { ...kindOfRef, object }
}

const noKeys: MapFunction = () => []
