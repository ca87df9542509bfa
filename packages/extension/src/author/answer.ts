/** Responses of handlers as small values, from which the wire form is made. */
import type { Hook, ResponseOf } from '@capstan/api'

/** Nothing stands in the way. */
export interface Proceed {
  readonly kind: 'proceed'
  readonly message?: string
  readonly response?: never
}

/** Nothing stands in the way, and here is what was asked for. */
export interface ProceedWith<Response> {
  readonly kind: 'proceed'
  readonly message?: string
  readonly response: Response
}

/** What comes next is held back: call again after so many seconds. */
export interface Hold {
  readonly kind: 'hold'
  readonly seconds: number
  readonly message: string
}

/** Something went wrong. The caller tries again, later and later; no failure policy ignores it. */
export interface Failed {
  readonly kind: 'fail'
  readonly message: string
}

/** Any answer. */
export type Answer = Proceed | ProceedWith<object> | Failed | Hold

/** The fields of a hook's response beside success or failure: patches, variables, versions. */
export type ContentOf<H extends Hook> = Omit<ResponseOf<H>, 'apiVersion' | 'kind' | 'status' | 'message' | 'retryAfterSeconds'>

/** Possible responses of a hook's handler: only blocking hooks can be held, and only hooks with content can return it. */
export type AnswerOf<H extends Hook> =
  | Failed
  | (keyof ContentOf<H> extends never ? Proceed : Proceed | ProceedWith<ContentOf<H>>)
  | (ResponseOf<H> extends { retryAfterSeconds: number } ? Hold : never)

export const proceedNow = (message?: string): Proceed => ({ kind: 'proceed', ...(message === undefined ? {} : { message }) })

/** Gives what the hook asks for, such as patches or variables. The hook says what that is: a field that it does not have does not compile. */
export const proceedWith = <Response extends object>(response: NoInfer<Response>): ProceedWith<Response> => ({
  kind: 'proceed',
  response,
})

/**
 * Blocks the next step. `message` is what users read in a condition: it must not change from call to call without reason,
 * or the condition never comes to rest.
 */
export function holdFor(seconds: number, message: string): Hold {
  if (!Number.isInteger(seconds) || seconds < 1 || seconds > maxInt32) {
    throw new RangeError(`Cannot hold for ${seconds} seconds: expected a whole number from 1 to ${maxInt32}`)
  }
  return { kind: 'hold', seconds, message }
}

export const fail = (message: string): Failed => ({ kind: 'fail', message })

const maxInt32 = 2 ** 31 - 1
