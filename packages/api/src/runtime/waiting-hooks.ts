/** What an object waits for, as its annotation keeps it: a record for each hook that holds something back. Core keeps them on Clusters and Machines; providers may on objects of theirs. */
import type { KubeObject } from '@capstan/kube'
import { isRecord } from '@capstan/kube'
import { WaitingHooksAnnotation } from '../core/well-known.ts'

export interface WaitingHook {
  readonly hook: string
  /** Registered names of the handlers that hold it back; none when an annotation does. */
  readonly handlers: readonly string[]
  /** RFC 3339. */
  readonly since: string
  /** When it is asked again at the latest, RFC 3339; absent when nothing is asked, and after a failure, which is tried again soon and then later and later. */
  readonly until?: string
  /** How often it was asked since then. */
  readonly calls: number
  /** What it said last, or what it failed with. */
  readonly message: string
}

/** What the annotation holds; nothing when somebody has written something else into it. */
export function waitingHooks({ metadata }: Pick<KubeObject, 'metadata'>): readonly WaitingHook[] {
  const text = metadata.annotations?.[WaitingHooksAnnotation]
  if (text === undefined) return []
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value.filter((one): one is WaitingHook => isRecord(one) && typeof one.hook === 'string') : []
  } catch {
    return []
  }
}
