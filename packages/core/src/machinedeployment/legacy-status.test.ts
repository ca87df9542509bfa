import type { LegacyCondition, MachineSet } from '@capstan/api'
import { legacyConditionsOf } from '@capstan/kube'
import { aCluster, aMachine, aMachineDeployment, aMachineSet } from '@capstan/testing'
import { expect, test } from 'vitest'
import { unread } from '../external/observed.ts'
import { reportLegacyStatus } from './legacy-status.ts'
import type { MachineDeploymentScope } from './scope.ts'

const time = '2026-01-01T00:00:00Z'
const ready: LegacyCondition = { type: 'Ready', status: 'True', lastTransitionTime: time }
const scaling: LegacyCondition = { ...ready, status: 'False', severity: 'Warning', reason: 'ScalingUp', message: 'Scaling up' }

interface Given {
  replicas: number
  /** `spec.replicas`. Default: `replicas`. */
  wanted?: number
  ready?: number
  /** `status.deprecated.v1beta1.availableReplicas`. Default: 0. */
  available?: number
  /** `status.availableReplicas`. Default: `available`. */
  availableMachines?: number
  version?: string
  condition?: LegacyCondition
}
const aSet = (name: string, given: Given): MachineSet =>
  aMachineSet({
    metadata: { name },
    spec: {
      replicas: given.wanted ?? given.replicas,
      template: { spec: { ...aMachine().spec, version: given.version ?? 'v1.34.0' } },
    },
    status: {
      replicas: given.replicas,
      availableReplicas: given.availableMachines ?? given.available ?? 0,
      deprecated: {
        v1beta1: {
          readyReplicas: given.ready ?? 0,
          availableReplicas: given.available ?? 0,
          ...(given.condition ? { conditions: [given.condition] } : {}),
        },
      },
    },
  })

const aScope = (
  sets: MachineSet[] | undefined,
  { replicas = 3, maxUnavailable = 0, deleting = false }: { replicas?: number; maxUnavailable?: number; deleting?: boolean } = {},
): MachineDeploymentScope => ({
  machineDeployment: aMachineDeployment({
    metadata: deleting ? { deletionTimestamp: time } : {},
    spec: { replicas, rollout: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable } } } },
  }),
  cluster: aCluster(),
  bootstrapTemplate: unread,
  infrastructureTemplate: unread,
  machineSets: sets,
  machines: [],
})

function reported(scope: MachineDeploymentScope): string[] {
  reportLegacyStatus(scope, Date.UTC(2026, 0, 1, 1))
  const { updatedReplicas, readyReplicas, availableReplicas, unavailableReplicas } =
    scope.machineDeployment.status?.deprecated?.v1beta1 ?? {}
  const counts = [updatedReplicas, readyReplicas, availableReplicas, unavailableReplicas]
  return [
    ...(counts.every((count) => count === undefined) ? [] : [counts.join(' ')]),
    ...legacyConditionsOf(scope.machineDeployment).map(
      ({ type, status, severity, reason, message }) =>
        `${type} ${status}${severity ? `/${severity}` : ''}${reason ? ` ${reason}` : ''}${message ? `: ${message}` : ''}`,
    ),
  ]
}

const available = aSet('now', { replicas: 3, ready: 3, available: 3, condition: ready })
const minimum = (least: number, current: number) =>
  `False/Warning WaitingForAvailableMachines: Minimum availability requires ${least} replicas, current ${current} available`

test.each<[string, MachineDeploymentScope, string[]]>([
  ['nothing if the MachineSets could not be listed', aScope(undefined), []],
  ['nothing while the MachineDeployment is being deleted', aScope([available], { deleting: true }), []],
  [
    'no MachineSet yet',
    aScope([]),
    [
      '0 0 0 0',
      `Ready ${minimum(3, 0)}`,
      `Available ${minimum(3, 0)}`,
      'MachineSetReady False/Info WaitingForMachineSet: MachineSet not found',
    ],
  ],
  [
    'a MachineSet without conditions',
    aScope([aSet('now', { replicas: 0 })]),
    ['0 0 0 0', `Ready ${minimum(3, 0)}`, `Available ${minimum(3, 0)}`, 'MachineSetReady False/Info WaitingForMachineSet'],
  ],
  [
    'the v1beta1 count decides the condition Available, but the message has the v1beta2 count',
    aScope([aSet('now', { replicas: 3, ready: 2, available: 2, availableMachines: 3, condition: scaling })]),
    ['3 2 2 1', `Ready ${minimum(3, 3)}`, `Available ${minimum(3, 3)}`, 'MachineSetReady False/Warning ScalingUp: Scaling up'],
  ],
  [
    'replicas that do not exist yet are unavailable; replicas that are being deleted are not counted',
    aScope([
      aSet('before', { replicas: 3, wanted: 0, version: 'v1.33.0' }),
      aSet('now', { replicas: 0, wanted: 2, condition: scaling }),
    ]),
    ['0 0 0 2', `Ready ${minimum(3, 0)}`, `Available ${minimum(3, 0)}`, 'MachineSetReady False/Warning ScalingUp: Scaling up'],
  ],
  ['all replicas are available', aScope([available]), ['3 3 3 0', 'Ready True', 'Available True', 'MachineSetReady True']],
  [
    'during a rollout, with enough available replicas',
    aScope(
      [
        aSet('before', { replicas: 2, ready: 2, available: 1, version: 'v1.33.0', condition: ready }),
        aSet('now', { replicas: 1, ready: 1, available: 1, condition: scaling }),
      ],
      { maxUnavailable: 1 },
    ),
    ['1 3 2 1', 'Ready True', 'Available True', 'MachineSetReady False/Warning ScalingUp: Scaling up'],
  ],
])('reports the v1beta1 status: %s', (_, scope, expected) => {
  expect(reported(scope)).toEqual(expected)
})
