import type { Cluster, Machine } from '@capstan/api'
import type { NewCondition } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import type { LocalControlPlane } from '../kinds/local-control-plane.ts'
import type { ControlPlaneScope } from './scope.ts'
import { controlPlaneConditions, controlPlaneCounters } from './status.ts'

const metadata = (name: string) => ({
  name,
  namespace: 'default',
  uid: name,
  resourceVersion: '1',
  creationTimestamp: '2026-01-01T00:00:00Z',
})
const ref = (name: string) => ({ apiGroup: 'infrastructure.capstan.dev', kind: 'LocalMachineTemplate', name })

const aMachine = (name: string, ready = true, version = 'v1.36.0'): Machine => ({
  apiVersion: 'cluster.x-k8s.io/v1beta2',
  kind: 'Machine',
  metadata: { ...metadata(name), labels: { 'cluster.x-k8s.io/control-plane': '' } },
  spec: { clusterName: 'demo', version, bootstrap: {}, infrastructureRef: ref(name) },
  status: {
    ...(ready ? { nodeRef: { name } } : {}),
    conditions: ['NodeReady', 'Ready', 'Available'].map((type) => ({
      type,
      status: ready ? 'True' : 'False',
      reason: 'X',
      message: ready ? '' : 'booting',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    })),
  },
})

type ScopeFields = Partial<Omit<ControlPlaneScope, 'controlPlane' | 'cluster' | 'machines'>> & {
  replicas?: number
  initialized?: boolean
  deleting?: boolean
  machines?: Machine[]
  outdated?: Record<string, string[]>
}

const aScope = ({
  replicas = 3,
  initialized = true,
  deleting = false,
  machines = [],
  outdated = {},
  ...overrides
}: ScopeFields = {}): ControlPlaneScope => ({
  controlPlane: {
    apiVersion: 'controlplane.capstan.dev/v1alpha1',
    kind: 'LocalControlPlane',
    metadata: { ...metadata('demo'), ...(deleting ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}) },
    spec: { replicas, version: 'v1.36.0', machineTemplate: { spec: { infrastructureRef: ref('demo') } } },
    status: initialized ? { initialization: { controlPlaneInitialized: true } } : {},
  } satisfies LocalControlPlane,
  cluster: { apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'Cluster', metadata: metadata('demo'), spec: {} } satisfies Cluster,
  machines: machines.map((machine) => ({ machine, outdated: outdated[machine.metadata.name] ?? [] })),
  workers: [],
  certificates: { state: 'available', authority: { certificate: '', key: '' } },
  template: { state: 'unread' },
  initializationIssue: undefined,
  step: undefined,
  failed: false,
  deletion: 'none',
  ...overrides,
})

const textOf = ({ type, status, reason, message }: NewCondition) => `${type} ${status} ${reason}${message ? `: ${message}` : ''}`
const condition = (type: string, fields: ScopeFields) =>
  textOf(controlPlaneConditions(aScope(fields)).find((c) => c.type === type)!)

const three = [aMachine('m1'), aMachine('m2'), aMachine('m3')]

describe('condition', () => {
  test.each([
    ['Available', { initialized: false }, 'Available False NotAvailable: Control plane not yet initialized'],
    ['Available', { machines: three }, 'Available True Available'],
    [
      'Available',
      { machines: [three[0]!, aMachine('m2', false)] },
      'Available True Available: * 1 of 2 Machines have healthy control plane components, at least 1 required',
    ],
    [
      'Available',
      { machines: [aMachine('m1', false)] },
      'Available False NotAvailable: * There are no Machines with healthy control plane components, at least 1 required',
    ],
    [
      'Available',
      { machines: three, deleting: true },
      'Available False NotAvailable: * Control plane metadata.deletionTimestamp is set',
    ],
    [
      'Available',
      { machines: three, certificates: { state: 'missing', purposes: ['ca'] } },
      'Available False NotAvailable: * Control plane certificates are not available',
    ],
    ['CertificatesAvailable', {}, 'CertificatesAvailable True Available'],
    [
      'CertificatesAvailable',
      { certificates: { state: 'unread' }, failed: true },
      'CertificatesAvailable Unknown InternalError: Please check controller logs for errors',
    ],
    [
      'CertificatesAvailable',
      { certificates: { state: 'missing', purposes: ['ca'] } },
      'CertificatesAvailable False NotAvailable: Cluster certificate for ca is not available, please check cluster certificate secrets',
    ],
    [
      'CertificatesAvailable',
      { certificates: { state: 'missing', purposes: ['ca', 'etcd'] } },
      'CertificatesAvailable False NotAvailable: Cluster certificates for ca, etcd are not available, please check cluster certificate secrets',
    ],
    ['Initialized', {}, 'Initialized True Initialized'],
    [
      'Initialized',
      { initialized: false, initializationIssue: 'etcd is on fire' },
      'Initialized False NotInitialized: etcd is on fire',
    ],
    ['RollingOut', { machines: three }, 'RollingOut False NotRollingOut'],
    [
      'RollingOut',
      {
        machines: three,
        outdated: {
          m1: ['LocalMachine is not up-to-date', 'Version v1.35.0, v1.36.0 required'],
          m2: ['Version v1.35.0, v1.36.0 required'],
        },
      },
      'RollingOut True RollingOut: Rolling out 2 not up-to-date replicas\n* Version v1.35.0, v1.36.0 required\n* LocalMachine is not up-to-date',
    ],
    ['ScalingUp', { machines: three }, 'ScalingUp False NotScalingUp'],
    ['ScalingUp', { machines: [three[0]!] }, 'ScalingUp True ScalingUp: Scaling up from 1 to 3 replicas'],
    [
      'ScalingUp',
      { machines: [three[0]!], template: { state: 'missing' }, step: { kind: 'wait', messages: ['* waiting for x'] } },
      'ScalingUp True ScalingUp: Scaling up from 1 to 3 replicas is blocked because:\n* waiting for x\n* LocalMachineTemplate does not exist',
    ],
    [
      'ScalingUp',
      { machines: three, template: { state: 'missing' } },
      'ScalingUp False NotScalingUp: Scaling up would be blocked because LocalMachineTemplate does not exist',
    ],
    ['ScalingDown', { machines: three }, 'ScalingDown False NotScalingDown'],
    ['ScalingDown', { machines: three, replicas: 1 }, 'ScalingDown True ScalingDown: Scaling down from 3 to 1 replicas'],
    ['ScalingDown', { machines: three, deleting: true }, 'ScalingDown True ScalingDown: Scaling down from 3 to 0 replicas'],
    ['MachinesReady', {}, 'MachinesReady True NoReplicas'],
    ['MachinesReady', { machines: [three[0]!, aMachine('m2', false)] }, 'MachinesReady False NotReady: * Machine m2: booting'],
    ['MachinesUpToDate', { machines: three }, 'MachinesUpToDate True UpToDate'],
    [
      'MachinesUpToDate',
      { machines: three, outdated: { m1: ['Version v1.35.0, v1.36.0 required'] } },
      'MachinesUpToDate False NotUpToDate: * Machine m1:\n  * Version v1.35.0, v1.36.0 required',
    ],
    ['Deleting', {}, 'Deleting False NotDeleting'],
    [
      'Deleting',
      { deletion: 'waiting for workers', workers: ['w1', 'w2', 'w3', 'w4', 'w5', 'w6'] },
      'Deleting True WaitingForWorkersDeletion: LocalControlPlane deletion blocked because following objects still exist:\n* Machines: w1, w2, w3, w4, w5, ... (1 more)',
    ],
    [
      'Deleting',
      { deletion: 'waiting for machines', machines: three },
      'Deleting True WaitingForMachineDeletion: Deleting 3 Machines',
    ],
    ['Deleting', { deletion: 'completed' }, 'Deleting True DeletionCompleted: Deletion completed'],
  ] satisfies [string, ScopeFields, string][])('%s given %j', (type, fields, expected) => {
    expect(condition(type, fields)).toBe(expected)
  })
})

test('counters and versions come from the Machines, the oldest version first', () => {
  const machines = [aMachine('m1', true, 'v1.36.0'), aMachine('m2', false, 'v1.35.10'), aMachine('m3', true, 'v1.36.0')]
  expect(controlPlaneCounters(aScope({ machines, outdated: { m2: ['Version v1.35.10, v1.36.0 required'] } }))).toEqual({
    selector: 'cluster.x-k8s.io/cluster-name=demo,cluster.x-k8s.io/control-plane',
    replicas: 3,
    readyReplicas: 2,
    availableReplicas: 2,
    upToDateReplicas: 2,
    version: 'v1.35.10',
    versions: [
      { version: 'v1.35.10', replicas: 1 },
      { version: 'v1.36.0', replicas: 2 },
    ],
  })
})
