/**
 * Reads the annotation that records the hooks that block an object. Core writes it on Clusters and Machines; providers may write it on
 * their own objects.
 */
import type { KubeObject } from '@capstan/kube'
import { isRecord } from '@capstan/kube'
import { WaitingHooksAnnotation } from '../core/well-known.ts'

export interface WaitingHook {
  readonly hook: string
  /** Registered names of the handlers that block the object; empty when an annotation blocks it, or when `extensionConfig` is set. */
  readonly handlers: readonly string[]
  /** Time since which the hook blocks, in RFC 3339. */
  readonly since: string
  /**
   * Latest time of the next call, in RFC 3339. Absent when an annotation blocks the object, and after a failed call, which is repeated with
   * backoff.
   */
  readonly until?: string
  /** Hash of the request. After a restart, if the hash is the same, the manager waits until `until` instead of calling the hook at once. */
  readonly requestKey?: string
  /** Name of an ExtensionConfig that was never discovered, so that its handlers are unknown. */
  readonly extensionConfig?: string
  /** Number of calls since `since`. */
  readonly calls: number
  /** The last message or error. */
  readonly message: string
}

/** Parses the annotation. Omits invalid records, because users can write the annotation as well. */
export function waitingHooks({ metadata }: Pick<KubeObject, 'metadata'>): readonly WaitingHook[] {
  const text = metadata.annotations?.[WaitingHooksAnnotation]
  if (text === undefined) return []
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value.filter(isWaitingHook) : []
  } catch {
    return []
  }
}

function isWaitingHook(value: unknown): value is WaitingHook {
  if (!isRecord(value)) return false
  const { hook, handlers, since, calls, message, ...optionalFields } = value
  const optional = [optionalFields.until, optionalFields.requestKey, optionalFields.extensionConfig]
  return (
    [hook, since, message].every((text) => typeof text === 'string') &&
    typeof calls === 'number' &&
    Array.isArray(handlers) &&
    handlers.every((name) => typeof name === 'string') &&
    optional.every((text) => text === undefined || typeof text === 'string')
  )
}
