import type { Cluster, Machine, MachineSet } from '@capstan/api'
import { stateText } from '@capstan/testing'
import { describe, expect, test } from 'vitest'
import { unread } from '../external/observed.ts'
import type { MachineSetScope } from './scope.ts'
import { deletingCondition, reportStatus, scalingUpCondition } from './status.ts'

const now = Date.UTC(2026, 0, 2)
const aMachine = (name: string): Machine =>
  ({ kind: 'Machine', metadata: { name, creationTimestamp: '2026-01-01T00:00:00Z' }, spec: {} }) as unknown as Machine

function aScope(overrides: Partial<MachineSetScope> & { replicas?: number; deletionTimestamp?: string } = {}): MachineSetScope {
  const { replicas, deletionTimestamp, ...scope } = { replicas: 2, ...overrides }
  const spec = {
    ...(replicas === undefined ? {} : { replicas }),
    selector: { matchLabels: { app: 'a' } },
    template: {
      spec: { bootstrap: { configRef: { kind: 'DevConfigTemplate' } }, infrastructureRef: { kind: 'DevMachineTemplate' } },
    },
  }
  return {
    machineSet: {
      kind: 'MachineSet',
      metadata: { name: 's', generation: 1, ...(deletionTimestamp ? { deletionTimestamp } : {}) },
      spec,
    } as unknown as MachineSet,
    cluster: { spec: {} } as Cluster,
    machineDeployment: undefined,
    bootstrapTemplate: unread,
    infrastructureTemplate: unread,
    machines: [],
    preflightProblems: [],
    ...scope,
  }
}
const missing = { state: 'missing' } as const
const two = [aMachine('a'), aMachine('b')]

describe('ScalingDown', () => {
  const annotations = {
    'in-place-updates.internal.cluster.x-k8s.io/update-in-progress': '',
    'in-place-updates.internal.cluster.x-k8s.io/pending-acknowledge-move': '',
  }
  const moved = { ...aMachine('moved'), metadata: { ...aMachine('moved').metadata, annotations } }
  test.each([
    ['too many Machines', { machines: [...two, aMachine('c')] }, 'True ScalingDown: Scaling down from 3 to 2 replicas', 3],
    [
      'a moved Machine that the MachineDeployment has not acknowledged yet',
      { machines: [...two, moved] },
      'False NotScalingDown',
      3,
    ],
  ])('is computed from the state: %s', (_, overrides, text, replicas) => {
    const scope = aScope(overrides)
    reportStatus(scope, now)
    const condition = scope.machineSet.status!.conditions!.find(({ type }) => type === 'ScalingDown')!
    expect(stateText(condition)).toBe(text)
    expect(scope.machineSet.status!.replicas).toBe(replicas)
  })
})

describe('ScalingUp', () => {
  test.each([
    ['Machines could not be listed', { machines: undefined }, 'Unknown InternalError: Please check controller logs for errors'],
    ['replicas are not set', { replicas: undefined }, 'Unknown WaitingForReplicasSet: Waiting for spec.replicas set'],
    ['all Machines exist', { machines: two }, 'False NotScalingUp'],
    [
      'all Machines exist, a template does not',
      { machines: two, infrastructureTemplate: missing },
      'False NotScalingUp: Scaling up would be blocked because DevMachineTemplate does not exist',
    ],
    ['too few Machines', { machines: [two[0]!] }, 'True ScalingUp: Scaling up from 1 to 2 replicas'],
    [
      'blocked',
      { bootstrapTemplate: missing, infrastructureTemplate: missing, preflightProblems: ['not now'] },
      'True ScalingUp: Scaling up from 0 to 2 replicas is blocked because:\n* not now\n* DevConfigTemplate and DevMachineTemplate do not exist',
    ],
    ['deleting', { deletionTimestamp: '2026-01-02T00:00:00Z', infrastructureTemplate: missing }, 'False NotScalingUp'],
  ])('is computed from the state: %s', (_, overrides, text) => {
    expect(stateText(scalingUpCondition(aScope(overrides as Partial<MachineSetScope>)))).toBe(text)
  })
})

describe('Deleting', () => {
  const deletionTimestamp = '2026-01-02T00:00:00Z'
  test.each([
    ['not being deleted', {}, 'False NotDeleting'],
    [
      'Machines could not be listed',
      { deletionTimestamp, machines: undefined },
      'Unknown InternalError: Please check controller logs for errors',
    ],
    [
      'not being deleted, and Machines could not be listed',
      { machines: undefined },
      'Unknown InternalError: Please check controller logs for errors',
    ],
    ['one Machine', { deletionTimestamp, machines: [two[0]!] }, 'True Deleting: Deleting 1 Machine'],
    ['two Machines', { deletionTimestamp, machines: two }, 'True Deleting: Deleting 2 Machines'],
    ['no Machine left', { deletionTimestamp }, 'True Deleting: Deletion completed'],
  ])('is computed from the state: %s', (_, overrides, text) => {
    expect(stateText(deletingCondition(aScope(overrides as Partial<MachineSetScope>), now))).toBe(text)
  })
})

test('when Machines could not be listed, counts keep their values, and the selector is set', () => {
  const scope = aScope({ machines: undefined })
  scope.machineSet.status = { replicas: 7 }
  reportStatus(scope, now)
  expect(scope.machineSet.status).toMatchObject({ replicas: 7, selector: 'app=a' })
})
