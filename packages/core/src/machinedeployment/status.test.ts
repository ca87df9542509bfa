import type { Cluster, Machine, MachineDeployment, MachineSet } from '@capstan/api'
import { aMachineSet, stateText } from '@capstan/testing'
import { describe, expect, test } from 'vitest'
import { unread } from '../external/observed.ts'
import type { MachineDeploymentScope } from './scope.ts'
import { availableCondition, deletingCondition, reportStatus, rollingOutCondition, scalingUpCondition } from './status.ts'

const now = Date.UTC(2026, 0, 2)
const deletionTimestamp = '2026-01-02T00:00:00Z'

interface Given {
  replicas?: number | undefined
  maxUnavailable?: number | string
  /** Type of the rollout strategy. */
  type?: string
  deletionTimestamp?: string
  /** Status of each MachineSet; `undefined` when the sets could not be listed. */
  sets?: Partial<NonNullable<MachineSet['status']>>[] | undefined
  /** For each Machine, the message of its UpToDate condition; an empty message when the Machine is up to date. */
  machines?: string[]
  /** Whether the infrastructure template is missing. */
  missing?: boolean
}

const aSet = (name: string, status: NonNullable<MachineSet['status']>): MachineSet => aMachineSet({ metadata: { name }, status })

function aScope(given: Given = {}): MachineDeploymentScope {
  const {
    replicas,
    maxUnavailable = 0,
    type = 'RollingUpdate',
    sets,
    machines: messages = [],
    missing,
  } = { replicas: 3, sets: [{}], ...given }
  const machines = messages.map((message, index) => ({
    kind: 'Machine',
    metadata: { name: `m${index}`, creationTimestamp: '2026-01-01T00:00:00Z' },
    status: {
      conditions: [{ type: 'UpToDate', status: message === '' ? 'True' : 'False', reason: 'x', message, lastTransitionTime: '' }],
    },
  }))
  return {
    machineDeployment: {
      kind: 'MachineDeployment',
      metadata: { name: 'd', generation: 1, ...(given.deletionTimestamp ? { deletionTimestamp } : {}) },
      spec: {
        ...(replicas === undefined ? {} : { replicas }),
        selector: {},
        rollout: { strategy: { type, rollingUpdate: { maxSurge: 1, maxUnavailable } } },
        template: { spec: { bootstrap: {}, infrastructureRef: { kind: 'DevMachineTemplate' } } },
      },
    } as unknown as MachineDeployment,
    cluster: { spec: {} } as Cluster,
    bootstrapTemplate: unread,
    infrastructureTemplate: missing ? { state: 'missing' } : unread,
    machineSets: sets?.map((status, index) => aSet(`s${index}`, status)),
    machines: sets && (machines as unknown as Machine[]),
  }
}
describe('Available', () => {
  test.each([
    ['sets could not be listed', { sets: undefined }, 'Unknown InternalError: Please check controller logs for errors'],
    ['replicas are not set', { replicas: undefined }, 'Unknown WaitingForReplicasSet: Waiting for spec.replicas set'],
    ['all replicas are available', { sets: [{ availableReplicas: 1 }, { availableReplicas: 2 }] }, 'True Available'],
    [
      'no more replicas than maxUnavailable are unavailable',
      { sets: [{ availableReplicas: 2 }], maxUnavailable: 1 },
      'True Available',
    ],
    [
      'too few replicas are available',
      { sets: [{ availableReplicas: 1 }], maxUnavailable: '50%' },
      'False NotAvailable: 1 available replicas, at least 2 required (spec.strategy.rollout.maxUnavailable is 50%, spec.replicas is 3)',
    ],
    [
      'too few replicas are available, OnDelete',
      { sets: [{ availableReplicas: 1 }], type: 'OnDelete' },
      'False NotAvailable: 1 available replicas, at least 3 required',
    ],
    [
      'too few replicas are available, deleting',
      { sets: [{ availableReplicas: 2 }], deletionTimestamp },
      'False NotAvailable: Deletion in progress',
    ],
    ['all replicas are available, deleting', { sets: [{ availableReplicas: 3 }], deletionTimestamp }, 'True Available'],
    ['no counts yet', { sets: [{}] }, 'Unknown WaitingForAvailableReplicasSet: Waiting for status.availableReplicas set'],
    [
      'maxUnavailable is invalid',
      { sets: [{ availableReplicas: 3 }], maxUnavailable: 'many' },
      'Unknown InternalError: Please check controller logs for errors',
    ],
  ] as [string, Given, string][])('is computed from the state: %s', (_, given, text) => {
    const { machineDeployment, machineSets } = aScope(given)
    expect(stateText(availableCondition(machineDeployment, machineSets))).toBe(text)
  })
})

describe('RollingOut', () => {
  test.each([
    ['all Machines are up to date', { machines: ['', ''] }, 'False NotRollingOut'],
    [
      'some Machines are outdated; the message has each reason once, the version first',
      {
        machines: [
          '* DevMachine is not up-to-date\n* Version v1, v2 required',
          '',
          '* Failure domain a, b required\n* Version v1, v2 required',
        ],
      },
      'True RollingOut: Rolling out 2 not up-to-date replicas\n* Version v1, v2 required\n* DevMachine is not up-to-date\n* Failure domain a, b required',
    ],
  ] as [string, Given, string][])('is computed from the state: %s', (_, given, text) => {
    expect(stateText(rollingOutCondition(aScope(given)))).toBe(text)
  })
})

describe('ScalingUp', () => {
  test.each([
    ['all replicas exist', { sets: [{ replicas: 3 }] }, 'False NotScalingUp'],
    [
      'all replicas exist, template missing',
      { sets: [{ replicas: 3 }], missing: true },
      'False NotScalingUp: Scaling up would be blocked because DevMachineTemplate does not exist',
    ],
    ['too few replicas', { sets: [{ replicas: 1 }] }, 'True ScalingUp: Scaling up from 1 to 3 replicas'],
    [
      'too few replicas, template missing',
      { sets: [{ replicas: 1 }], missing: true },
      'True ScalingUp: Scaling up from 1 to 3 replicas is blocked because DevMachineTemplate does not exist',
    ],
  ] as [string, Given, string][])('is computed from the state: %s', (_, given, text) => {
    expect(stateText(scalingUpCondition(aScope(given)))).toBe(text)
  })
})

describe('Deleting', () => {
  test.each([
    ['not being deleted', {}, 'False NotDeleting'],
    ['Machines remain', { deletionTimestamp, machines: [''] }, 'True Deleting: Deleting 1 Machine'],
    ['only MachineSets remain', { deletionTimestamp, sets: [{}, {}] }, 'True Deleting: Deleting 2 MachineSets'],
    ['no MachineSet remains', { deletionTimestamp, sets: [] }, 'True Deleting: Deletion completed'],
  ] as [string, Given, string][])('is computed from the state: %s', (_, given, text) => {
    expect(stateText(deletingCondition(aScope(given), now))).toBe(text)
  })
})

test.each([
  ['Unknown', 'sets could not be listed', { sets: undefined }],
  ['Unknown', 'replicas are not set', { replicas: undefined }],
  ['ScalingUp', 'too few replicas exist', { sets: [{ replicas: 1 }] }],
  ['Running', 'all replicas exist', { sets: [{ replicas: 1 }, { replicas: 2 }] }],
  ['ScalingDown', 'too many replicas exist', { sets: [{ replicas: 4 }] }],
  ['ScalingDown', 'the MachineDeployment is being deleted', { deletionTimestamp, sets: [] }],
] as [string, string, Given][])('the phase is %s: %s', (phase, _, given) => {
  const scope = aScope(given)
  reportStatus(scope, now)
  expect(scope.machineDeployment.status?.phase).toBe(phase)
})

test('counts are the sums of the counts of the sets, also for each version', () => {
  const scope = aScope({
    sets: [
      {
        replicas: 2,
        readyReplicas: 2,
        availableReplicas: 1,
        upToDateReplicas: 0,
        versions: [
          { version: 'v1.34.0', replicas: 1 },
          { version: 'v1.35.0', replicas: 1 },
        ],
      },
      {
        replicas: 1,
        readyReplicas: 1,
        availableReplicas: 1,
        upToDateReplicas: 1,
        versions: [{ version: 'v1.35.0', replicas: 1 }],
      },
    ],
  })
  reportStatus(scope, now)
  expect(scope.machineDeployment.status).toMatchObject({
    replicas: 3,
    readyReplicas: 3,
    availableReplicas: 2,
    upToDateReplicas: 1,
    versions: [
      { version: 'v1.34.0', replicas: 1 },
      { version: 'v1.35.0', replicas: 2 },
    ],
  })
})
