import type { Machine } from '@capstan/api'
import { describe, expect, test } from 'vitest'
import { deletionPriority, machinesToDelete } from './deletion-priority.ts'

const now = Date.UTC(2026, 0, 11)
const day = 86_400_000

function aMachine(name: string, overrides: { age?: number; metadata?: object; status?: object } = {}): Machine {
  const creationTimestamp = new Date(now - (overrides.age ?? 0)).toISOString()
  return {
    metadata: { name, creationTimestamp, ...overrides.metadata },
    status: { nodeRef: { name }, ...overrides.status },
  } as unknown as Machine
}
const falseCondition = (type: string) => ({
  conditions: [{ type, status: 'False', reason: 'x', message: '', lastTransitionTime: '' }],
})

describe('priority', () => {
  test.each([
    [
      'that is being deleted',
      { metadata: { deletionTimestamp: '2026-01-10T00:00:00Z', annotations: { 'cluster.x-k8s.io/delete-machine': '' } } },
      100,
    ],
    ['that a user has marked', { metadata: { annotations: { 'cluster.x-k8s.io/delete-machine': '' } } }, 80],
    [
      'that is being updated in place',
      { metadata: { annotations: { 'in-place-updates.internal.cluster.x-k8s.io/update-in-progress': '' } } },
      75,
    ],
    ['without a Node', { status: { nodeRef: undefined } }, 50],
    ['with an unhealthy Node', { status: falseCondition('NodeHealthy') }, 50],
    ['that failed its health check', { status: falseCondition('HealthCheckSucceeded') }, 50],
    ['that is healthy', {}, 20],
  ])('of a Machine %s', (_, overrides, priority) => {
    expect(deletionPriority(aMachine('m', overrides), 'Random', now)).toBe(priority)
  })

  test.each([
    ['Oldest', 0, 0],
    ['Oldest', 10 * day, 31.6],
    ['Oldest', 1000 * day, 50],
    ['Newest', 0, 50],
    ['Newest', 10 * day, 18.4],
    ['Newest', 1000 * day, 0],
  ] as const)('in the order %s of a Machine that is %d ms old', (order, age, priority) => {
    expect(deletionPriority(aMachine('m', { age }), order, now)).toBeCloseTo(priority, 1)
  })
})

test.each([
  ['Machines of equal priority by name', 'Random', ['a', 'b']],
  ['the oldest Machines first', 'Oldest', ['c', 'b']],
  ['the newest Machines first', 'Newest', ['a', 'b']],
] as const)('machinesToDelete returns %s', (_, order, expected) => {
  const machines = [aMachine('c', { age: 3 * day }), aMachine('a', { age: 1 * day }), aMachine('b', { age: 2 * day })]
  expect(machinesToDelete(machines, 2, order, now).map(({ metadata }) => metadata.name)).toEqual(expected)
})
