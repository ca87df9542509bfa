/**
 * Limits concurrent requests. With priority and fairness, there is a limit for all requests, for each priority level and for
 * each user; otherwise one for reads and one for writes. Health checks, superusers and watches are exempt; all other requests
 * need a seat. Upstream: k8s.io/apiserver/pkg/server/filters, maxinflight.go and priority-and-fairness.go.
 */
import type { Clock, NamedResource } from '@capstan/kube'
import type { Attributes } from '../../auth/authorizer.ts'
import { isSuperuser } from '../../auth/authorizer.ts'
import type { FlowSchema, FlowTable, PriorityLevel } from '../../registry/flow-schema.ts'
import { type Requester, TooManyRequests } from '../exchange.ts'
import { FairSeats, type LevelShare, type Release } from './fair-seats.ts'

export interface FlowControlOptions {
  /**
   * Maximum number of concurrent reads. Without priority and fairness, 0 means no limit. With priority and fairness, only the sum of this
   * and the next option counts: it is the number of seats for all requests. Upstream: --max-requests-inflight.
   */
  readonly maxRequestsInflight: number
  /** Maximum number of concurrent writes, as `maxRequestsInflight` for reads. Upstream: --max-mutating-requests-inflight. */
  readonly maxMutatingRequestsInflight: number
  /** Whether seats are shared by priority level and user. Upstream: --enable-priority-and-fairness. */
  readonly priorityAndFairness: boolean
}

export interface FlowControl {
  /** Returns the priority level and user of the request, and whether it is exempt from the limits. */
  requester(request: Attributes): Requester
  /**
   * Takes a seat, or returns a promise of a seat. Calling the result releases the seat. `end` returns a signal for the end of the request;
   * it is called only when the request has to wait.
   * @throws TooManyRequests when too many requests of the user wait, there is no seat within the waiting time, or the request ends first;
   * without priority and fairness, as soon as there is no seat
   */
  seat(request: Attributes, requester: Requester, end: () => AbortSignal): Release | Promise<Release>
}

/** Returns the limits of a server. `longestWait` is the maximum time in milliseconds that a request waits for its seat. */
export function flowControl(options: FlowControlOptions, table: FlowTable, clock: Clock, longestWait: number): FlowControl {
  const { maxRequestsInflight, maxMutatingRequestsInflight, priorityAndFairness } = options
  const requester = (request: Attributes) => requesterOf(request, table)
  if (!priorityAndFairness) return { requester, ...readAndWriteLimits(maxRequestsInflight, maxMutatingRequestsInflight) }
  let seats: FairSeats<PriorityLevel> | undefined
  return {
    requester,
    seat(_request, { level, flow, isExempt }, end) {
      if (isExempt) return releaseNothing
      seats ??= new FairSeats(levels, maxRequestsInflight + maxMutatingRequestsInflight, clock, longestWait)
      return seats.take(level as PriorityLevel, flow, end)
    },
  }
}

/** Limits reads and writes separately, without waiting. 0 means no limit. */
function readAndWriteLimits(maxReads: number, maxWrites: number): Pick<FlowControl, 'seat'> {
  const read = { inFlight: 0, limit: maxReads }
  const write = { inFlight: 0, limit: maxWrites }
  return {
    seat(request, { isExempt }) {
      if (isExempt) return releaseNothing
      const counter = isRead(request) ? read : write
      if (counter.limit > 0 && counter.inFlight >= counter.limit) throw new TooManyRequests()
      counter.inFlight++
      return () => {
        counter.inFlight--
      }
    },
  }
}

const releaseNothing: Release = () => {}

const requesterOf = (request: Attributes, table: FlowTable): Requester => ({
  level: levelOf(request, table),
  // Each user is a flow of its own.
  flow: request.user.name,
  isExempt: isExempt(request),
})

const isRead = ({ verb }: Attributes): boolean => verb === 'get' || verb === 'list' || verb === 'watch' || verb === 'head'

/** Reports whether a request needs no seat. Upstream: flow schemas `exempt` and `probes`, and the check for long-running requests. */
const isExempt = (request: Attributes): boolean =>
  isSuperuser(request.user) ||
  (request.kind === 'path' ? /^\/(?:healthz|livez|readyz)(?:\/|$)/.test(request.path) : request.verb === 'watch')

/** Upstream's priority levels without `exempt`, with upstream's shares. */
const levels: { readonly [level in PriorityLevel]: LevelShare } = {
  'leader-election': { shares: 10, lendable: 0 },
  'node-high': { shares: 40, lendable: 0.25 },
  system: { shares: 30, lendable: 0.33 },
  'workload-high': { shares: 40, lendable: 0.5 },
  'workload-low': { shares: 100, lendable: 0.9 },
  'global-default': { shares: 20, lendable: 0.5 },
  'catch-all': { shares: 5, lendable: 0 },
}

const levelOf = (request: Attributes, { schemas }: FlowTable): PriorityLevel =>
  schemas.find((schema) => matches(schema, request))?.level ?? 'global-default'

const matches = ({ group, user, resources, verbs }: FlowSchema, request: Attributes): boolean =>
  (group === undefined || request.user.groups.includes(group)) &&
  (user === undefined || user.test(request.user.name)) &&
  (resources === undefined || isAmong(resources, request)) &&
  (verbs === undefined || verbs.includes(request.verb))

/** Reports whether the request is for one of the resources. */
export const isAmong = (resources: readonly NamedResource[], request: Attributes): boolean =>
  request.kind === 'resource' && resources.some(({ group, plural }) => request.group === group && request.resource === plural)
