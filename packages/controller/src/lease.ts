/**
 * What to do about a Lease that several contend for. Pure: the time in it is somebody else's, so whether it has run out is decided by
 * whoever has watched it, on a clock of their own. Upstream: tools/leaderelection of client-go, v0.36.
 */
import { type Lease, seconds } from '@capstan/kube'

/** Milliseconds. */
export interface LeaseTerms {
  /** How long others leave a Lease alone that is not renewed. */
  readonly leaseDuration: number
  /** How long the holder goes on without having renewed it. */
  readonly renewDeadline: number
  /** How long everybody waits between two attempts. */
  readonly retryPeriod: number
}

export const defaultLeaseTerms: LeaseTerms = { leaseDuration: seconds(15), renewDeadline: seconds(10), retryPeriod: seconds(2) }

/** Those who wait for a Lease come back after the retry period and up to so many times as long again. */
export const RetryJitter = 1.2

/** @throws Error in client-go's words when a holder would not notice in time that it has lost the Lease */
export function checkLeaseTerms({ leaseDuration, renewDeadline, retryPeriod }: LeaseTerms): void {
  if (leaseDuration <= renewDeadline) throw new Error('leaseDuration must be greater than renewDeadline')
  if (renewDeadline <= RetryJitter * retryPeriod) throw new Error('renewDeadline must be greater than retryPeriod*JitterFactor')
  if (retryPeriod <= 0) throw new Error('retryPeriod must be greater than zero')
}

export type LeaseSpec = NonNullable<Lease['spec']>

export type LeaseMove =
  | { readonly kind: 'create'; readonly spec: LeaseSpec }
  /** Takes or renews it: to be written over what was read, and nothing else. */
  | { readonly kind: 'update'; readonly lease: Lease }
  | { readonly kind: 'wait'; readonly holder: string }

export interface Contender {
  /** Unique for each process that was ever started. */
  readonly identity: string
  readonly terms: LeaseTerms
  readonly now: number
  /** The Lease has not changed for as long as it says itself. */
  readonly hasRunOut: boolean
}

/** What a contender does about the Lease as it was read; `undefined` when there is none. */
export function leaseMove(lease: Lease | undefined, { identity, terms, now, hasRunOut }: Contender): LeaseMove {
  const renewed = {
    holderIdentity: identity,
    // Never less than the terms say: others would come while the holder still goes on.
    leaseDurationSeconds: Math.ceil(terms.leaseDuration / 1000),
    renewTime: microTime(now),
  }
  if (!lease) return { kind: 'create', spec: { ...renewed, acquireTime: microTime(now), leaseTransitions: 0 } }
  const { spec = {} } = lease
  const holder = holderOf(lease)
  if (holder === identity) return { kind: 'update', lease: { ...lease, spec: { ...spec, ...renewed } } }
  if (holder !== '' && !hasRunOut) return { kind: 'wait', holder }
  const taken = { acquireTime: microTime(now), leaseTransitions: (spec.leaseTransitions ?? 0) + 1 }
  return { kind: 'update', lease: { ...lease, spec: { ...spec, ...renewed, ...taken } } }
}

/** The Lease as its holder leaves it, for the next one to take at once. */
export function released({ spec, ...lease }: Lease, now: number): Lease {
  const { holderIdentity: _, ...rest } = spec ?? {}
  return { ...lease, spec: { ...rest, leaseDurationSeconds: 1, acquireTime: microTime(now), renewTime: microTime(now) } }
}

/** Empty when nobody holds it. */
export const holderOf = ({ spec }: Lease): string => spec?.holderIdentity ?? ''

/** RFC 3339 with microseconds, as Leases have it. */
const microTime = (ms: number): string => new Date(ms).toISOString().replace('Z', '000Z')
