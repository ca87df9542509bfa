/**
 * One call of an extension with its result, as observers receive it. Observers are, for example, metrics and tapes (recordings of
 * calls).
 */
import type { Hook } from '@capstan/api'
import type { HookFailureCode } from './hook-failed.ts'
import type { HookProblem } from './hook-problems.ts'

export interface ObservedCall {
  readonly hook: Hook
  /** The hook version of the handler, which may be older than the version of `hook`. */
  readonly announcedVersion: string
  /** Whether `announcedVersion` is deprecated. */
  readonly isDeprecated: boolean
  /** `<handler>.<extensionconfig>`; absent for discovery. */
  readonly handler?: string
  readonly extensionConfig: string
  readonly url: URL
  /** Milliseconds since the Unix epoch. */
  readonly started: number
  /** Duration of the call in milliseconds. */
  readonly took: number
  /** Number of attempts to send the request, at least 1. The request is sent again only if the server certainly did not process it. */
  readonly attempts: number
  /** HTTP status; absent when there was no response. */
  readonly code?: number
  /** The request that was sent, with settings, but without apiVersion and kind. */
  readonly request: object
  readonly outcome:
    | { readonly kind: 'response'; readonly response: { readonly status?: string; readonly message?: string } }
    | { readonly kind: 'failed'; readonly code: HookFailureCode; readonly problem: HookProblem; readonly message: string }
}

/** Function that is called after each call, except aborted calls. It must not throw. */
export type CallObserver = (call: ObservedCall) => void
