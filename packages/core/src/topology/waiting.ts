/** The records of hooks that hold a Cluster back. Pure. */
import { type Cluster, type WaitingHook, waitingHooks, WaitingHooksAnnotation } from '@capstan/api'
import { timestamp } from '@capstan/kube'
import type { BlockingHook } from './lifecycle-hooks.ts'

/** The annotations of the Cluster with its records brought up to date. A record begins anew when its hook had let go meanwhile. */
export function withWaiting(
  cluster: Cluster,
  blocking: readonly BlockingHook[],
  now: number,
): { [name: string]: string } | undefined {
  const before = waitingHooks(cluster)
  const records = blocking
    .map(({ hook, handlers, until, called, message }): WaitingHook => {
      const known = before.find((one) => one.hook === hook)
      return {
        hook,
        handlers,
        since: known?.since ?? timestamp(now),
        ...(until === undefined ? {} : { until: timestamp(until) }),
        calls: (known?.calls ?? 0) + (called ? 1 : 0),
        message,
      }
    })
    .sort((a, b) => (a.hook < b.hook ? -1 : 1))
  const { [WaitingHooksAnnotation]: _, ...others } = cluster.metadata.annotations ?? {}
  if (records.length === 0)
    return cluster.metadata.annotations?.[WaitingHooksAnnotation] === undefined ? cluster.metadata.annotations : others
  return { ...others, [WaitingHooksAnnotation]: JSON.stringify(records) }
}
