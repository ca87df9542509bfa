import { type Client, hasFinalizer, isDeleting, type Kind, keyOf, type KubeObject } from '@capstan/kube'

/**
 * The object with the finalizer on it, written before anything else is done for it: from then on its deletion waits for us. An
 * object that is being deleted gets none, it is too late.
 */
export async function ensureFinalizer<T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  object: T,
  finalizer: string,
): Promise<T> {
  if (isDeleting(object) || hasFinalizer(object, finalizer)) return object
  const { finalizers = [], resourceVersion } = object.metadata
  // The list is shared with others: the version makes sure that none of theirs is lost.
  const metadata = { finalizers: [...finalizers, finalizer], resourceVersion }
  return client.patch(kind, keyOf(object), { type: 'merge', body: { metadata } })
}
