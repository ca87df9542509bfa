/** Responses of handlers as small values, from which the server builds the responses of the protocol. */
import type { Hook, ResponseOf } from '@capstan/api'

/** Lets core proceed. */
export interface Proceed {
  readonly kind: 'proceed'
  readonly message?: string
  readonly response?: never
}

/** Lets core proceed, with the requested content, such as patches. */
export interface ProceedWith<Response> {
  readonly kind: 'proceed'
  readonly message?: string
  readonly response: Response
}

/** Blocks the next step. Core calls again after `seconds`. */
export interface Hold {
  readonly kind: 'hold'
  readonly seconds: number
  readonly message: string
}

/** Reports a failure. Core retries with backoff; no failure policy ignores it. */
export interface Failed {
  readonly kind: 'fail'
  readonly message: string
}

/** Any response of a handler. */
export type Answer = Proceed | ProceedWith<object> | Failed | Hold

/**
 * The content of a hook's response, such as patches: all fields except apiVersion, kind, status, message and retryAfterSeconds.
 */
export type ContentOf<H extends Hook> = Omit<ResponseOf<H>, 'apiVersion' | 'kind' | 'status' | 'message' | 'retryAfterSeconds'>

/** Possible responses of a hook's handler: only blocking hooks can block, and only hooks with content can return content. */
export type AnswerOf<H extends Hook> =
  | Failed
  | (keyof ContentOf<H> extends never ? Proceed : Proceed | ProceedWith<ContentOf<H>>)
  | (ResponseOf<H> extends { retryAfterSeconds: number } ? Hold : never)

/** Lets core proceed, with an optional message. */
export const proceedNow = (message?: string): Proceed => ({ kind: 'proceed', ...(message === undefined ? {} : { message }) })

/** Lets core proceed with content, such as patches or variables. Fields that the hook does not have are type errors. */
export const proceedWith = <Response extends object>(response: NoInfer<Response>): ProceedWith<Response> => ({
  kind: 'proceed',
  response,
})

/**
 * Blocks the next step for `seconds`. Users read `message` in a condition: it must not change from call to call without a cause, or the
 * condition changes endlessly.
 *
 * @throws RangeError unless `seconds` is an integer from 1 to 2147483647
 */
export function holdFor(seconds: number, message: string): Hold {
  if (!Number.isInteger(seconds) || seconds < 1 || seconds > maxInt32) {
    throw new RangeError(`Cannot hold for ${seconds} seconds: expected a whole number from 1 to ${maxInt32}`)
  }
  return { kind: 'hold', seconds, message }
}

/** Reports a failure with a message for users. Core retries with backoff; no failure policy ignores the failure. */
export const fail = (message: string): Failed => ({ kind: 'fail', message })

const maxInt32 = 2 ** 31 - 1
