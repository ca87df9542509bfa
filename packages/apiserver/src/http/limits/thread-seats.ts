/**
 * Shares the threads that parse YAML. One thread is for superusers. One is for creates, updates and patches of Leases, for nodes,
 * kube-controller-manager, kube-scheduler and the service accounts of `kube-system`. Two are for all other requests, and one user has at most
 * one of these two at a time.
 */
import { type Clock, seconds } from '@capstan/kube'
import type { Requester } from '../exchange.ts'
import type { ThreadSeats } from '../body/read-yaml.ts'
import { FairSeats } from './fair-seats.ts'

/** Number of threads for users and service accounts with ordinary priority. One user has at most one, so that one is left for other users. */
export const MaxOrdinaryThreads = 2
/** Number of separate threads for superusers. */
export const MaxExemptThreads = 1
/** Number of separate threads for Leases, nodes, and Kubernetes' own components. */
export const MaxImportantThreads = 1
/** Maximum time that a request waits for a thread, before it gets 429. */
const LongestWait = seconds(30)

/** Creates the seats for the YAML threads of one server. */
export function threadSeats(clock: Clock): ThreadSeats {
  const levels = {
    exempt: { shares: MaxExemptThreads, lendable: 0 },
    important: { shares: MaxImportantThreads, lendable: 0 },
    others: { shares: MaxOrdinaryThreads, lendable: 0 },
  }
  const seats = new FairSeats(levels, MaxExemptThreads + MaxImportantThreads + MaxOrdinaryThreads, clock, LongestWait)
  const groupOf = ({ level, isExempt }: Requester) => (isExempt ? 'exempt' : ordinaryLevels.has(level) ? 'others' : 'important')
  return (requester, signal) => seats.take(groupOf(requester), requester.flow, () => signal)
}

const ordinaryLevels: ReadonlySet<string> = new Set(['', 'workload-low', 'global-default'])
