/** Lets the controllers of one process write an object one after another: of two writes at once under an optimistic lock, one fails. */
import type { Kind, KubeObject, ObjectKey } from '@capstan/kube'
import { keyText, resourceName } from '@capstan/kube'
import type { Cache } from './controller.ts'

/** The end of the last turn of each object, by resource and key. */
const turns = new WeakMap<Cache, Map<string, Promise<void>>>()

/** Runs `write` after the earlier turns of the object have ended, with or without an error. Without a cache it runs at once. */
export async function inTurn<T extends KubeObject, Result>(
  cache: Cache | undefined,
  kind: Kind<T>,
  key: ObjectKey,
  write: () => Promise<Result>,
): Promise<Result> {
  if (!cache) return write()
  const ofCache = turns.get(cache) ?? new Map<string, Promise<void>>()
  turns.set(cache, ofCache)
  const id = `${resourceName(kind)} ${keyText(key)}`
  const earlier = ofCache.get(id)
  const result = earlier ? earlier.then(write) : write()
  const end = result.then(
    () => {},
    () => {},
  )
  ofCache.set(id, end)
  try {
    return await result
  } finally {
    if (ofCache.get(id) === end) ofCache.delete(id)
  }
}
