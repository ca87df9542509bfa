/** Shares the threads that read YAML: superusers have their own, every other user has one at a time. */
import { type Clock, seconds } from '@capstan/kube'
import type { ThreadSeats } from '../body/read-yaml.ts'
import { FairSeats } from './fair-seats.ts'

/** A user has one at a time, so that one is left for the others. */
export const MaxThreads = 2
/** For superusers, beside the others. */
export const MaxExemptThreads = 1
/** Afterwards the response is 429. */
const LongestWait = seconds(30)

export function threadSeats(clock: Clock): ThreadSeats {
  const levels = { exempt: { shares: MaxExemptThreads, lendable: 0 }, others: { shares: MaxThreads, lendable: 0 } }
  const seats = new FairSeats(levels, MaxExemptThreads + MaxThreads, clock, LongestWait)
  return ({ flow, isExempt }, signal) => seats.take(isExempt ? 'exempt' : 'others', flow, signal)
}
