/** Prepares requests of in-place update hooks, for core and for providers: reduces their objects, and selects the handler. */
import type { KubeObject } from '@capstan/kube'
import { WaitingHooksAnnotation } from '../../core/well-known.ts'
import type { Hook } from '../hook.ts'

/**
 * Returns the object as a request of an in-place update hook contains it: with spec, and in metadata only name, namespace, labels and
 * annotations. Omits the annotation that records blocking hooks, because each blocking response changes it.
 * Upstream: cleanupMachine, cleanupUnstructured, v1.14.
 */
export function withoutState<T extends KubeObject>(object: T): T {
  const { apiVersion, kind, metadata, spec } = object as KubeObject & { readonly spec?: unknown }
  const { name, namespace, labels } = metadata
  const { [WaitingHooksAnnotation]: _, ...annotations } = metadata.annotations ?? {}
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(labels === undefined ? {} : { labels }),
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    },
    ...(spec === undefined ? {} : { spec }),
  } as unknown as T
}

/**
 * Returns the single one of `handlers`, which are the handlers of an in-place update hook that select an object; `undefined` when there is
 * none.
 *
 * @throws Error when there are several handlers, because only one can be responsible
 */
export function onlyHandler({ name }: Pick<Hook, 'name'>, handlers: readonly string[]): string | undefined {
  if (handlers.length > 1) {
    throw new Error(`found multiple ${name} hooks (${handlers.join(',')}): only one hook is supported`)
  }
  return handlers[0]
}
