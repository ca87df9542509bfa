/**
 * Reads the annotation `runtime.cluster.x-k8s.io/pending-hooks` of an object, and computes its value after a change. The value contains the
 * names of the pending hooks, sorted and separated by commas. Pure. Upstream: internal/hooks, v1.14.
 */
import type { KubeObject } from '@capstan/kube'
import { PendingHooksAnnotation } from '../core/well-known.ts'
import type { Hook } from './hook.ts'

type WithMetadata = Pick<KubeObject, 'metadata'>

/** Returns the names of the hooks that must still be called for the object. */
export const pendingHooks = ({ metadata }: WithMetadata): ReadonlySet<string> =>
  new Set((metadata.annotations?.[PendingHooksAnnotation] ?? '').split(',').filter((name) => name !== ''))

/** Whether the hook must still be called for the object. */
export const isHookPending = ({ name }: Pick<Hook, 'name'>, object: WithMetadata): boolean => pendingHooks(object).has(name)

/** Returns the value of the annotation after hooks are added and removed; `null`, which removes the annotation, when no hook is left. */
export function pendingHooksText(
  object: WithMetadata,
  { add = [], remove = [] }: { readonly add?: readonly string[] | undefined; readonly remove?: readonly string[] | undefined },
): string | null {
  const names = new Set([...pendingHooks(object), ...add])
  for (const name of remove) names.delete(name)
  return names.size === 0 ? null : [...names].sort().join(',')
}
