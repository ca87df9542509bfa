/** Evaluates the fields that responses of different hooks have in common. Pure. */
import { smallest } from '@capstan/kube'
import type { Hook } from '@capstan/api'
import { HookFailed } from './hook-failed.ts'

/** The fields that responses of different hooks have in common. Only responses of blocking hooks have `retryAfterSeconds`. */
export interface AnyResponse {
  status?: string
  message?: string
  retryAfterSeconds?: number
}

/** Aggregates successful responses: messages in handler order; for a blocking hook, the shortest retry time above 0, or 0. */
export function joinResponses(hook: Hook, responses: readonly AnyResponse[]): AnyResponse {
  const waits = responses.map(({ retryAfterSeconds = 0 }) => retryAfterSeconds).filter((seconds) => seconds > 0)
  const message = responses.flatMap(({ message }) => (message ? [message] : [])).join(', ')
  return {
    status: 'Success',
    ...(message === '' ? {} : { message }),
    ...(hook.blocking ? { retryAfterSeconds: waits.length === 0 ? 0 : smallest(waits) } : {}),
  }
}

/**
 * Checks the status and the retry time of a response. `head`: beginning of the error message. A negative retry time, such as one
 * that was computed from a time in the past, is an error of the extension: it must not have the effect of 0, which does not block. Upstream
 * does not check the retry time.
 *
 * @throws HookFailed if the status is not Success, or the retry time is negative
 */
export function assertSuccess({ status = '', message = '', retryAfterSeconds = 0 }: AnyResponse, head: string): void {
  if (status === 'Success') {
    if (retryAfterSeconds >= 0) return
    const text = `retryAfterSeconds: Invalid value: ${retryAfterSeconds}: must be greater than or equal to 0`
    throw new HookFailed('failure', `${head}: got invalid response: ${text}`, { problem: 'InvalidAnswer' })
  }
  if (status === 'Failure') throw new HookFailed('failure', `${head}: got failure response with message: ${message}`)
  throw new HookFailed(
    'unknown-status',
    `${head}: got unknown response status ${JSON.stringify(status)} with message: ${message}`,
  )
}
