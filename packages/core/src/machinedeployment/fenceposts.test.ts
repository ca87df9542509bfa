import type { MachineDeployment } from '@capstan/api'
import { expect, test } from 'vitest'
import { fenceposts } from './fenceposts.ts'

const aDeployment = (replicas: number, rollingUpdate?: object, type = 'RollingUpdate'): MachineDeployment =>
  ({ spec: { replicas, rollout: { strategy: { type, rollingUpdate } } } }) as unknown as MachineDeployment

test.each([
  ['defaults', 3, {}, { maxSurge: 1, maxUnavailable: 0 }],
  ['numbers', 3, { maxSurge: 2, maxUnavailable: 1 }, { maxSurge: 2, maxUnavailable: 1 }],
  ['surge is rounded up', 3, { maxSurge: '10%' }, { maxSurge: 1, maxUnavailable: 0 }],
  ['unavailable is rounded down', 3, { maxUnavailable: '50%' }, { maxSurge: 1, maxUnavailable: 1 }],
  ['both 0: maxUnavailable becomes 1', 3, { maxSurge: '0%', maxUnavailable: '10%' }, { maxSurge: 0, maxUnavailable: 1 }],
  ['maxUnavailable is at most the replicas', 2, { maxUnavailable: 10 }, { maxSurge: 1, maxUnavailable: 2 }],
  ['without replicas, maxUnavailable is 0', 0, { maxSurge: 0, maxUnavailable: 0 }, { maxSurge: 0, maxUnavailable: 0 }],
])('maxSurge and maxUnavailable are computed from the strategy: %s', (_, replicas, rollingUpdate, expected) => {
  expect(fenceposts(aDeployment(replicas, rollingUpdate))).toEqual(expected)
})

test('maxSurge and maxUnavailable are 0 with the strategy OnDelete', () => {
  expect(fenceposts(aDeployment(3, { maxUnavailable: 2 }, 'OnDelete'))).toEqual({ maxSurge: 0, maxUnavailable: 0 })
})

test('rejects a value that is neither a number nor a percentage, with the name of the field', () => {
  expect(() => fenceposts(aDeployment(3, { maxSurge: 'many' }))).toThrow(
    'spec.rollout.strategy.rollingUpdate.maxSurge: Invalid value: "many": must be either an int or a percentage',
  )
})
