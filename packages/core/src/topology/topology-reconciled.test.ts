import type { Cluster } from '@capstan/api'
import { describe, expect, test } from 'vitest'
import {
  legacyTopologyReconciled,
  type TopologyReport,
  topologyReconciledCondition,
  type UpgradeReport,
} from './topology-reconciled.ts'

const aCluster = (overrides: { spec?: object; metadata?: object } = {}): Cluster =>
  ({
    kind: 'Cluster',
    metadata: { name: 'demo', namespace: 'default', ...overrides.metadata },
    spec: { infrastructureRef: { name: 'demo' }, topology: { version: 'v1.35.0' }, ...overrides.spec },
  }) as unknown as Cluster

const conditionTextOf = (report: Partial<TopologyReport>): string => {
  const fullReport = {
    cluster: aCluster(),
    paused: false,
    error: undefined,
    blocking: [],
    upgradePending: false,
    upgrade: undefined,
    ...report,
  }
  const { status, reason, message } = topologyReconciledCondition(fullReport)
  return `${status} ${reason}${message === '' ? '' : `: ${message}`}`
}
const blocking = [{ hook: 'BeforeClusterDelete', message: 'backup', retryAfter: 1 }]

describe('TopologyReconciled', () => {
  test.each([
    ['reconciled', {}, 'True ReconcileSucceeded'],
    [
      'paused by spec',
      { paused: true, cluster: aCluster({ spec: { paused: true } }) },
      'False Paused: Cluster spec.paused is set to true',
    ],
    ['failing', { error: new Error('no template') }, 'False ReconcileFailed: no template'],
    ['being deleted', { cluster: aCluster({ metadata: { deletionTimestamp: 'now' } }) }, 'False Deleting: Cluster is deleting'],
    [
      'being deleted, blocked by a hook',
      { cluster: aCluster({ metadata: { deletionTimestamp: 'now' } }), blocking },
      'False Deleting: Cluster is deleting. Following hooks are blocking delete: BeforeClusterDelete: backup',
    ],
    [
      'not created yet, blocked by a hook',
      {
        cluster: aCluster({ spec: { infrastructureRef: undefined } }),
        blocking: [{ hook: 'BeforeClusterCreate', message: '', retryAfter: 1 }],
      },
      'False ClusterCreating: Following hooks are blocking Cluster topology creation: BeforeClusterCreate',
    ],
  ] as [string, Partial<TopologyReport>, string][])('reports the state of a topology that is %s', (_, report, expected) => {
    expect(conditionTextOf(report)).toBe(expected)
  })
})

describe('TopologyReconciled in the form of v1beta1', () => {
  test.each([
    ['True', 'ReconcileSucceeded', { status: 'True' }],
    ['False', 'ReconcileFailed', { status: 'False', severity: 'Error', reason: 'TopologyReconcileFailed', message: 'why' }],
    ['False', 'ClusterUpgrading', { status: 'False', severity: 'Info', reason: 'ClusterUpgrading', message: 'why' }],
    ['False', 'Paused', { status: 'False', severity: 'Info', reason: 'Paused', message: 'why' }],
  ] as const)('is made from %s %s', (status, reason, expected) => {
    const type = 'TopologyReconciled'
    expect(legacyTopologyReconciled({ type, status, reason, message: 'why' })).toEqual({ type, ...expected })
  })
})

describe('the message of an upgrade', () => {
  const stable = { kind: 'version', version: 'v1.34.0', state: 'stable', pending: false, waitingForWorkers: false } as const
  const worker = (objectName: string, overrides: object = {}) => ({
    name: `t-${objectName}`,
    objectName,
    version: 'v1.34.0',
    state: 'settled',
    upgrading: false,
    ...overrides,
  })
  const upgrade = (overrides: object) =>
    ({
      controlPlaneKind: 'DevControlPlane',
      controlPlane: stable,
      plan: { controlPlane: [], workers: [] },
      workers: [],
      pools: [],
      ...overrides,
    }) as unknown as UpgradeReport

  test.each([
    [
      'the control plane upgrades, and a further step is pending',
      { controlPlane: { ...stable, state: 'starting' }, plan: { controlPlane: ['v1.34.0', 'v1.35.0'], workers: [] } },
      'ClusterUpgrading',
      'DevControlPlane upgrading to version v1.34.0 (v1.35.0 pending)',
    ],
    [
      'the control plane waits',
      { controlPlane: { ...stable, pending: true, state: 'pending' }, plan: { controlPlane: ['v1.35.0'], workers: [] } },
      'ClusterUpgrading',
      'DevControlPlane pending upgrade to version v1.35.0',
    ],
    [
      'one MachineDeployment upgrades, the other waits',
      {
        plan: { controlPlane: [], workers: ['v1.35.0'] },
        controlPlane: { ...stable, version: 'v1.35.0' },
        workers: [worker('b', { state: 'starting', upgrading: true }), worker('a', { state: 'pending' })],
      },
      'ClusterUpgrading',
      'MachineDeployment b upgrading to version v1.35.0\n  * MachineDeployment a pending upgrade to version v1.35.0',
    ],
    [
      'a long list of names is truncated',
      {
        plan: { controlPlane: [], workers: ['v1.35.0'] },
        workers: ['e', 'd', 'c', 'b', 'a'].map((name) => worker(name, { state: 'pending' })),
      },
      'ClusterUpgrading',
      'MachineDeployments a, b, c, ... (2 more) pending upgrade to version v1.35.0',
    ],
    [
      'only deferred MachineDeployments are left',
      { controlPlane: { ...stable, version: 'v1.35.0' }, workers: [worker('a', { state: 'deferred' })] },
      'MachineDeploymentsUpgradeDeferred',
      'MachineDeployment a upgrade to version v1.35.0 deferred using defer-upgrade or hold-upgrade-sequence annotations',
    ],
    [
      'pools have lines of their own, after those of deployments',
      {
        plan: { controlPlane: [], workers: ['v1.35.0'] },
        controlPlane: { ...stable, version: 'v1.35.0' },
        workers: [worker('md', { state: 'starting', upgrading: true })],
        pools: [
          worker('b', { state: 'pending' }),
          worker('a', { state: 'deferred' }),
          worker('', { name: 'new', state: 'pendingCreate' }),
        ],
      },
      'ClusterUpgrading',
      [
        'MachineDeployment md upgrading to version v1.35.0',
        'MachinePool b pending upgrade to version v1.35.0',
        'MachinePool a upgrade to version v1.35.0 deferred using topology.cluster.x-k8s.io/defer-upgrade or hold-upgrade-sequence annotations',
        'MachinePool new creation deferred while control plane upgrade is in progress',
      ].join('\n  * '),
    ],
    [
      'only deferred pools are left',
      { controlPlane: { ...stable, version: 'v1.35.0' }, pools: [worker('a', { state: 'deferred' })] },
      'MachinePoolsUpgradeDeferred',
      'MachinePool a upgrade to version v1.35.0 deferred using topology.cluster.x-k8s.io/defer-upgrade or hold-upgrade-sequence annotations',
    ],
    [
      'a new MachineDeployment waits for the control plane',
      {
        controlPlane: { ...stable, state: 'upgrading', version: 'v1.35.0' },
        workers: [worker('', { name: 'md-1', state: 'pendingCreate' })],
      },
      'ClusterUpgrading',
      'DevControlPlane upgrading to version v1.35.0\n  * MachineDeployment md-1 creation deferred while control plane upgrade is in progress',
    ],
  ])('%s', (_, overrides, reason, lines) => {
    expect(conditionTextOf({ upgrade: upgrade(overrides) })).toBe(
      `False ${reason}: Cluster is upgrading to v1.35.0\n  * ${lines}`,
    )
  })

  test('an upgrade is reported until its last hook has succeeded', () => {
    expect(conditionTextOf({ upgrade: upgrade({}), upgradePending: true })).toBe(
      'False ClusterUpgrading: Cluster is upgrading to v1.35.0',
    )
  })
})
