import type { Machine } from '@capstan/api'
import { stateText } from '@capstan/testing'
import { describe, expect, test } from 'vitest'
import {
  longDeletion,
  machineCounts,
  machinesReadyCondition,
  machinesUpToDateCondition,
  missingTemplates,
  nextReport,
  remediatingCondition,
  scalingDownCondition,
} from './machines-report.ts'

const now = Date.UTC(2026, 0, 2)
const ago = (minutes: number) => new Date(now - minutes * 60_000).toISOString()

type Reported = Record<string, 'True' | 'False' | [status: 'True' | 'False', reason: string, message: string]>
function aMachine(
  name: string,
  reported: Reported = {},
  overrides: { metadata?: object; spec?: object; status?: object } = {},
): Machine {
  const conditions = Object.entries(reported).map(([type, value]) => {
    const [status, reason, message] = typeof value === 'string' ? [value, type, ''] : value
    return { type, status, reason, message, lastTransitionTime: ago(30) }
  })
  return {
    kind: 'Machine',
    metadata: { name, creationTimestamp: ago(60), ...overrides.metadata },
    spec: overrides.spec ?? {},
    status: { conditions, ...overrides.status },
  } as unknown as Machine
}
test('Machines that are being updated in place count only as replicas', () => {
  const updating = { metadata: { annotations: { 'in-place-updates.internal.cluster.x-k8s.io/update-in-progress': '' } } }
  const healthy = { Ready: 'True', Available: 'True', UpToDate: 'True' } as const
  expect(machineCounts([aMachine('a', healthy), aMachine('b', { Ready: 'True' }), aMachine('c', healthy, updating)])).toEqual({
    replicas: 3,
    readyReplicas: 2,
    availableReplicas: 1,
    upToDateReplicas: 1,
  })
})

describe('reports the condition', () => {
  const unhealthy: Reported = { HealthCheckSucceeded: 'False' }
  const inRemediation: Reported = { ...unhealthy, OwnerRemediated: ['False', 'MachineDeleting', 'Machine is deleting'] }
  test.each([
    [
      'MachinesReady when the Machines could not be listed',
      machinesReadyCondition(undefined),
      'Unknown InternalError: Please check controller logs for errors',
    ],
    ['MachinesReady without Machines', machinesReadyCondition([]), 'True NoReplicas'],
    ['MachinesReady when all Machines are ready', machinesReadyCondition([aMachine('a', { Ready: 'True' })]), 'True Ready'],
    [
      'MachinesReady when a Machine is not ready',
      machinesReadyCondition([aMachine('a', { Ready: ['False', 'x', 'why'] }), aMachine('b', { Ready: 'True' })]),
      'False NotReady: * Machine a: why',
    ],
    [
      'MachinesUpToDate for a new Machine without condition',
      machinesUpToDateCondition([aMachine('a', {}, { metadata: { creationTimestamp: ago(0.1) } })], now),
      'True NoReplicas',
    ],
    [
      'MachinesUpToDate for an old Machine without condition',
      machinesUpToDateCondition([aMachine('a')], now),
      'Unknown UpToDateUnknown: * Machine a: Condition UpToDate not yet reported',
    ],
    [
      'MachinesUpToDate for an outdated Machine',
      machinesUpToDateCondition([aMachine('a', { UpToDate: ['False', 'x', '* Version v1, v2 required'] })], now),
      'False NotUpToDate: * Machine a:\n  * Version v1, v2 required',
    ],
    ['Remediating when all Machines are healthy', remediatingCondition([aMachine('a')], 'MachineSet'), 'False NotRemediating'],
    [
      'Remediating for an unhealthy Machine that the owner does not remediate',
      remediatingCondition([aMachine('a', unhealthy)], 'MachineSet'),
      'False NotRemediating: Machine a is not healthy (not to be remediated by MachineSet)',
    ],
    [
      'Remediating for many unhealthy Machines that the owner does not remediate',
      remediatingCondition(
        ['e', 'd', 'c', 'b', 'a'].map((name) => aMachine(name, unhealthy)),
        'MachineDeployment/MachineSet',
      ),
      'False NotRemediating: Machines a, b, c, ... (2 more) are not healthy (not to be remediated by MachineDeployment/MachineSet)',
    ],
    [
      'Remediating for a Machine that the owner remediates',
      remediatingCondition([aMachine('a', inRemediation)], 'MachineSet'),
      'True Remediating: * Machine a: Machine is deleting',
    ],
    [
      'ScalingDown without spec.replicas',
      scalingDownCondition({ current: 1, desired: undefined }, [], now),
      'Unknown WaitingForReplicasSet: Waiting for spec.replicas set',
    ],
    ['ScalingDown when no Machine is surplus', scalingDownCondition({ current: 1, desired: 1 }, [], now), 'False NotScalingDown'],
    [
      'ScalingDown during a long deletion',
      scalingDownCondition({ current: 2, desired: 1 }, [aMachine('a', {}, { metadata: { deletionTimestamp: ago(16) } })], now),
      'True ScalingDown: Scaling down from 2 to 1 replicas\n* Machine a is in deletion since more than 15m',
    ],
  ])('%s', (_, condition, text) => {
    expect(stateText(condition)).toBe(text)
  })
})

test('reports deletions of more than 15 minutes with likely causes, and no shorter deletion', () => {
  const drain = (message: string): Reported => ({ Deleting: ['True', 'DrainingNode', message] })
  const late = { metadata: { deletionTimestamp: ago(20) }, status: { deletion: { nodeDrainStartTime: ago(10) } } }
  const stuck = (name: string, message: string): Machine => {
    const machine = aMachine(name, drain(message), { metadata: late.metadata })
    return { ...machine, status: { ...machine.status, ...late.status } } as Machine
  }
  const budget = "* Pod a: cannot evict pod as it would violate the pod's disruption budget."
  expect(longDeletion([stuck('b', '* Pod x: waiting for completion'), stuck('a', budget)], now)).toBe(
    'Machines a, b are in deletion since more than 15m, delay likely due to PodDisruptionBudgets, Pods not completed yet',
  )
  expect(longDeletion([aMachine('a', {}, { metadata: { deletionTimestamp: ago(10) } })], now)).toBe('')
})

test.each([
  ['is not scheduled when no state depends on time', [aMachine('a', { UpToDate: 'True' })], undefined],
  [
    'is scheduled for a new Machine without UpToDate condition',
    [aMachine('a', {}, { metadata: { creationTimestamp: ago(0) } })],
    10_000,
  ],
  [
    'is scheduled for the time at which a deletion counts as long',
    [aMachine('a', { UpToDate: 'True' }, { metadata: { deletionTimestamp: ago(5) } })],
    10 * 60_000 + 1000,
  ],
])('the next report %s', (_, machines, delay) => {
  expect(nextReport(machines, now)).toBe(delay === undefined ? undefined : now + delay)
})

test.each([
  [[], ''],
  [['ATemplate'], 'ATemplate does not exist'],
  [['ATemplate', 'BTemplate'], 'ATemplate and BTemplate do not exist'],
])('formats the kinds of missing templates: %j', (kinds, text) => {
  expect(missingTemplates(kinds)).toBe(text)
})
