/** What a handler answers, in words of its own: the wire form is made from it. */
import type { Hook, ResponseOf } from '@capstan/api'

/** Nothing stands in the way. */
export interface Proceed {
  readonly kind: 'proceed'
  readonly message?: string
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
export type Answer = Proceed | Failed | Hold

/** What a handler of the hook can answer: only hooks that block can be held. */
export type AnswerOf<H extends Hook> = Proceed | Failed | (ResponseOf<H> extends { retryAfterSeconds: number } ? Hold : never)

export const proceedNow = (message?: string): Proceed => ({ kind: 'proceed', ...(message === undefined ? {} : { message }) })

/**
 * Holds back what comes next. `message` is what users read in a condition: it must not change from call to call without reason,
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
