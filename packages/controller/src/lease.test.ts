import type { Lease } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { checkLeaseTerms, defaultLeaseTerms, nextLeaseStep, type LeaseSpec, releasedLease } from './lease.ts'

const now = Date.UTC(2026, 0, 1, 0, 1)
const lease = (spec: LeaseSpec): Lease => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: 'x', namespace: 'default', uid: 'u', resourceVersion: '7', generation: 1, creationTimestamp: '' },
  spec,
})
const held: LeaseSpec = {
  holderIdentity: 'a',
  leaseDurationSeconds: 15,
  acquireTime: '2026-01-01T00:00:00.000000Z',
  renewTime: '2026-01-01T00:00:30.000000Z',
  leaseTransitions: 4,
}
const stepOf = (
  current: Lease | undefined,
  identity: string,
  hasExpired = false,
  leaseDuration = defaultLeaseTerms.leaseDuration,
) => nextLeaseStep(current, { identity, terms: { ...defaultLeaseTerms, leaseDuration }, now, hasExpired })

describe('a Lease', () => {
  test('that does not exist is created', () => {
    const spec = {
      ...held,
      acquireTime: '2026-01-01T00:01:00.000000Z',
      renewTime: '2026-01-01T00:01:00.000000Z',
      leaseTransitions: 0,
    }
    expect(stepOf(undefined, 'a')).toEqual({ kind: 'create', spec })
  })

  test('is renewed by its holder without a change of acquireTime and leaseTransitions', () => {
    const spec = { ...held, renewTime: '2026-01-01T00:01:00.000000Z' }
    expect(stepOf(lease(held), 'a')).toEqual({ kind: 'update', lease: lease(spec) })
  })

  test('of another holder is not acquired even if its timestamps are old', () => {
    expect(stepOf(lease({ ...held, renewTime: '2020-01-01T00:00:00.000000Z' }), 'b')).toEqual({ kind: 'wait', holder: 'a' })
  })

  test.each([
    ['that has expired', held, true],
    ['that was released', releasedLease(lease(held), now).spec!, false],
  ])('%s is acquired, and leaseTransitions is incremented', (_, spec, hasExpired) => {
    expect(stepOf(lease(spec), 'b', hasExpired)).toMatchObject({
      kind: 'update',
      lease: {
        metadata: { resourceVersion: '7' },
        spec: {
          holderIdentity: 'b',
          leaseDurationSeconds: 15,
          acquireTime: '2026-01-01T00:01:00.000000Z',
          renewTime: '2026-01-01T00:01:00.000000Z',
          leaseTransitions: 5,
        },
      },
    })
  })

  test('rounds its duration up to whole seconds', () => {
    expect(stepOf(undefined, 'a', false, 1500)).toMatchObject({ spec: { leaseDurationSeconds: 2 } })
  })

  test('keeps fields set by other writers', () => {
    expect(stepOf(lease({ ...held, strategy: 'x' }), 'a')).toMatchObject({ lease: { spec: { strategy: 'x' } } })
  })
})

test.each([
  [{ leaseDuration: 10_000 }, 'leaseDuration must be greater than renewDeadline'],
  [{ retryPeriod: 9_000 }, 'renewDeadline must be greater than retryPeriod*JitterFactor'],
  [{ retryPeriod: 0 }, 'retryPeriod must be greater than zero'],
])('terms %j are rejected', (terms, message) => {
  expect(() => checkLeaseTerms({ ...defaultLeaseTerms, ...terms })).toThrow(message)
})
