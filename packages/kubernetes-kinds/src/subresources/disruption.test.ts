import { describe, expect, test } from 'vitest'
import { StatusError } from '@capstan/kube'
import type { Pod, PodDisruptionBudget, PodDisruptionBudgetStatus } from '../kinds/schemas/types.ts'
import { isReady, needsBudget, allowsUnreadyEviction, countDisruption } from './disruption.ts'

const now = '2026-01-01T00:00:00Z'

const budget = (status: Partial<PodDisruptionBudgetStatus>, spec: PodDisruptionBudget['spec'] = {}): PodDisruptionBudget =>
  ({
    metadata: { name: 'keep', generation: 1 },
    spec,
    status: { observedGeneration: 1, disruptionsAllowed: 1, currentHealthy: 3, desiredHealthy: 2, expectedPods: 3, ...status },
  }) as PodDisruptionBudget

const pod = (status: object) => ({ metadata: { name: 'a' }, status }) as unknown as Pod

function rejectionOf(status: Partial<PodDisruptionBudgetStatus>) {
  try {
    countDisruption(budget(status), 'a', now)
  } catch (err) {
    if (err instanceof StatusError) return { code: err.code, message: err.status.details?.causes?.[0]?.message ?? err.message }
    throw err
  }
  return undefined
}

test('an eviction is counted, and the last allowed eviction sets the condition DisruptionAllowed to False', () => {
  const keep = budget({ disruptionsAllowed: 2 })
  countDisruption(keep, 'a', now)
  expect(keep.status).toMatchObject({ disruptionsAllowed: 1, disruptedPods: { a: now } })
  expect(keep.status.conditions).toBeUndefined()
  countDisruption(keep, 'b', now)
  expect(keep.status).toMatchObject({
    disruptionsAllowed: 0,
    disruptedPods: { a: now, b: now },
    conditions: [{ type: 'DisruptionAllowed', status: 'False', reason: 'InsufficientPods', observedGeneration: 1 }],
  })
})

describe('an eviction is rejected', () => {
  const condition = { type: 'DisruptionAllowed', status: 'False' as const, lastTransitionTime: now, message: 'no such scale' }

  test.each([
    [{ observedGeneration: 0 }, 429, 'The disruption budget keep is still being processed by the server.'],
    [{ disruptionsAllowed: 0, currentHealthy: 2 }, 429, 'The disruption budget keep needs 2 healthy pods and has 2 currently'],
    [{ disruptionsAllowed: 0 }, 429, 'The disruption budget keep does not allow evicting pods currently'],
    [
      { disruptionsAllowed: 0, conditions: [{ ...condition, reason: 'SyncFailed' }] },
      429,
      'The disruption budget keep does not allow evicting pods currently because it failed sync: no such scale',
    ],
    [
      { disruptionsAllowed: 0, conditions: [{ ...condition, reason: 'Other' }] },
      429,
      'The disruption budget keep does not allow evicting pods currently (Other): no such scale',
    ],
    [{ disruptionsAllowed: -1 }, 403, 'poddisruptionbudget.policy "keep" is forbidden: pdb disruptions allowed is negative'],
  ])('when the budget has the status %j', (status, code, message) => {
    expect(rejectionOf(status)).toEqual({ code, message })
  })

  test('when too many evictions are not confirmed', () => {
    const disruptedPods = Object.fromEntries(Array.from({ length: 2001 }, (_, index) => [`pod-${index}`, now]))
    expect(rejectionOf({ disruptedPods })?.message).toContain('DisruptedPods map too big')
  })
})

test('pods that have finished, have not started or are being deleted need no budget', () => {
  for (const phase of ['Succeeded', 'Failed', 'Pending']) expect(needsBudget(pod({ phase }))).toBe(false)
  expect(needsBudget(pod({ phase: 'Running' }))).toBe(true)
  expect(needsBudget({ ...pod({ phase: 'Running' }), metadata: { name: 'a', deletionTimestamp: now } } as never)).toBe(false)
})

test('a pod is ready only if its condition Ready is True', () => {
  expect(isReady(pod({ conditions: [{ type: 'Ready', status: 'True' }] }))).toBe(true)
  expect(isReady(pod({ conditions: [{ type: 'Ready', status: 'False' }] }))).toBe(false)
  expect(isReady(pod({}))).toBe(false)
})

test('pods that are not ready may be evicted while enough pods are healthy, or always if the policy is AlwaysAllow', () => {
  expect(allowsUnreadyEviction(budget({}))).toBe(true)
  expect(allowsUnreadyEviction(budget({ currentHealthy: 1 }))).toBe(false)
  expect(allowsUnreadyEviction(budget({ currentHealthy: 1 }, { unhealthyPodEvictionPolicy: 'AlwaysAllow' }))).toBe(true)
})
