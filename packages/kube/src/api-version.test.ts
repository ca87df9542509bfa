import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compareApiVersions } from './api-version.ts'

test("compareApiVersions orders versions by Kubernetes' version priority", () => {
  const versions = [
    'foo10',
    'v1alpha1',
    'v10',
    'v1',
    'v2beta1',
    'v3beta1',
    'v11alpha2',
    'foo1',
    'v12alpha1',
    'v11beta2',
    'v2',
    'v10beta3',
  ]
  expect(versions.toSorted(compareApiVersions)).toEqual([
    // First stable versions, then beta versions, alpha versions, and names that are not versions.
    'v10',
    'v2',
    'v1',
    'v11beta2',
    'v10beta3',
    'v3beta1',
    'v2beta1',
    'v12alpha1',
    'v11alpha2',
    'v1alpha1',
    'foo1',
    'foo10',
  ])
})

test('compareApiVersions is antisymmetric and transitive', () => {
  const version = fc.oneof(
    fc.constantFrom('v1', 'v2', 'v1beta1', 'v1beta2', 'v2alpha1', 'x'),
    fc.stringMatching(/^v\d{1,2}(beta\d)?$/),
  )
  fc.assert(
    fc.property(version, version, version, (a, b, c) => {
      // `toBe` distinguishes -0 from 0.
      expect(Math.sign(compareApiVersions(a, b))).toBe(-Math.sign(compareApiVersions(b, a)) || 0)
      if (compareApiVersions(a, b) < 0 && compareApiVersions(b, c) < 0) expect(compareApiVersions(a, c)).toBeLessThan(0)
    }),
    { seed: 1 },
  )
})
