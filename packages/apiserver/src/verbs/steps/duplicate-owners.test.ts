import { expect, test } from 'vitest'
import { dropDuplicateOwners } from './metadata.ts'

const owner = (uid: string, name = 'n') => ({ apiVersion: 'v1', kind: 'ConfigMap', name, uid })
const withOwners = (...ownerReferences: ReturnType<typeof owner>[]) => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 's', uid: 'u', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z', ownerReferences },
})

test('drops an owner reference that equals an earlier one in any field order, and returns a warning with its uid', () => {
  const { name, uid, kind, apiVersion } = owner('a')
  const object = withOwners(owner('a'), owner('b'), { uid, name, kind, apiVersion }, owner('a', 'other'))
  expect(dropDuplicateOwners(object)).toEqual([expect.stringContaining('duplicate UID(s) observed: a')])
  expect(object.metadata.ownerReferences).toEqual([owner('a'), owner('b'), owner('a', 'other')])
})

test('keeps 30,000 different owner references, and returns no warning', () => {
  const object = withOwners(...Array.from({ length: 30_000 }, (_, index) => owner(String(index))))
  expect(dropDuplicateOwners(object)).toEqual([])
  expect(object.metadata.ownerReferences).toHaveLength(30_000)
})
