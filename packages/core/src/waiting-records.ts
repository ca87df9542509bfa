/** Computes the annotation of an object that records the hooks that block it. Pure. */
import { type WaitingHook, waitingHooks, WaitingHooksAnnotation } from '@capstan/api'
import { type KubeObject, shortened, timestamp } from '@capstan/kube'

/** State of a hook that blocks an object, also because its call failed. */
export interface WaitingFor {
  readonly hook: string
  /** Registered names of the blocking handlers; empty when an annotation blocks, or when `extensionConfig` is set. */
  readonly handlers: readonly string[]
  /** Latest time of the next call, in milliseconds since the epoch; absent when an annotation blocks, and after a failed call. */
  readonly until?: number
  /** Hash of the request: a later process reuses the response for an equal request. */
  readonly requestKey?: string
  /** Set when the hook fails because this ExtensionConfig was never discovered. */
  readonly extensionConfig?: string
  /** Whether this reconcile has called the hook; false, for example, while an earlier response is valid. */
  readonly called: boolean
  /** Message of the response or of the error; may be empty. */
  readonly message: string
}

/** Maximum length of a message, in characters. Longer messages are truncated; the log has error messages in full. */
const LongestMessage = 1024

/**
 * Returns the object's annotations with updated records; `undefined` when it has no annotations and no hook blocks. When a hook blocks
 * again after its record was removed, the new record has a new time and count.
 * @param isKept whether the record of a hook that is not in `waiting` is kept; by default it is removed
 */
export function withWaiting(
  object: Pick<KubeObject, 'metadata'>,
  waiting: readonly WaitingFor[],
  now: number,
  isKept: (hook: string) => boolean = () => false,
): { [name: string]: string } | undefined {
  const recorded = waitingHooks(object)
  const retained = recorded.filter(({ hook }) => isKept(hook) && !waiting.some((blocking) => blocking.hook === hook))
  const records = waiting
    .map(({ hook, handlers, until, requestKey, extensionConfig, called, message }): WaitingHook => {
      const earlier = recorded.find((record) => record.hook === hook)
      return {
        hook,
        handlers,
        since: earlier?.since ?? timestamp(now),
        // Rounded up to whole seconds, so that it is never too early.
        ...(until === undefined ? {} : { until: timestamp(Math.ceil(until / 1000) * 1000) }),
        ...(requestKey === undefined ? {} : { requestKey }),
        ...(extensionConfig === undefined ? {} : { extensionConfig }),
        calls: (earlier?.calls ?? 0) + (called ? 1 : 0),
        message: shortened(message, LongestMessage),
      }
    })
    .concat(retained)
    .sort((a, b) => (a.hook < b.hook ? -1 : 1))
  const { [WaitingHooksAnnotation]: _, ...otherAnnotations } = object.metadata.annotations ?? {}
  if (records.length === 0)
    return object.metadata.annotations?.[WaitingHooksAnnotation] === undefined ? object.metadata.annotations : otherAnnotations
  return { ...otherAnnotations, [WaitingHooksAnnotation]: JSON.stringify(records) }
}
