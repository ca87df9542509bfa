import type { Machine, MachineSet } from '@capstan/api'
import { describe, expect, test } from 'vitest'
import { selectMoves, isAcknowledged, surplus } from './plan-moves.ts'

const prefix = 'in-place-updates.internal.cluster.x-k8s.io'
const moved = { [`${prefix}/update-in-progress`]: '', [`${prefix}/pending-acknowledge-move`]: '' }

const aSet = (annotations: Record<string, string> = {}): MachineSet =>
  ({ metadata: { name: 'new', annotations }, spec: {} }) as unknown as MachineSet
const receiving = (acknowledged = '') =>
  aSet({ [`${prefix}/receive-machines-from-machinesets`]: 'a,b', [`${prefix}/acknowledged-move`]: acknowledged })

const aMachine = (name: string, { status = {}, ...metadata }: { status?: object; [field: string]: unknown } = {}): Machine =>
  ({
    metadata: { name, creationTimestamp: '2026-01-01T00:00:00Z', ...metadata },
    status: { nodeRef: { name }, ...status },
  }) as unknown as Machine
const arrived = aMachine('arrived', { annotations: moved })
const [m1, m2, m3] = [aMachine('m1'), aMachine('m2'), aMachine('m3')]

describe('the surplus of a set', () => {
  test.each([
    ['is the number of Machines beyond its replicas', aSet(), [m1, m2, m3], 1, 2],
    ['is 0 when it has fewer Machines than replicas', aSet(), [m1], 3, 0],
    ['excludes moved Machines that the MachineDeployment has not counted yet', receiving(), [m1, m2, arrived], 1, 1],
    ['is 0 when only moved Machines that are not counted yet exceed the replicas', receiving(), [m1, arrived], 1, 0],
    ['includes moved Machines when the set expects no more moves', aSet(), [m1, arrived], 1, 1],
  ])('%s', (_, set, machines, replicas, count) => {
    expect(surplus(set, machines, replicas)).toBe(count)
  })
})

describe('an update begins', () => {
  test.each([
    ['not before the MachineDeployment has counted the Machine', receiving(), arrived, false],
    ['when the MachineDeployment has counted the Machine', receiving('other,arrived'), arrived, true],
    ['when the set expects no more moves', aSet(), arrived, true],
    ['for a Machine that awaits no acknowledgement', receiving(), m1, true],
  ])('%s', (_, set, machine, expected) => {
    expect(isAcknowledged(set, machine)).toBe(expected)
  })
})

describe('from an old set', () => {
  const deleting = aMachine('deleting', { deletionTimestamp: '2026-01-02T00:00:00Z' })
  const pending = aMachine('pending', { annotations: { 'runtime.cluster.x-k8s.io/pending-hooks': 'UpdateMachine' } })
  const marked = aMachine('z-marked', { annotations: { 'cluster.x-k8s.io/delete-machine': '' } })
  const withoutNode = aMachine('without-node', { status: { nodeRef: undefined } })
  const sick = aMachine('sick', {
    status: {
      conditions: [
        { type: 'HealthCheckSucceeded', status: 'False' },
        { type: 'OwnerRemediated', status: 'False' },
      ],
    },
  })
  const unhealthy = aMachine('unhealthy', { status: { conditions: [{ type: 'HealthCheckSucceeded', status: 'False' }] } })
  test.each([
    ['as many Machines move as exceed its replicas', [m1, m2, m3], 2, ['m1', 'm2'], []],
    ['Machines that users marked for deletion move first', [m1, m2, marked], 2, ['z-marked', 'm1'], []],
    ['Machines being deleted count as moved', [m1, m2, deleting], 2, ['m1'], []],
    ['Machines still being updated stay, and others move', [m1, m2, pending, arrived], 2, ['m1', 'm2'], []],
    ['Machines without a Node stay', [m1, withoutNode], 2, ['m1'], []],
    ['Machines to be remediated are deleted instead', [m1, m2, sick], 2, ['m1'], ['sick']],
    ['Machines that are only unhealthy move', [m1, unhealthy], 1, ['unhealthy'], []],
    ['no Machine moves or is deleted when there is no surplus', [m1, sick], 0, [], []],
  ])('%s', (_, machines, count, move, remove) => {
    const selected = selectMoves(machines, count, 'Oldest', Date.UTC(2026, 0, 3))
    const names = (list: readonly Machine[]) => list.map(({ metadata }) => metadata.name)
    expect([names(selected.move), names(selected.remove)]).toEqual([move, remove])
  })
})
