import type { Client, Kind, KubeObject, ObjectKey } from '@capstan/kube'

/**
 * Watches an object, and resolves when `isReached` returns true for it. Watches again when the server ends the watch, as it does
 * regularly.
 *
 * @throws the reason of `signal` when it aborts; StatusError if a watch cannot be started or fails
 */
export async function untilObject<T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  { name, namespace }: ObjectKey,
  isReached: (object: T) => boolean,
  signal: AbortSignal,
): Promise<void> {
  const selection = { fieldSelector: `metadata.name=${name}`, ...(namespace === undefined ? {} : { namespace }) }
  const watchAbort = new AbortController()
  try {
    for (;;) {
      signal.throwIfAborted()
      const events = await client.watch(kind, { ...selection, signal: AbortSignal.any([signal, watchAbort.signal]) })
      for await (const { object } of events) if (isReached(object)) return
    }
  } finally {
    watchAbort.abort()
  }
}
