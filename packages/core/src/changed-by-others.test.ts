import type { Machine } from '@capstan/api'
import { aCondition, aMachine } from '@capstan/testing'
import { expect, test } from 'vitest'
import { changedByOthers } from './changed-by-others.ts'

const when = changedByOthers<Machine>(['Ready'], ['Ready'])
const stored = aMachine({
  status: { phase: 'Pending', conditions: [aCondition('Ready', 'False'), aCondition('HealthCheckSucceeded', 'True')] },
})
const conditions = (ready: 'True' | 'False', health: 'True' | 'False') => [
  aCondition('Ready', ready),
  aCondition('HealthCheckSucceeded', health),
]

const legacy = (type: string) => ({
  deprecated: { v1beta1: { conditions: [{ type, status: 'False' as const, lastTransitionTime: '2026-01-01T00:00:00Z' }] } },
})

// biome-ignore format: a table
test.each<[string, Machine | undefined, boolean]>([
  ['ignores a status written by the controller itself', aMachine({ metadata: { resourceVersion: '2' }, status: { phase: 'Running', conditions: conditions('True', 'True') } }), false],
  ['accepts a condition of another writer', aMachine({ status: { conditions: conditions('False', 'False') } }), true],
  ['ignores a v1beta1 condition of the controller itself', aMachine({ status: { ...stored.status, ...legacy('Ready') } }), false],
  ['accepts a v1beta1 condition of another writer', aMachine({ status: { ...stored.status, ...legacy('OwnerRemediated') } }), true],
  ['accepts a new spec',                    aMachine({ metadata: { generation: 2 }, status: stored.status! }), true],
  ['accepts a label',                       aMachine({ metadata: { labels: { a: 'b' } }, status: stored.status! }), true],
  ['accepts a deletion timestamp',          aMachine({ metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' }, status: stored.status! }), true],
  ['accepts a new object of the same name', aMachine({ metadata: { uid: 'other' }, status: stored.status! }), true],
  ['accepts the removal of the object',     undefined, true],
])('changedByOthers %s', (_, object, matters) => {
  expect(when({ previous: stored, object })).toBe(matters)
})

test('changedByOthers accepts the first event of an object', () => {
  expect(when({ previous: undefined, object: stored })).toBe(true)
})
