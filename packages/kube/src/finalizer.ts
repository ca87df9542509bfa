/** Finalizers keep an object that is being deleted until the controller that added them has finished. */
import type { KubeObject } from './object.ts'

export const hasFinalizer = (
  object: { readonly metadata: { readonly finalizers?: readonly string[] } },
  finalizer: string,
): boolean => object.metadata.finalizers?.includes(finalizer) ?? false

/** Adds a finalizer to an object. Returns false when the object has it, or is being deleted: the API server then rejects new finalizers. */
export function addFinalizer(object: KubeObject, finalizer: string): boolean {
  if (object.metadata.deletionTimestamp !== undefined || hasFinalizer(object, finalizer)) return false
  object.metadata.finalizers = [...(object.metadata.finalizers ?? []), finalizer]
  return true
}

/** Removes a finalizer from an object. Returns false when the object does not have it. */
export function removeFinalizer(object: KubeObject, finalizer: string): boolean {
  if (!hasFinalizer(object, finalizer)) return false
  const remaining = (object.metadata.finalizers ?? []).filter((other) => other !== finalizer)
  if (remaining.length > 0) object.metadata.finalizers = remaining
  else delete object.metadata.finalizers
  return true
}
