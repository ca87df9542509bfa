import { silent } from '@capstan/kube'
import {
  aCluster,
  aCondition,
  aMachine,
  aMachineDeployment,
  aMachinePool,
  aMachineSet,
  aProviderObject,
  conditionText,
  foundObject,
  stateText,
} from '@capstan/testing'
import { describe, expect, test } from 'vitest'
import type { Health } from '../cluster-cache/accessor.ts'
import { remoteConnectionProbe } from './conditions.ts'
import { controlPlaneAvailableCondition, controlPlaneInitializedConditions } from './control-plane.ts'
import { infrastructureReadyCondition } from './infrastructure.ts'
import type { ClusterScope, Descendants } from './scope.ts'
import { reportStatus } from './status.ts'

const now = Date.UTC(2026, 0, 1, 1)
const hourAgo = '2026-01-01T00:00:00Z'
const responsive: Health = { lastProbe: now, lastProbeSuccess: now, consecutiveFailures: 0 }
const deleting = { metadata: { deletionTimestamp: hourAgo } }
const topology = { topology: { classRef: { name: 'class' }, version: 'v1.34.0' } }

const infra = (status: object) => foundObject(aProviderObject('DevCluster', { status }))
const controlPlane = (status: object, spec: object = {}) =>
  foundObject(aProviderObject('DevControlPlane', { group: 'controlplane.example.com', spec, status }))

const noDescendants: Descendants = {
  machineDeployments: [],
  machinePools: [],
  machineSets: [],
  controlPlaneMachines: [],
  workerMachines: [],
}
const aScope = (overrides: Partial<ClusterScope> = {}): ClusterScope => ({
  cluster: aCluster(),
  infrastructure: infra({ initialization: { provisioned: true } }),
  controlPlane: controlPlane({ initialization: { controlPlaneInitialized: true } }),
  descendants: noDescendants,
  deletion: { reason: 'InternalError', message: '' },
  ...overrides,
})
const withDescendants = (overrides: Partial<Descendants>) => ({ descendants: { ...noDescendants, ...overrides } })

/** Records the milestones that earlier phases of the reconcile would record from the provider objects. */
function recordMilestones({ cluster, infrastructure, controlPlane: provider }: ClusterScope): void {
  const reports = (observed: ClusterScope['infrastructure'], field: string) =>
    observed.state === 'found' &&
    (observed.external.object as { status?: { initialization?: { [name: string]: unknown } } }).status?.initialization?.[
      field
    ] === true
  const status = (cluster.status ??= {})
  if (reports(infrastructure, 'provisioned'))
    status.initialization = { ...status.initialization, infrastructureProvisioned: true }
  if (reports(provider, 'controlPlaneInitialized'))
    status.initialization = { ...status.initialization, controlPlaneInitialized: true }
}

function reported(scope: ClusterScope, type: string): string | undefined {
  recordMilestones(scope)
  reportStatus(scope, { now, health: responsive, gracePeriod: 50_000, classGates: undefined, log: silent })
  return conditionText(scope.cluster, type)
}

describe('InfrastructureReady', () => {
  const provisioned = { initialization: { infrastructureProvisioned: true } }
  const noRefs = { infrastructureRef: undefined as never, controlPlaneRef: undefined as never }
  // biome-ignore format: a table
  test.each<[string, Partial<ClusterScope>, string]>([
    ['read failed',              { infrastructure: { state: 'unread' } },  'Unknown InternalError: Please check controller logs for errors'],
    ['missing',                  { infrastructure: { state: 'missing' } }, 'False ObjectDoesNotExist: DevCluster does not exist'],
    ['empty status',             { infrastructure: infra({}) },            'False NotReady: DevCluster status.initialization.provisioned is false'],
    ['field removed after provisioning', { cluster: aCluster({ status: provisioned }), infrastructure: infra({}) },            'True Ready'],
    ['provisioned',              { cluster: aCluster({ status: provisioned }) },                                       'True Ready'],
    ['no reference',             { cluster: aCluster({ spec: noRefs }), infrastructure: { state: 'none' } }, 'True Ready'],
    ['topology not created yet', { cluster: aCluster({ spec: { ...noRefs, ...topology } }), infrastructure: { state: 'none' } }, 'False ObjectDoesNotExist: Waiting for cluster topology to be reconciled'],
    ['deleted too early',        { cluster: aCluster({ status: provisioned }), infrastructure: { state: 'missing' } }, 'False ObjectDeleted: DevCluster has been deleted while the cluster still exists'],
    ['deleted with the Cluster', { cluster: aCluster({ ...deleting, status: provisioned }), infrastructure: { state: 'missing' } }, 'False ObjectDeleted: DevCluster has been deleted'],
  ])('is computed from the state: %s', (_, scope, expected) => {
    expect(stateText(infrastructureReadyCondition(aScope(scope)))).toBe(expected)
  })
})

describe('the control plane', () => {
  const standAlone = { controlPlaneRef: undefined as never }
  const initialized = { initialization: { controlPlaneInitialized: true } }
  // biome-ignore format: a table
  test.each<[string, Partial<ClusterScope>, string, string]>([
    ['read failed',                  { controlPlane: { state: 'unread' } },  'Unknown InternalError: Please check controller logs for errors', 'Unknown InternalError: Please check controller logs for errors'],
    ['missing',                      { controlPlane: { state: 'missing' } }, 'Unknown ObjectDoesNotExist: DevControlPlane does not exist', 'False ObjectDoesNotExist: DevControlPlane does not exist'],
    ['not initialized',              { controlPlane: controlPlane({}) },     'False NotInitialized: Control plane not yet initialized', 'False NotAvailable: DevControlPlane status.initialization.controlPlaneInitialized is false'],
    ['initialized',                  { cluster: aCluster({ status: initialized }) }, 'True Initialized', 'True Available'],
    ['reports a text instead of a boolean', { controlPlane: controlPlane({ initialization: { controlPlaneInitialized: 'true' } }) }, 'Unknown InternalError: Please check controller logs for errors', 'False NotAvailable: DevControlPlane status.initialization.controlPlaneInitialized is false'],
    ['initialized, not yet recorded on the Cluster', {}, 'True Initialized', 'False NotAvailable: DevControlPlane status.initialization.controlPlaneInitialized is false'],
    ['deleted after initialization', { cluster: aCluster({ status: initialized }), controlPlane: { state: 'missing' } }, 'Unknown ObjectDoesNotExist: DevControlPlane does not exist', 'False ObjectDeleted: DevControlPlane has been deleted while the cluster still exists'],
    ['no control plane provider',     { cluster: aCluster({ spec: standAlone }), controlPlane: { state: 'none' } }, 'False NotInitialized: Waiting for the first control plane machine to have status.nodeRef set', 'False NotAvailable: Waiting for the first control plane machine to have status.nodeRef set'],
    ['topology not created yet',      { cluster: aCluster({ spec: { ...standAlone, ...topology } }), controlPlane: { state: 'none' } }, 'Unknown ObjectDoesNotExist: Waiting for cluster topology to be reconciled', 'False ObjectDoesNotExist: Waiting for cluster topology to be reconciled'],
    ['Cluster deleted before its topology was created', { cluster: aCluster({ ...deleting, spec: { ...standAlone, ...topology } }), controlPlane: { state: 'none' } }, 'Unknown ObjectDoesNotExist', 'False ObjectDoesNotExist'],
  ])('has conditions that are computed from the state: %s', (_, scope, initializedText, availableText) => {
    expect(controlPlaneInitializedConditions(aScope(scope)).map(stateText).join()).toBe(initializedText)
    expect(stateText(controlPlaneAvailableCondition(aScope(scope)))).toBe(availableText)
  })
})

describe('RemoteConnectionProbe', () => {
  const health = (agoSeconds: number | undefined, consecutiveFailures: number): Health => ({
    lastProbe: now,
    lastProbeSuccess: agoSeconds === undefined ? undefined : now - agoSeconds * 1000,
    consecutiveFailures,
  })
  // biome-ignore format: a table
  test.each<[string, Health, string | undefined, string | undefined]>([
    ['responsive',                            health(5, 0),          undefined, 'True ProbeSucceeded'],
    ['unresponsive within the grace period',  health(40, 4),         'True',    'True ProbeSucceeded'],
    ['unresponsive beyond the grace period',  health(51, 5),         'True',    'False ProbeFailed: Remote connection probe failed, probe last succeeded at 2026-01-01T00:59:09Z'],
    ['last success long ago, no failure',     health(151, 0),        'True',    'True ProbeSucceeded'],
    ['not connected yet',                     health(undefined, 1),  undefined, 'False ProbeFailed: Remote connection not established yet'],
    ['one failure since a restart of core',   health(undefined, 1),  'True',    undefined],
    ['five failures since a restart of core', health(undefined, 5),  'True',    'False ProbeFailed: Remote connection probe failed'],
  ])('is computed from the state: %s', (_, currentHealth, previousStatus, expected) => {
    const cluster = aCluster(
      previousStatus ? { status: { conditions: [aCondition('RemoteConnectionProbe', previousStatus as 'True')] } } : {},
    )
    expect(remoteConnectionProbe(cluster, currentHealth, { now, gracePeriod: 50_000 }).map(stateText)[0]).toBe(expected)
  })
})

describe('workers and machines', () => {
  const machine = (name: string, ready: 'True' | 'False', message = '') =>
    aMachine({ metadata: { name }, status: { conditions: [aCondition('Ready', ready, { message })] } })
  const deployment = (name: string, available: 'True' | 'False', message = '') =>
    aMachineDeployment({ metadata: { name }, status: { conditions: [aCondition('Available', available, { message })] } })
  const pooled = aMachine({ metadata: { name: 'pooled', labels: { 'cluster.x-k8s.io/pool-name': 'mp' } } })
  const ahead = aMachine({ metadata: { name: 'ahead', creationTimestamp: '2026-01-01T02:00:00Z' } })
  const young = aMachine({ metadata: { name: 'young', creationTimestamp: '2026-01-01T00:59:55Z' } })
  // biome-ignore format: a table
  test.each<[string, string, Partial<ClusterScope>, string]>([
    ['WorkersAvailable',          'workers not listed', { descendants: undefined },  'Unknown InternalError: Please check controller logs for errors'],
    ['WorkersAvailable',          'no workers',      {},                          'True NoWorkers'],
    ['WorkersAvailable',          'all available',   withDescendants({ machineDeployments: [deployment('a', 'True')] }), 'True Available'],
    ['WorkersAvailable',          'one not available', withDescendants({ machineDeployments: [deployment('a', 'True'), deployment('b', 'False', 'no replicas')] }), 'False NotAvailable: * MachineDeployment b: no replicas'],
    ['WorkerMachinesReady',       'no Machines',     {},                          'True NoReplicas'],
    ['WorkerMachinesReady',       'one not ready',   withDescendants({ workerMachines: [machine('a', 'True'), machine('b', 'False', 'sick')] }), 'False NotReady: * Machine b: sick'],
    ['WorkerMachinesReady',       'Machine of a MachinePool', withDescendants({ workerMachines: [pooled] }), 'True NoReplicas'],
    ['WorkerMachinesUpToDate',    'Machine of a MachinePool', withDescendants({ workerMachines: [pooled] }), 'True NoReplicas'],
    ['ControlPlaneMachinesReady', 'all ready',       withDescendants({ controlPlaneMachines: [machine('a', 'True')] }), 'True Ready'],
    ['WorkerMachinesUpToDate',    'new Machine', withDescendants({ workerMachines: [young] }), 'True NoReplicas'],
    ['WorkerMachinesUpToDate',    'Machine created in the future', withDescendants({ workerMachines: [ahead] }), 'Unknown UpToDateUnknown: * Machine ahead: Condition UpToDate not yet reported'],
    ['WorkerMachinesUpToDate',    'Machine without UpToDate', withDescendants({ workerMachines: [machine('a', 'True')] }), 'Unknown UpToDateUnknown: * Machine a: Condition UpToDate not yet reported'],
  ])('%s: %s', (type, _, scope, expected) => {
    expect(reported(aScope(scope), type)).toBe(expected)
  })
})

describe('the conditions RollingOut and ScalingUp', () => {
  const statusWith = (type: string, message: string) => ({ conditions: [aCondition(type, 'True', { message })] })
  const ownedByCluster = {
    ownerReferences: [{ apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'Cluster', name: 'demo', uid: 'demo-uid' }],
  }
  // biome-ignore format: a table
  test.each<[string, string, Partial<ClusterScope>, string]>([
    ['RollingOut', 'no rollout',                {}, 'False NotRollingOut'],
    ['RollingOut', 'a MachineDeployment',       withDescendants({ machineDeployments: [aMachineDeployment({ status: statusWith('RollingOut', 'Rolling out 1') })] }), 'True RollingOut: * MachineDeployment md: Rolling out 1'],
    ['RollingOut', 'the control plane',         { controlPlane: controlPlane(statusWith('RollingOut', 'Rolling out 3')) }, 'True RollingOut: * DevControlPlane demo: Rolling out 3'],
    ['RollingOut', 'an unread control plane',   { controlPlane: { state: 'unread' } }, 'Unknown InternalError: Please check controller logs for errors'],
    ['ScalingUp',  'a stand-alone MachineSet',  withDescendants({ machineSets: [aMachineSet({ metadata: ownedByCluster, status: statusWith('ScalingUp', 'from 1 to 2') })] }), 'True ScalingUp: * MachineSet ms: from 1 to 2'],
    ['ScalingUp',  'a MachineSet that the Cluster does not own', withDescendants({ machineSets: [aMachineSet({ status: statusWith('ScalingUp', 'from 1 to 2') })] }), 'False NotScalingUp'],
  ])('%s: %s', (type, _, scope, expected) => {
    expect(reported(aScope(scope), type)).toBe(expected)
  })
})

describe('Remediating', () => {
  const unhealthy = (name: string, ...extraConditions: ReturnType<typeof aCondition>[]) =>
    aMachine({ metadata: { name }, status: { conditions: [aCondition('HealthCheckSucceeded', 'False'), ...extraConditions] } })
  const owner = aCondition('OwnerRemediated', 'False', { message: 'waiting' })
  // biome-ignore format: a table
  test.each<[string, Partial<Descendants>, string]>([
    ['all are healthy',                        { workerMachines: [aMachine()] }, 'False NotRemediating'],
    ['one is being remediated',                { workerMachines: [unhealthy('a', owner)] }, 'True Remediating: * Machine a: waiting'],
    ['one is unhealthy without remediation',   { workerMachines: [unhealthy('a')] }, 'False NotRemediating: Machine a is not healthy (not to be remediated)'],
    ['many are unhealthy without remediation', { controlPlaneMachines: [unhealthy('d')], workerMachines: ['c', 'b', 'a'].map((name) => unhealthy(name)) }, 'False NotRemediating: Machines a, b, c, ... (1 more) are not healthy (not to be remediated)'],
  ])('is computed from the state: %s', (_, descendants, expected) => {
    expect(reported(aScope(withDescendants(descendants)), 'Remediating')).toBe(expected)
  })
})

describe('Available', () => {
  const reconciled = (reason: string, message = '') => ({
    spec: topology,
    status: {
      conditions: [aCondition('TopologyReconciled', reason === 'ReconcileSucceeded' ? 'True' : 'False', { reason, message })],
    },
  })
  // biome-ignore format: a table
  test.each<[string, Partial<ClusterScope>, string]>([
    ['True when all conditions are met',   {}, 'True Available'],
    ['lists conditions that are not met',  { infrastructure: infra({}), ...withDescendants({ machineDeployments: [aMachineDeployment()] }) }, 'False NotAvailable: * InfrastructureReady: DevCluster status.initialization.provisioned is false\n* WorkersAvailable:\n  * MachineDeployment md: Condition Available not yet reported'],
    ['Unknown for a topology that was not reconciled', { cluster: aCluster({ spec: topology }) }, 'Unknown AvailableUnknown: * TopologyReconciled: Condition not yet reported'],
    ['True during an upgrade',             { cluster: aCluster(reconciled('ClusterUpgrading', 'upgrading')) }, 'True Available: * TopologyReconciled: upgrading'],
    ['False for a failed topology',        { cluster: aCluster(reconciled('ReconcileFailed', 'bad patch')) }, 'False NotAvailable: * TopologyReconciled: bad patch'],
    ['Unknown for a gate whose condition is missing', { cluster: aCluster({ spec: { availabilityGates: [{ conditionType: 'Gate' }] } }) }, 'Unknown AvailableUnknown: * Gate: Condition not yet reported'],
    ['Unknown if a gate names the condition Available', { cluster: aCluster({ spec: { availabilityGates: [{ conditionType: 'Available' }] } }) }, 'Unknown InternalError: Please check controller logs for errors'],
    ['does not list missing objects while the Cluster is being deleted', { cluster: aCluster(deleting), infrastructure: { state: 'missing' }, controlPlane: { state: 'missing' }, deletion: { reason: 'DeletionCompleted', message: 'Deletion completed' } }, 'False NotAvailable: * Deleting: Deletion completed'],
  ])('%s', (_, scope, expected) => {
    expect(reported(aScope(scope), 'Available')).toBe(expected)
  })

  test('uses the gates of the class when the Cluster has none', () => {
    const scope = aScope()
    reportStatus(scope, {
      now,
      health: responsive,
      gracePeriod: 50_000,
      classGates: [{ conditionType: 'FromClass' }],
      log: silent,
    })
    expect(conditionText(scope.cluster, 'Available')).toContain('FromClass')
  })
})

describe('counters', () => {
  test('copies the counts of the control plane; counts that it does not report stay', () => {
    const cluster = aCluster({ status: { controlPlane: { upToDateReplicas: 2, upgradePlan: [{ version: 'v1.35.0' }] } } })
    const scope = aScope({
      cluster,
      controlPlane: controlPlane({ replicas: 3, readyReplicas: 1, availableReplicas: 0 }, { replicas: 3 }),
    })
    reported(scope, 'Available')
    expect(cluster.status?.controlPlane).toEqual({
      desiredReplicas: 3,
      replicas: 3,
      readyReplicas: 1,
      availableReplicas: 0,
      upToDateReplicas: 2,
      upgradePlan: [{ version: 'v1.35.0' }],
    })
  })

  // Upstream: setControlPlaneReplicas, for a control plane that is nil.
  test('clears the counts of a control plane that cannot be read, and keeps the upgrade plan', () => {
    const counts = { desiredReplicas: 3, replicas: 3, readyReplicas: 3, availableReplicas: 3, upToDateReplicas: 3 }
    const upgradePlan = [{ version: 'v1.35.0' }]
    const versions = [{ version: 'v1.34.0', replicas: 3 }]
    const cluster = aCluster({ status: { controlPlane: { ...counts, versions, upgradePlan } } })
    reported(aScope({ cluster, controlPlane: { state: 'unread' } }), 'Available')
    expect(cluster.status?.controlPlane).toEqual({ upgradePlan })
  })

  test('sums the counts of MachinePools, MachineDeployments, stand-alone MachineSets and stand-alone Machines', () => {
    const own = { ownerReferences: [{ apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'Cluster', name: 'demo', uid: 'demo-uid' }] }
    const versions = (version: string, replicas: number) => [{ version, replicas }]
    const scope = aScope(
      withDescendants({
        machineDeployments: [
          aMachineDeployment({
            spec: { replicas: 3 },
            status: { replicas: 2, readyReplicas: 1, versions: versions('v1.34.0', 2) },
          }),
        ],
        machinePools: [
          aMachinePool({ status: { replicas: 2, readyReplicas: 2, upToDateReplicas: 2, versions: versions('v1.34.0', 2) } }),
        ],
        machineSets: [
          aMachineSet({ metadata: { name: 'of the deployment' }, status: { replicas: 2 } }),
          aMachineSet({ metadata: own, spec: { replicas: 1 }, status: { replicas: 1, versions: versions('v1.33.0', 1) } }),
        ],
        workerMachines: [
          aMachine({ metadata: { name: 'of a set' } }),
          aMachine({ metadata: { ...own, name: 'own' }, status: { conditions: [aCondition('Ready', 'True')] } }),
        ],
      }),
    )
    reported(scope, 'Available')
    expect(scope.cluster.status?.workers).toEqual({
      desiredReplicas: 7,
      replicas: 6,
      readyReplicas: 4,
      upToDateReplicas: 2,
      versions: [
        { version: 'v1.33.0', replicas: 1 },
        { version: 'v1.34.0', replicas: 5 },
      ],
    })
  })

  test('reports no worker counts without workers', () => {
    const scope = aScope()
    reported(scope, 'Available')
    expect(scope.cluster.status).toHaveProperty('workers', {})
  })
})
