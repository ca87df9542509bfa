/**
 * How many requests are worked on at a time, and whose. Health checks, superusers and watches are never held up; everybody else
 * needs a seat.
 * Upstream: k8s.io/apiserver/pkg/server/filters, maxinflight.go and priority-and-fairness.go.
 */
import type { Clock } from '@capstan/kube'
import type { Attributes } from '../auth/authorizer.ts'
import { isSuperuser } from '../auth/authorizer.ts'
import { TooManyRequests } from './exchange.ts'
import { FairSeats, type Release } from './fair-seats.ts'

export interface FlowControlOptions {
  /** Upstream: --max-requests-inflight. */
  readonly maxRequestsInflight: number
  /** Upstream: --max-mutating-requests-inflight. */
  readonly maxMutatingRequestsInflight: number
  /** Whether seats are shared out by importance and user. Upstream: --enable-priority-and-fairness. */
  readonly priorityAndFairness: boolean
}

export interface FlowControl {
  /**
   * A seat, now or in a while, to be given back by calling it.
   *
   * @throws TooManyRequests when there is none, nor will be soon
   */
  seat(request: Attributes, signal: AbortSignal): Release | Promise<Release>
}

/** `longestWait` is how long a request waits for its seat before it is sent away. */
export function flowControl(options: FlowControlOptions, clock: Clock, longestWait: number): FlowControl {
  const { maxRequestsInflight, maxMutatingRequestsInflight, priorityAndFairness } = options
  if (!priorityAndFairness) return twoCounters(maxRequestsInflight, maxMutatingRequestsInflight)
  let seats: FairSeats<Level> | undefined
  return {
    seat(request, signal) {
      if (isExempt(request)) return nothing
      seats ??= new FairSeats(levels, maxRequestsInflight + maxMutatingRequestsInflight, clock, longestWait)
      return seats.take(levelOf(request), flowOf(request), signal)
    },
  }
}

/** Reads and writes are counted apart; who finds no seat is sent away at once. 0 is no limit. */
function twoCounters(maxReads: number, maxWrites: number): FlowControl {
  const read = { inFlight: 0, limit: maxReads }
  const write = { inFlight: 0, limit: maxWrites }
  return {
    seat(request) {
      if (isExempt(request)) return nothing
      const counter = isRead(request) ? read : write
      if (counter.limit > 0 && counter.inFlight >= counter.limit) throw new TooManyRequests()
      counter.inFlight++
      return () => {
        counter.inFlight--
      }
    },
  }
}

const nothing: Release = () => {}

const isRead = ({ verb }: Attributes): boolean => verb === 'get' || verb === 'list' || verb === 'watch' || verb === 'head'

/** Upstream: flow schemas `exempt` and `probes`, and the check for long-running requests. */
const isExempt = (request: Attributes): boolean =>
  isSuperuser(request.user) ||
  (request.kind === 'path' ? /^\/(?:healthz|livez|readyz)(?:\/|$)/.test(request.path) : request.verb === 'watch')

type Level = keyof typeof levels

/** Upstream: the suggested priority level configurations: shares of all seats, and what part of them others may borrow. */
const levels = {
  'leader-election': { shares: 10, lendable: 0 },
  'node-high': { shares: 40, lendable: 0.25 },
  system: { shares: 30, lendable: 0.33 },
  'workload-high': { shares: 40, lendable: 0.5 },
  'workload-low': { shares: 100, lendable: 0.9 },
  'global-default': { shares: 20, lendable: 0.5 },
  'catch-all': { shares: 5, lendable: 0 },
} as const

/**
 * Upstream: the suggested flow schemas, but that everybody's leases are leases: a controller must not lose its own because it is
 * busy.
 */
function levelOf(request: Attributes): Level {
  const { name, groups } = request.user
  const isLease = request.kind === 'resource' && request.group === 'coordination.k8s.io' && request.resource === 'leases'
  if (groups.includes('system:nodes')) {
    const isNode = request.kind === 'resource' && request.group === '' && request.resource === 'nodes'
    return isLease || isNode ? 'node-high' : 'system'
  }
  if (isLease && leaseVerbs.has(request.verb)) return 'leader-election'
  if (importantUsers.has(name) || name.startsWith('system:serviceaccount:kube-system:')) return 'workload-high'
  return groups.includes('system:serviceaccounts') ? 'workload-low' : 'global-default'
}

const leaseVerbs = new Set(['get', 'create', 'update', 'patch'])
const importantUsers = new Set(['system:kube-controller-manager', 'system:kube-scheduler'])

/** Among requests of one level, who takes turns with whom. */
const flowOf = ({ user }: Attributes): string => user.name
