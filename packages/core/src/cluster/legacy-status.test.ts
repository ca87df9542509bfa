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
const ready = (status: string, more: object = {}) => ({ conditions: [{ type: 'Ready', status, ...more }] })
const leaving = () => aCluster({ metadata: { deletionTimestamp }, status: initialized })
const at = (reason: ClusterScope['deletion']['reason']) => ({ reason, message: '' })

const aScope = (more: Partial<ClusterScope> = {}): ClusterScope => ({
  cluster: aCluster(),
  infrastructure: infra(provisioned),
  controlPlane: controlPlane(initialized),
  descendants: { machineDeployments: [], machinePools: [], machineSets: [], controlPlaneMachines: [], workerMachines: [] },
  deletion: at('InternalError'),
  ...more,
})

/** Formats conditions one per line: `Type False/Info Reason: message`. */
function told(scope: ClusterScope): string[] {
  const cluster = structuredClone(scope.cluster)
  reportLegacyStatus({ ...scope, cluster }, Date.UTC(2026, 0, 1, 1))
  return legacyConditionsOf(cluster).map(
    ({ type, status, severity, reason, message }) =>
      `${type} ${status}${severity ? `/${severity}` : ''}${reason ? ` ${reason}` : ''}${message ? `: ${message}` : ''}`,
  )
}

const noRefs = { infrastructureRef: undefined as never, controlPlaneRef: undefined as never }
const topology = { topology: { classRef: { name: 'class' }, version: 'v1.34.0' } }
const forProvider =
  'ControlPlaneInitialized False/Info WaitingForControlPlaneProviderInitialized: Waiting for control plane provider to indicate the control plane has been initialized'

test.each<[string, Partial<ClusterScope>, string[]]>([
  ['nothing could be read', { infrastructure: { state: 'unread' }, controlPlane: { state: 'unread' } }, []],
  [
    'the topology is to come',
    { cluster: aCluster({ spec: { ...noRefs, ...topology } }), infrastructure: none, controlPlane: none },
    [],
  ],
  ['its objects are to come', { infrastructure: missing, controlPlane: missing }, []],
  [
    'they say nothing yet',
    { infrastructure: infra(), controlPlane: controlPlane() },
    [
      'Ready False/Info WaitingForControlPlane',
      forProvider,
      'ControlPlaneReady False/Info WaitingForControlPlane',
      'InfrastructureReady False/Info WaitingForInfrastructure',
    ],
  ],
  [
    'the infrastructure stands',
    { controlPlane: controlPlane(ready('False', { severity: 'Warning', reason: 'ScalingUp', message: '0 of 3' })) },
    [
      'Ready False/Warning ScalingUp: 0 of 3',
      forProvider,
      'ControlPlaneReady False/Warning ScalingUp: 0 of 3',
      'InfrastructureReady True',
    ],
  ],
  [
    'all stand',
    { cluster: aCluster({ status: initialized }) },
    ['Ready True', 'ControlPlaneInitialized True', 'ControlPlaneReady True', 'InfrastructureReady True'],
  ],
  [
    'the control plane takes its word back',
    { cluster: aCluster({ status: initialized }), controlPlane: controlPlane() },
    [
      'Ready False/Info WaitingForControlPlane',
      'ControlPlaneInitialized True',
      'ControlPlaneReady False/Info WaitingForControlPlane',
      'InfrastructureReady True',
    ],
  ],
  [
    'no providers: the first Machine is to come',
    { cluster: aCluster({ spec: noRefs }), infrastructure: none, controlPlane: none },
    [
      'Ready True',
      'ControlPlaneInitialized False/Info MissingNodeRef: Waiting for the first control plane machine to have its status.nodeRef set',
      'InfrastructureReady True',
    ],
  ],
  [
    'no providers, and Machines could not be listed',
    { cluster: aCluster({ spec: noRefs }), infrastructure: none, controlPlane: none, descendants: undefined },
    ['Ready True', 'InfrastructureReady True'],
  ],
  [
    'deletion is asked for',
    { cluster: leaving(), deletion: at('WaitingForWorkersDeletion') },
    [
      'Ready False/Info Deleting',
      'ControlPlaneInitialized True',
      'ControlPlaneReady False/Info Deleting',
      'InfrastructureReady False/Info Deleting',
    ],
  ],
  [
    'the control plane is gone',
    { cluster: leaving(), controlPlane: missing, deletion: at('WaitingForInfrastructureDeletion') },
    [
      'Ready False/Info Deleted',
      'ControlPlaneInitialized True',
      'ControlPlaneReady False/Info Deleted',
      'InfrastructureReady False/Info Deleting',
    ],
  ],
  [
    'everything is gone',
    { cluster: leaving(), controlPlane: missing, infrastructure: missing, deletion: at('DeletionCompleted') },
    [
      'Ready False/Info Deleted',
      'ControlPlaneInitialized True',
      'ControlPlaneReady False/Info Deleted',
      'InfrastructureReady False/Info Deleted',
    ],
  ],
  [
    'the control plane went before its turn',
    { cluster: leaving(), controlPlane: missing, deletion: at('WaitingForWorkersDeletion') },
    ['Ready False/Info Deleting', 'ControlPlaneInitialized True', 'InfrastructureReady False/Info Deleting'],
  ],
])('%s', (_, scope, expected) => {
  expect(told(aScope(scope))).toEqual(expected)
})
