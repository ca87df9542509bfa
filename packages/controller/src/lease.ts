/**
 * Decides the next step of a candidate for a Lease. Pure. The timestamps in a Lease are from the clock of its holder. Therefore the caller,
 * which has observed the Lease with a local clock, determines whether the Lease has expired. Upstream: tools/leaderelection of client-go,
 * v0.36.
 */
import { type Lease, seconds } from '@capstan/kube'

/** Durations of leader election, in milliseconds. */
export interface LeaseTerms {
  /** How long other candidates respect a Lease that is not renewed. */
  readonly leaseDuration: number
  /** How long the holder leads without a successful renewal. */
  readonly renewDeadline: number
  /** Time between two attempts of the holder to renew the Lease. Other candidates wait longer between attempts; see `RetryJitter`. */
  readonly retryPeriod: number
}

export const defaultLeaseTerms: LeaseTerms = { leaseDuration: seconds(15), renewDeadline: seconds(10), retryPeriod: seconds(2) }

/**
 * Between two attempts, a candidate that does not hold the Lease waits for `retryPeriod` and, in addition, for a random time of up to
 * `RetryJitter` times `retryPeriod`.
 */
export const RetryJitter = 1.2

/**
 * Validates the terms of a Lease.
 * @throws Error with client-go's text unless `leaseDuration` > `renewDeadline` > `RetryJitter` × `retryPeriod` > 0
 */
export function checkLeaseTerms({ leaseDuration, renewDeadline, retryPeriod }: LeaseTerms): void {
  if (leaseDuration <= renewDeadline) throw new Error('leaseDuration must be greater than renewDeadline')
  if (renewDeadline <= RetryJitter * retryPeriod) throw new Error('renewDeadline must be greater than retryPeriod*JitterFactor')
  if (retryPeriod <= 0) throw new Error('retryPeriod must be greater than zero')
}

export type LeaseSpec = NonNullable<Lease['spec']>

export type LeaseStep =
  | { readonly kind: 'create'; readonly spec: LeaseSpec }
  /** Acquires or renews the Lease. Valid only as an update of the Lease that was read. */
  | { readonly kind: 'update'; readonly lease: Lease }
  | { readonly kind: 'wait'; readonly holder: string }

export interface Candidate {
  /** Unique to each process ever started. */
  readonly identity: string
  readonly terms: LeaseTerms
  /** Milliseconds since the Unix epoch. */
  readonly now: number
  /** Whether the Lease has stayed unchanged for its own duration. */
  readonly hasExpired: boolean
}

/** Decides the next step of a candidate. `lease` is the Lease as read; `undefined` when it does not exist. */
export function nextLeaseStep(lease: Lease | undefined, { identity, terms, now, hasExpired }: Candidate): LeaseStep {
  const renewed = {
    holderIdentity: identity,
    // Rounded up: with a shorter duration, another candidate could acquire the Lease while its holder still leads.
    leaseDurationSeconds: Math.ceil(terms.leaseDuration / 1000),
    renewTime: microTime(now),
  }
  if (!lease) return { kind: 'create', spec: { ...renewed, acquireTime: microTime(now), leaseTransitions: 0 } }
  const { spec = {} } = lease
  const holder = holderOf(lease)
  if (holder === identity) return { kind: 'update', lease: { ...lease, spec: { ...spec, ...renewed } } }
  if (holder !== '' && !hasExpired) return { kind: 'wait', holder }
  const taken = { acquireTime: microTime(now), leaseTransitions: (spec.leaseTransitions ?? 0) + 1 }
  return { kind: 'update', lease: { ...lease, spec: { ...spec, ...renewed, ...taken } } }
}

/** Returns the Lease without its holder, so that the next candidate can acquire it. Upstream: `release` of client-go. */
export function releasedLease({ spec, ...lease }: Lease, now: number): Lease {
  const { holderIdentity: _, ...fields } = spec ?? {}
  return { ...lease, spec: { ...fields, leaseDurationSeconds: 1, acquireTime: microTime(now), renewTime: microTime(now) } }
}

/** Returns the identity of the holder; empty when the Lease is free. */
export const holderOf = ({ spec }: Lease): string => spec?.holderIdentity ?? ''

/** Formats a time in RFC 3339 with microseconds, the format of Lease timestamps. */
const microTime = (ms: number): string => new Date(ms).toISOString().replace('Z', '000Z')
