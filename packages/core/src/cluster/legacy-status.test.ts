import { legacyConditionsOf } from '@capstan/kube'
import { aCluster, aProviderObject, foundObject } from '@capstan/testing'
import { expect, test } from 'vitest'
import { reportLegacyStatus } from './legacy-status.ts'
import type { ClusterScope } from './scope.ts'

const deletionTimestamp = '2026-01-01T00:00:00Z'
const missing = { state: 'missing' } as const
const none = { state: 'none' } as const

const infra = (status: object = {}) => foundObject(aProviderObject('DevCluster', { status }))
const controlPlane = (status: object = {}, metadata: object = {}) =>
  foundObject(aProviderObject('DevControlPlane', { group: 'controlplane.example.com', status, metadata }))
const provisioned = { initialization: { provisioned: true } }
const initialized = { initialization: { controlPlaneInitialized: true } }
const ready = (status: string, overrides: object = {}) => ({ conditions: [{ type: 'Ready', status, ...overrides }] })
const deletingCluster = () => aCluster({ metadata: { deletionTimestamp }, status: initialized })
const inStage = (reason: ClusterScope['deletion']['reason']) => ({ reason, message: '' })

const aScope = (overrides: Partial<ClusterScope> = {}): ClusterScope => ({
  cluster: aCluster(),
  infrastructure: infra(provisioned),
  controlPlane: controlPlane(initialized),
  descendants: { machineDeployments: [], machinePools: [], machineSets: [], controlPlaneMachines: [], workerMachines: [] },
  deletion: inStage('InternalError'),
  ...overrides,
})

/** Returns the computed conditions as texts such as `Type False/Info Reason: message`. */
function reported(scope: ClusterScope): string[] {
  const cluster = structuredClone(scope.cluster)
  reportLegacyStatus({ ...scope, cluster }, Date.UTC(2026, 0, 1, 1))
  return legacyConditionsOf(cluster).map(
    ({ type, status, severity, reason, message }) =>
      `${type} ${status}${severity ? `/${severity}` : ''}${reason ? ` ${reason}` : ''}${message ? `: ${message}` : ''}`,
  )
}

const noRefs = { infrastructureRef: undefined as never, controlPlaneRef: undefined as never }
const topology = { topology: { classRef: { name: 'class' }, version: 'v1.34.0' } }
const waitingForProvider =
  'ControlPlaneInitialized False/Info WaitingForControlPlaneProviderInitialized: Waiting for control plane provider to indicate the control plane has been initialized'

test.each<[string, Partial<ClusterScope>, string[]]>([
  ['objects could not be read', { infrastructure: { state: 'unread' }, controlPlane: { state: 'unread' } }, []],
  [
    'the objects of the topology were not created yet',
    { cluster: aCluster({ spec: { ...noRefs, ...topology } }), infrastructure: none, controlPlane: none },
    [],
  ],
  ['the referenced objects do not exist yet', { infrastructure: missing, controlPlane: missing }, []],
  [
    'the objects have no status yet',
    { infrastructure: infra(), controlPlane: controlPlane() },
    [
      'Ready False/Info WaitingForControlPlane',
      waitingForProvider,
      'ControlPlaneReady False/Info WaitingForControlPlane',
      'InfrastructureReady False/Info WaitingForInfrastructure',
    ],
  ],
  [
    'the fields of status.initialization are not booleans',
    {
      infrastructure: infra({ initialization: { provisioned: 'yes' } }),
      controlPlane: controlPlane({ initialization: { controlPlaneInitialized: 'yes' } }),
    },
    [],
  ],
  [
    'only the infrastructure is ready',
    { controlPlane: controlPlane(ready('False', { severity: 'Warning', reason: 'ScalingUp', message: '0 of 3' })) },
    [
      'Ready False/Warning ScalingUp: 0 of 3',
      waitingForProvider,
      'ControlPlaneReady False/Warning ScalingUp: 0 of 3',
      'InfrastructureReady True',
    ],
  ],
  [
    'all are ready',
    { cluster: aCluster({ status: initialized }) },
    ['Ready True', 'ControlPlaneInitialized True', 'ControlPlaneReady True', 'InfrastructureReady True'],
  ],
  [
    'the control plane no longer reports that it is initialized',
    { cluster: aCluster({ status: initialized }), controlPlane: controlPlane() },
    [
      'Ready False/Info WaitingForControlPlane',
      'ControlPlaneInitialized True',
      'ControlPlaneReady False/Info WaitingForControlPlane',
      'InfrastructureReady True',
    ],
  ],
  [
    'without providers, before the first Machine',
    { cluster: aCluster({ spec: noRefs }), infrastructure: none, controlPlane: none },
    [
      'Ready True',
      'ControlPlaneInitialized False/Info MissingNodeRef: Waiting for the first control plane machine to have its status.nodeRef set',
      'InfrastructureReady True',
    ],
  ],
  [
    'without providers, when Machines could not be listed',
    { cluster: aCluster({ spec: noRefs }), infrastructure: none, controlPlane: none, descendants: undefined },
    ['Ready True', 'InfrastructureReady True'],
  ],
  [
    'the Cluster is being deleted',
    { cluster: deletingCluster(), deletion: inStage('WaitingForWorkersDeletion') },
    [
      'Ready False/Info Deleting',
      'ControlPlaneInitialized True',
      'ControlPlaneReady False/Info Deleting',
      'InfrastructureReady False/Info Deleting',
    ],
  ],
  [
    'the control plane was deleted',
    { cluster: deletingCluster(), controlPlane: missing, deletion: inStage('WaitingForInfrastructureDeletion') },
    [
      'Ready False/Info Deleted',
      'ControlPlaneInitialized True',
      'ControlPlaneReady False/Info Deleted',
      'InfrastructureReady False/Info Deleting',
    ],
  ],
  [
    'all objects were deleted',
    { cluster: deletingCluster(), controlPlane: missing, infrastructure: missing, deletion: inStage('DeletionCompleted') },
    [
      'Ready False/Info Deleted',
      'ControlPlaneInitialized True',
      'ControlPlaneReady False/Info Deleted',
      'InfrastructureReady False/Info Deleted',
    ],
  ],
  [
    'the control plane was deleted before the workers',
    { cluster: deletingCluster(), controlPlane: missing, deletion: inStage('WaitingForWorkersDeletion') },
    ['Ready False/Info Deleting', 'ControlPlaneInitialized True', 'InfrastructureReady False/Info Deleting'],
  ],
])('v1beta1 conditions are computed from the state: %s', (_, scope, expected) => {
  expect(reported(aScope(scope))).toEqual(expected)
})
