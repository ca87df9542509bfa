/** What every hook's answer has, and what the client makes of it. Pure. */
import { smallest } from '@capstan/kube'
import type { Hook } from '@capstan/api'
import { HookFailed } from './hook-failed.ts'

export interface AnyResponse {
  status?: string
  message?: string
  retryAfterSeconds?: number
}

/** Several answers as one: success, the shortest time to wait, messages in the order of the handlers. */
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
 * `head` says whose answer it is. A negative time to wait is a mistake of the extension, such as a deadline that is over, and must
 * not let the Cluster go on. Upstream has no such check.
 *
 * @throws HookFailed unless the answer is a success
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
