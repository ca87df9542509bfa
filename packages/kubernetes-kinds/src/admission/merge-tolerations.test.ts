import { equal } from '@capstan/kube'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Toleration } from '../kinds/schemas/types.ts'
import { mergeTolerations } from './merge-tolerations.ts'

/**
 * Reports whether `wide` tolerates at least the taints that `narrow` tolerates. As in upstream's isSuperset, an omitted operator of `narrow`
 * does not count as Equal.
 */
function covers(wide: Toleration, narrow: Toleration): boolean {
  if (equal(wide, narrow)) return true
  const { key = '', effect = '', operator = '', value = '', tolerationSeconds } = wide
  if (key !== (narrow.key ?? '') && (key !== '' || operator !== 'Exists')) return false
  if (effect !== (narrow.effect ?? '') && effect !== '') return false
  if (effect === 'NoExecute' && tolerationSeconds !== undefined && !((narrow.tolerationSeconds ?? Infinity) <= tolerationSeconds))
    return false
  if (operator === 'Exists') return true
  return (operator === '' || operator === 'Equal') && narrow.operator === 'Equal' && (narrow.value ?? '') === value
}

/** Merges tolerations by upstream's algorithm, which compares each pair. */
function mergeByPairs(tolerations: readonly Toleration[]): Toleration[] {
  const merged: Toleration[] = []
  for (const [index, toleration] of tolerations.entries()) {
    const isCovered = merged.some((other) => covers(other, toleration))
    if (!isCovered && !tolerations.slice(index + 1).some((other) => !equal(toleration, other) && covers(other, toleration)))
      merged.push(toleration)
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

test('merging has the same result as comparing each pair of tolerations', () => {
  fc.assert(
    fc.property(fc.array(toleration, { maxLength: 12 }), (tolerations) => {
      expect(mergeTolerations(tolerations)).toEqual(mergeByPairs(tolerations))
    }),
    { numRuns: 3000 },
  )
})

test('merging 100,000 different tolerations keeps all of them', () => {
  const tolerations = Array.from({ length: 100_000 }, (_, index) => ({ key: `k${index}`, operator: 'Exists' }))
  expect(mergeTolerations(tolerations)).toHaveLength(100_000)
})
