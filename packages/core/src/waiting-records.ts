/** The records of hooks that hold an object back. Pure. */
import { type WaitingHook, waitingHooks, WaitingHooksAnnotation } from '@capstan/api'
import { type KubeObject, timestamp } from '@capstan/kube'

/** What is known of a hook that holds something back. */
export interface WaitingFor {
  readonly hook: string
  /** Registered names of the handlers that do; none when an annotation does. */
  readonly handlers: readonly string[]
  /** When it will be asked again, milliseconds since the epoch; absent when nothing will be asked. */
  readonly until?: number
  /** False when an earlier answer still holds. */
  readonly called: boolean
  /** What it says; may be empty. */
  readonly message: string
}

/** The annotations of the object with its records brought up to date. A record begins anew when its hook had let go meanwhile. */
export function withWaiting(
  object: Pick<KubeObject, 'metadata'>,
  blocking: readonly WaitingFor[],
  now: number,
): { [name: string]: string } | undefined {
  const before = waitingHooks(object)
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
  const { [WaitingHooksAnnotation]: _, ...others } = object.metadata.annotations ?? {}
  if (records.length === 0)
    return object.metadata.annotations?.[WaitingHooksAnnotation] === undefined ? object.metadata.annotations : others
  return { ...others, [WaitingHooksAnnotation]: JSON.stringify(records) }
}
