/** Finalizers keep an object that is being deleted until the controller that added them has finished. */
import type { KubeObject } from './object.ts'

export const hasFinalizer = (
  object: { readonly metadata: { readonly finalizers?: readonly string[] } },
  finalizer: string,
): boolean => object.metadata.finalizers?.includes(finalizer) ?? false

/** Adds a finalizer to a draft. False when it is there, or when the object is being deleted: then no new ones are accepted. */
export function addFinalizer(object: KubeObject, finalizer: string): boolean {
  if (object.metadata.deletionTimestamp !== undefined || hasFinalizer(object, finalizer)) return false
  object.metadata.finalizers = [...(object.metadata.finalizers ?? []), finalizer]
  return true
}

/** Takes a finalizer out of a draft. False when it is not there. */
export function removeFinalizer(object: KubeObject, finalizer: string): boolean {
  if (!hasFinalizer(object, finalizer)) return false
  const left = (object.metadata.finalizers ?? []).filter((other) => other !== finalizer)
  if (left.length > 0) object.metadata.finalizers = left
  else delete object.metadata.finalizers
  return true
}
