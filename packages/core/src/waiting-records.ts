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

/** Longer messages are for logs. */
const LongestMessage = 1024

/**
 * The annotations of the object with its records brought up to date. A record begins anew when its hook had let go meanwhile.
 *
 * @param isKept whether a hook that nothing was heard of in this pass may hold still; absent: it does not
 */
export function withWaiting(
  object: Pick<KubeObject, 'metadata'>,
  told: readonly WaitingFor[],
  now: number,
  isKept: (hook: string) => boolean = () => false,
): { [name: string]: string } | undefined {
  const before = waitingHooks(object)
  const kept = before.filter(({ hook }) => isKept(hook) && !told.some((one) => one.hook === hook))
  const records = told
    .map(({ hook, handlers, until, called, message }): WaitingHook => {
      const known = before.find((one) => one.hook === hook)
      return {
        hook,
        handlers,
        since: known?.since ?? timestamp(now),
        ...(until === undefined ? {} : { until: timestamp(until) }),
        calls: (known?.calls ?? 0) + (called ? 1 : 0),
        message: message.slice(0, LongestMessage),
      }
    })
    .concat(kept)
    .sort((a, b) => (a.hook < b.hook ? -1 : 1))
  const { [WaitingHooksAnnotation]: _, ...others } = object.metadata.annotations ?? {}
  if (records.length === 0)
    return object.metadata.annotations?.[WaitingHooksAnnotation] === undefined ? object.metadata.annotations : others
  return { ...others, [WaitingHooksAnnotation]: JSON.stringify(records) }
}
