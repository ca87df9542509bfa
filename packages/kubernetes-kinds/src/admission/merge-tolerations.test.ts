import { equal } from '@capstan/kube'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Toleration } from '../kinds/schemas/types.ts'
import { mergeTolerations } from './merge-tolerations.ts'

/** Upstream's isSuperset. */
function covers(wide: Toleration, one: Toleration): boolean {
  if (equal(wide, one)) return true
  const { key = '', effect = '', operator = '', value = '', tolerationSeconds } = wide
  if (key !== (one.key ?? '') && (key !== '' || operator !== 'Exists')) return false
  if (effect !== (one.effect ?? '') && effect !== '') return false
  if (effect === 'NoExecute' && tolerationSeconds !== undefined && !((one.tolerationSeconds ?? Infinity) <= tolerationSeconds))
    return false
  if (operator === 'Exists') return true
  return (operator === '' || operator === 'Equal') && one.operator === 'Equal' && (one.value ?? '') === value
}

/** Upstream's algorithm, which compares each pair. */
function mergeByPairs(all: readonly Toleration[]): Toleration[] {
  const merged: Toleration[] = []
  for (const [index, one] of all.entries()) {
    const isKnown = merged.some((other) => covers(other, one))
    if (!isKnown && !all.slice(index + 1).some((other) => !equal(one, other) && covers(other, one))) merged.push(one)
  }
  return merged
}

const toleration: fc.Arbitrary<Toleration> = fc.record(
  {
    key: fc.constantFrom('', 'a', 'b'),
    operator: fc.constantFrom('', 'Exists', 'Equal', 'Lt'),
    value: fc.constantFrom('', 'x', 'y'),
    effect: fc.constantFrom('', 'NoSchedule', 'NoExecute'),
    tolerationSeconds: fc.constantFrom(1, 2, 3),
  },
  { requiredKeys: [] },
)

test('the result equals that of comparing each pair of tolerations', () => {
  fc.assert(
    fc.property(fc.array(toleration, { maxLength: 12 }), (all) => {
      expect(mergeTolerations(all)).toEqual(mergeByPairs(all))
    }),
    { numRuns: 3000 },
  )
})

test('100,000 different tolerations are merged', () => {
  const all = Array.from({ length: 100_000 }, (_, index) => ({ key: `k${index}`, operator: 'Exists' }))
  expect(mergeTolerations(all)).toHaveLength(100_000)
})
