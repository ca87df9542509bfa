/**
 * Runs writes of the same object one after another when several controllers of this process write it: of two concurrent writes with an
 * optimistic lock, one would fail.
 */
import type { Kind, KubeObject, ObjectKey } from '@capstan/kube'
import { keyText, resourceName } from '@capstan/kube'
import type { Cache } from './controller.ts'

/** Promises that resolve when the last write of an object has ended: by cache, and then by resource and key of the object. */
const turns = new WeakMap<Cache, Map<string, Promise<void>>>()

/** Runs `write` after earlier writes of the object have ended, with or without an error. Without a cache, `write` runs at once. */
export async function inTurn<T extends KubeObject, Result>(
  cache: Cache | undefined,
  kind: Kind<T>,
  key: ObjectKey,
  write: () => Promise<Result>,
): Promise<Result> {
  if (!cache) return write()
  const turnsOfCache = turns.get(cache) ?? new Map<string, Promise<void>>()
  turns.set(cache, turnsOfCache)
  const id = `${resourceName(kind)} ${keyText(key)}`
  const earlier = turnsOfCache.get(id)
  const result = earlier ? earlier.then(write) : write()
  const end = result.then(
    () => {},
    () => {},
  )
  turnsOfCache.set(id, end)
  try {
    return await result
  } finally {
    if (turnsOfCache.get(id) === end) turnsOfCache.delete(id)
  }
}
