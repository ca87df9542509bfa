import type { MapFunction, ReconcileContext } from '@capstan/controller'
import { CustomResourceDefinition, orAbsent } from '@capstan/kube'
import { externalKind } from './contract-version.ts'
import type { ContractRef, External } from './get.ts'

/**
 * Reads a referenced object as a controller should: its kind is watched from now on, and changes bring back the keys that `map`
 * names. `undefined` when the object does not exist: a miss in the cache is asked of the server before it is believed.
 *
 * @throws Error when the CustomResourceDefinition is missing or claims no contract that core knows
 */
export async function observeExternal(
  context: Pick<ReconcileContext, 'cache' | 'client' | 'signal' | 'watch'>,
  ref: ContractRef,
  namespace: string,
  map: MapFunction,
): Promise<External | undefined> {
  const { cache, client, signal } = context
  await context.watch(CustomResourceDefinition, nobody)
  const of = await externalKind(cache, ref)
  await context.watch(of.kind, map)
  const key = { namespace, name: ref.name }
  const object = cache.peek(of.kind, key) ?? (await orAbsent(client.get(of.kind, key, { signal })))
  return object && { ...of, object }
}

const nobody: MapFunction = () => []
