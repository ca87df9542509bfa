import { type Condition, silent } from '@capstan/kube'
import {
  aCluster,
  aCondition,
  aMachine,
  aMachineDeployment,
  aMachineSet,
  aNode,
  aProviderObject,
  conditionText,
  foundObject,
  nodeConditions,
  stateText,
} from '@capstan/testing'
import { describe, expect, test } from 'vitest'
import type { Health } from '../cluster-cache/accessor.ts'
import { bootstrapConfigReadyCondition } from './bootstrap.ts'
import { infrastructureReadyCondition } from './infrastructure.ts'
import { nodeConditions as conditionsOfNode } from './node.ts'
import type { MachineScope, ObservedNode } from './scope.ts'
import { reportStatus } from './status.ts'

const now = Date.UTC(2026, 0, 1, 1)
const hourAgo = '2026-01-01T00:00:00Z'
const healthy: Health = { lastProbe: now, lastProbeSuccess: now, consecutiveFailures: 0 }
const deleting = { metadata: { deletionTimestamp: hourAgo } }

const infra = (fields: { status?: object } = {}) => foundObject(aProviderObject('DevMachine', fields))
const config = (fields: { status?: object } = {}) =>
  foundObject(aProviderObject('DevConfig', { group: 'bootstrap.example.com', ...fields }))
const ready = (status: string, overrides: object = {}) => ({ conditions: [{ type: 'Ready', status, ...overrides }] })

const aReadyCluster = () =>
  aCluster({
    status: {
      initialization: { infrastructureProvisioned: true, controlPlaneInitialized: true },
      conditions: [aCondition('ControlPlaneInitialized', 'True')],
    },
  })

const aScope = (overrides: Partial<MachineScope> = {}): MachineScope =>
  withInitialization({
    machine: aMachine(),
    cluster: aReadyCluster(),
    machineSet: undefined,
    machineDeployment: undefined,
    bootstrap: config({ status: { initialization: { dataSecretCreated: true } } }),
    infrastructure: infra({ status: { initialization: { provisioned: true } } }),
    node: { state: 'found', node: aNode() },
    deletion: { reason: 'Deleting', message: 'Deletion started' },
    steps: {},
    ...overrides,
  })

/** Sets `status.initialization` of the Machine from the provider objects, as earlier phases of the reconcile would. */
function withInitialization(scope: MachineScope): MachineScope {
  const reportsTrue = (observed: MachineScope['bootstrap'], field: string) =>
    observed.state === 'found' &&
    (observed.external.object as { status?: { initialization?: { [name: string]: unknown } } }).status?.initialization?.[
      field
    ] === true
  const status = (scope.machine.status ??= {})
  if (reportsTrue(scope.bootstrap, 'dataSecretCreated'))
    status.initialization = { ...status.initialization, bootstrapDataSecretCreated: true }
  if (reportsTrue(scope.infrastructure, 'provisioned'))
    status.initialization = { ...status.initialization, infrastructureProvisioned: true }
  return scope
}

describe('BootstrapConfigReady', () => {
  const secretWasCreated = { initialization: { bootstrapDataSecretCreated: true } }
  // biome-ignore format: a table
  test.each<[string, Partial<MachineScope>, string]>([
    ['no reference',                  { machine: aMachine({ spec: { bootstrap: { dataSecretName: 'x' } } }), bootstrap: { state: 'none' } }, 'True DataSecretProvided'],
    ['read failed',                   { bootstrap: { state: 'unread' } },                                    'Unknown InternalError: Please check controller logs for errors'],
    ['missing',                       { bootstrap: { state: 'missing' } },                                   'False ObjectDoesNotExist: DevConfig does not exist'],
    ['without status',                { bootstrap: config() },                                               'False NotReady: DevConfig status.initialization.dataSecretCreated is false'],
    ['false after it was true',       { bootstrap: config({ status: { initialization: { dataSecretCreated: false } } }), machine: aMachine({ status: secretWasCreated }) }, 'True Ready'],
    ['secret created',                { bootstrap: config({ status: { initialization: { dataSecretCreated: true } } }) }, 'True Ready'],
    ['False with a reason',           { bootstrap: config({ status: ready('False', { reason: 'NoCA', message: 'no authority' }) }) }, 'False NoCA: no authority'],
    ['True without a reason',         { bootstrap: config({ status: ready('True') }) },                      'True Ready'],
    ['invalid status',                { bootstrap: config({ status: ready('Maybe') }) },                     'Unknown InvalidConditionReported: failed to convert status.conditions from DevConfig to []metav1.Condition: status for the Ready condition must be one of True, False, Unknown'],
    ['deleted with the Machine',      { bootstrap: { state: 'missing' }, machine: aMachine({ ...deleting, status: secretWasCreated }) }, 'False ObjectDeleted: DevConfig has been deleted'],
    ['deleted, secret never created', { bootstrap: { state: 'missing' }, machine: aMachine(deleting) },      'False ObjectDoesNotExist: DevConfig does not exist'],
  ])('is computed from the state: %s', (_, scope, expected) => {
    expect(stateText(bootstrapConfigReadyCondition(aScope(scope)))).toBe(expected)
  })
})

describe('InfrastructureReady', () => {
  const provisioned = { initialization: { infrastructureProvisioned: true } }
  // biome-ignore format: a table
  test.each<[string, Partial<MachineScope>, string]>([
    ['read failed',                 { infrastructure: { state: 'unread' } },                                'Unknown InternalError: Please check controller logs for errors'],
    ['missing',                     { infrastructure: { state: 'missing' } },                               'False ObjectDoesNotExist: DevMachine does not exist'],
    ['not provisioned',             { infrastructure: infra() },                                            'False NotReady: DevMachine status.initialization.provisioned is false'],
    ['provisioned',                 { infrastructure: infra({ status: { initialization: { provisioned: true } } }) }, 'True Ready'],
    ['False with a reason',         { infrastructure: infra({ status: ready('False', { reason: 'Quota', message: 'no quota' }) }) }, 'False Quota: no quota'],
    ['True only in status.v1beta2', { infrastructure: infra({ status: { ...ready('False'), v1beta2: ready('True', { reason: 'Up' }) } }) }, 'True Up'],
    ['deleted too early',           { infrastructure: { state: 'missing' }, machine: aMachine({ status: provisioned }) }, 'False ObjectDeleted: DevMachine has been deleted while the Machine still exists'],
    ['deleted with the Machine',    { infrastructure: { state: 'missing' }, machine: aMachine({ ...deleting, status: provisioned }) }, 'False ObjectDeleted: DevMachine has been deleted'],
  ])('is computed from the state: %s', (_, scope, expected) => {
    expect(stateText(infrastructureReadyCondition(aScope(scope)))).toBe(expected)
  })
})

describe('Node conditions', () => {
  const named = { spec: { providerID: 'dev:///m1' }, status: { nodeRef: { name: 'node-1' } } }
  const failing = (failures: number): Health => ({ lastProbe: now, lastProbeSuccess: undefined, consecutiveFailures: failures })
  const node = (overrides: Parameters<typeof nodeConditions>[0]): ObservedNode => ({
    state: 'found',
    node: aNode({ status: { conditions: nodeConditions(overrides) } }),
  })
  const unresponsiveFor = (minutes: number): Health => ({
    lastProbe: now,
    lastProbeSuccess: now - minutes * 60_000,
    consecutiveFailures: 3,
  })
  // biome-ignore format: a table
  test.each<[string, Partial<MachineScope>, Health, string]>([
    ['no infrastructure yet',                { cluster: aCluster() }, healthy, 'Unknown InspectionFailed: Waiting for Cluster status.initialization.infrastructureProvisioned to be true'],
    ['no control plane yet',                 { cluster: aCluster({ status: { initialization: { infrastructureProvisioned: true } } }) }, healthy, 'Unknown InspectionFailed: Waiting for Cluster control plane to be initialized'],
    ['never connected',                      {}, failing(2),   'Unknown ConnectionDown: Remote connection not established yet'],
    ['never connected after five failures',  {}, failing(5),  'Unknown ConnectionDown'],
    ['unresponsive beyond the grace period', {}, unresponsiveFor(6), 'Unknown ConnectionDown: Last successful probe at 2026-01-01T00:54:00Z'],
    ['unresponsive within the grace period, no earlier conditions', { node: { state: 'disconnected' } }, unresponsiveFor(1), 'Unknown ConnectionDown: Last successful probe at 2026-01-01T00:59:00Z'],
    ['last success long ago, no failure',    { node: node({}) }, { ...unresponsiveFor(6), consecutiveFailures: 0 }, 'True NodeHealthy'],
    ['read failed',                          { node: { state: 'unread' } }, healthy, 'Unknown InternalError: Please check controller logs for errors'],
    ['no providerID',                        { node: { state: 'noProviderID' } }, healthy, 'Unknown InspectionFailed: Waiting for DevMachine to report spec.providerID'],
    ['no Node yet',                          { node: { state: 'missing' }, machine: aMachine({ spec: { providerID: 'dev:///m1' } }) }, healthy, 'Unknown InspectionFailed: Waiting for a Node with spec.providerID dev:///m1 to exist'],
    ['Node deleted too early',               { node: { state: 'missing' }, machine: aMachine(named) }, healthy, 'False NodeDeleted: Node node-1 has been deleted while the Machine still exists'],
    ['Node deleted with the Machine',        { node: { state: 'missing' }, machine: aMachine({ ...named, ...deleting }) }, healthy, 'False NodeDeleted: Node node-1 has been deleted'],
    ['Node never existed',                   { node: { state: 'missing' }, machine: aMachine(deleting) }, healthy, 'Unknown NodeDoesNotExist: Node does not exist'],
    ['healthy',                              { node: node({}) }, healthy, 'True NodeHealthy'],
    ['under pressure',                       { node: node({ DiskPressure: { status: 'True', message: 'disk is full' } }) }, healthy, 'False NodeNotHealthy: * Node.DiskPressure: disk is full'],
    ['False without a message',              { node: node({ Ready: 'False' }) }, healthy, 'False NodeNotHealthy: * Node.Ready: Condition is False'],
    ['one unhealthy, one unknown',           { node: node({ Ready: 'Unknown', PIDPressure: 'True' }) }, healthy, 'False NodeNotHealthy: * Node.Ready: Condition is Unknown\n* Node.PIDPressure: Condition is True'],
    ['no conditions',                        { node: { state: 'found', node: aNode({ status: { conditions: [] } }) } }, healthy, 'Unknown NodeHealthyUnknown: * Node.Ready: Condition not yet reported\n* Node.MemoryPressure: Condition not yet reported\n* Node.DiskPressure: Condition not yet reported\n* Node.PIDPressure: Condition not yet reported'],
  ])('NodeHealthy is computed from the state: %s', (_, scope, health, expected) => {
    const conditions = conditionsOfNode({ ...aScope(scope), health, gracePeriod: 300_000, now })
    expect(stateText(conditions.find(({ type }) => type === 'NodeHealthy')!)).toBe(expected)
  })

  test('keep their values for the grace period after the connection was lost', () => {
    const machine = aMachine({ status: { conditions: [aCondition('NodeHealthy', 'True'), aCondition('NodeReady', 'True')] } })
    const scope = aScope({ machine, node: { state: 'disconnected' } })
    expect(conditionsOfNode({ ...scope, health: unresponsiveFor(1), gracePeriod: 300_000, now })).toEqual([])
    expect(conditionsOfNode({ ...scope, health: unresponsiveFor(6), gracePeriod: 300_000, now }).length).toBe(2)
  })

  test('NodeReady has the time and the message of the condition Ready of the Node', () => {
    const scope = aScope({ node: node({ Ready: { status: 'Unknown', message: 'Kubelet stopped posting node status.' } }) })
    expect(conditionsOfNode({ ...scope, health: healthy, gracePeriod: 300_000, now })[0]).toEqual({
      type: 'NodeReady',
      status: 'Unknown',
      reason: 'NodeReadyUnknown',
      message: '* Node.Ready: Kubelet stopped posting node status.',
      lastTransitionTime: hourAgo,
    })
  })
})

/** Computes the whole status, and returns one condition as text. */
function reported(scope: MachineScope, type: string): string | undefined {
  reportStatus(scope, { now, health: healthy, gracePeriod: 300_000, log: silent })
  return conditionText(scope.machine, type)
}

describe('Ready', () => {
  const gate = (polarity?: 'Negative') => ({ readinessGates: [{ conditionType: 'Gate', ...(polarity ? { polarity } : {}) }] })
  const has = (...conditions: Condition[]) => ({ conditions })
  // biome-ignore format: a table
  test.each<[string, Partial<MachineScope>, string]>([
    ['all conditions are met',            {}, 'True Ready'],
    ['conditions that are not met',       { infrastructure: infra(), bootstrap: config() }, 'False NotReady: * BootstrapConfigReady: DevConfig status.initialization.dataSecretCreated is false\n* InfrastructureReady: DevMachine status.initialization.provisioned is false'],
    ['an unknown condition',              { node: { state: 'unread' } }, 'Unknown ReadyUnknown: * NodeHealthy: Please check controller logs for errors'],
    ['a failed health check',             { machine: aMachine({ status: has(aCondition('HealthCheckSucceeded', 'False', { message: 'sick' })) }) }, 'False NotReady: * HealthCheckSucceeded: sick'],
    ['a missing gate',                    { machine: aMachine({ spec: gate() }) }, 'Unknown ReadyUnknown: * Gate: Condition not yet reported'],
    ['a gate with positive polarity',     { machine: aMachine({ spec: gate(), status: has(aCondition('Gate', 'True')) }) }, 'True Ready'],
    ['a gate with negative polarity',     { machine: aMachine({ spec: gate('Negative'), status: has(aCondition('Gate', 'True', { message: 'busy' })) }) }, 'False NotReady: * Gate: busy'],
    ['a gate that is Ready itself',       { machine: aMachine({ spec: { readinessGates: [{ conditionType: 'Ready' }] } }) }, 'Unknown InternalError: Please check controller logs for errors'],
    ['a gate that core reports itself',   { infrastructure: infra({ status: ready('False', { message: 'slow' }) }), machine: aMachine({ spec: { readinessGates: [{ conditionType: 'InfrastructureReady' }] } }) }, 'False NotReady: * InfrastructureReady: slow'],
    ['deleted objects of a Machine being deleted', { machine: aMachine({ metadata: { deletionTimestamp: '2026-01-01T00:59:00Z' } }), infrastructure: { state: 'missing' }, node: { state: 'missing' } }, 'False NotReady: * Deleting: Machine deletion in progress, stage: Deleting'],
    ['a long deletion',                   { machine: aMachine(deleting) }, 'False NotReady: * Deleting: Machine deletion in progress since more than 15m, stage: Deleting'],
  ])('is computed from the state: %s', (_, scope, expected) => {
    expect(reported(aScope(scope), 'Ready')).toBe(expected)
  })

  test('reports likely causes of a long drain', () => {
    const machine = aMachine({ ...deleting, status: { deletion: { nodeDrainStartTime: '2026-01-01T00:30:00Z' } } })
    const message = [
      'Drain not completed yet (started at 2026-01-01T00:30:00Z):',
      '* Pod default/a: deletionTimestamp set, but still not removed from the Node',
      "* Pod default/b: cannot evict pod as it would violate the pod's disruption budget. The disruption budget x needs 1",
    ].join('\n')
    expect(reported(aScope({ machine, deletion: { reason: 'DrainingNode', message } }), 'Ready')).toBe(
      'False NotReady: * Deleting: Machine deletion in progress since more than 15m, stage: DrainingNode, delay likely due to PodDisruptionBudgets, Pods not terminating',
    )
  })

  test('equal messages of control plane components are merged', () => {
    const types = [
      'APIServerPodHealthy',
      'ControllerManagerPodHealthy',
      'SchedulerPodHealthy',
      'EtcdPodHealthy',
      'EtcdMemberHealthy',
    ]
    const machine = aMachine({
      spec: { readinessGates: types.map((conditionType) => ({ conditionType })) },
      status: { conditions: types.map((type) => aCondition(type, 'Unknown', { message: 'Waiting for a Node' })) },
    })
    expect(reported(aScope({ machine }), 'Ready')).toBe(
      'Unknown ReadyUnknown: * Control plane components: Waiting for a Node\n* EtcdMemberHealthy: Waiting for a Node',
    )
  })
})

describe('UpToDate', () => {
  const spec = aMachine().spec
  const template = (overrides: object) => ({ spec: { template: { spec: { ...spec, ...overrides } } } })
  const ref = (kind: string) => ({ apiGroup: 'infra.example.com', kind, name: 'x' })
  const running = aMachine({ status: { nodeInfo: { kubeletVersion: 'v1.34.0' } as never } })
  // biome-ignore format: a table
  test.each<[string, object, object, Partial<MachineScope>, string]>([
    ['equal templates',                  {}, {}, {}, 'True UpToDate'],
    ['another version',                  { version: 'v1.33.0' }, {}, {}, 'False NotUpToDate: * Version v1.33.0, v1.34.0 required'],
    ['another template',                 { infrastructureRef: ref('DevMachineTemplate') }, {}, {}, 'False NotUpToDate: * DevMachine is not up-to-date'],
    ['another failure domain',           { failureDomain: 'a' }, { failureDomain: 'b' }, {}, 'False NotUpToDate: * Failure domain a, b required'],
    ['no failure domain any more',       { failureDomain: 'a' }, {}, {}, 'False NotUpToDate: * Failure domain a,  required'],
    ['fields that change in place',      { minReadySeconds: 5 }, {}, {}, 'True UpToDate'],
    ['the kubelet has an older version', {}, {}, { machine: aMachine({ status: { nodeInfo: { kubeletVersion: 'v1.33.1' } as never } }) }, 'False Updating: * Node.status.nodeInfo.kubeletVersion v1.33.1, v1.34.0 required'],
    ['the kubelet has build metadata',   {}, {}, { machine: aMachine({ status: { nodeInfo: { kubeletVersion: 'v1.34.0+b' } as never } }) }, 'False Updating: * Node.status.nodeInfo.kubeletVersion v1.34.0+b, v1.34.0 required'],
    ['the kubelet has the required version', {}, {}, { machine: running }, 'True UpToDate'],
  ])('is computed from the state: %s', (_, current, desired, scope, expected) => {
    const machineSet = aMachineSet(template(current) as never)
    const machineDeployment = aMachineDeployment(template(desired) as never)
    expect(reported(aScope({ machineSet, machineDeployment, ...scope }), 'UpToDate')).toBe(expected)
  })

  test('a Machine of a MachineSet older than rollout.after is not up to date from that time on', () => {
    const machineDeployment = aMachineDeployment({ spec: { rollout: { after: '2026-01-01T00:30:00Z' } } })
    expect(reported(aScope({ machineSet: aMachineSet(), machineDeployment }), 'UpToDate')).toBe(
      'False NotUpToDate: * MachineDeployment spec.rolloutAfter expired',
    )
    const later = aMachineDeployment({ spec: { rollout: { after: '2026-01-01T01:30:00Z' } } })
    expect(reported(aScope({ machineSet: aMachineSet(), machineDeployment: later }), 'UpToDate')).toBe('True UpToDate')
  })

  /**
   * The reconcile that is requeued for `rollout.after` may run exactly at that time, since times have millisecond precision. Upstream's runs
   * nanoseconds later.
   */
  test('a Machine is up to date if its MachineSet was created exactly at rollout.after, but not if the MachineSet is older', () => {
    const machineDeployment = aMachineDeployment({ spec: { rollout: { after: '2026-01-01T01:00:00Z' } } })
    expect(reported(aScope({ machineSet: aMachineSet(), machineDeployment }), 'UpToDate')).toBe(
      'False NotUpToDate: * MachineDeployment spec.rolloutAfter expired',
    )
    const created = aMachineSet({ metadata: { creationTimestamp: '2026-01-01T01:00:00Z' } })
    expect(reported(aScope({ machineSet: created, machineDeployment }), 'UpToDate')).toBe('True UpToDate')
  })

  test('is not reported for a Machine without MachineDeployment', () => {
    expect(reported(aScope({ machineSet: aMachineSet() }), 'UpToDate')).toBeUndefined()
  })
})

describe('Available', () => {
  // biome-ignore format: a table
  test.each<[string, number | undefined, string | undefined, string, string]>([
    ['at once without a minimum',     undefined, undefined,              'True Available',                  'proceed'],
    ['not before the minimum',        60,        undefined,              'False WaitingForMinReadySeconds', 'requeue 60000'],
    ['counts from the Ready condition', 60,        '2026-01-01T00:59:20Z', 'False WaitingForMinReadySeconds', 'requeue 20000'],
    ['clock set back by an hour',     60,        '2026-01-01T02:00:00Z', 'True Available',                  'proceed'],
    ['clock set back, no minimum',    undefined, '2026-01-01T02:00:00Z', 'True Available',                  'proceed'],
    ['after the minimum',             60,        '2026-01-01T00:58:00Z', 'True Available',                  'proceed'],
  ])('is computed from minReadySeconds: %s', (_, minReadySeconds, readySince, expected, expectedOutcome) => {
    const machine = aMachine({
      spec: minReadySeconds === undefined ? {} : { minReadySeconds },
      ...(readySince ? { status: { conditions: [aCondition('Ready', 'True', { lastTransitionTime: readySince })] } } : {}),
    })
    const outcome = reportStatus(aScope({ machine }), { now, health: healthy, gracePeriod: 300_000, log: silent })
    expect(conditionText(machine, 'Available')).toBe(expected)
    expect(outcome.kind === 'requeue' ? `requeue ${outcome.after}` : outcome.kind).toBe(expectedOutcome)
  })
})

describe('phase', () => {
  const created = { bootstrapDataSecretCreated: true }
  const both = { ...created, infrastructureProvisioned: true }
  // biome-ignore format: a table
  test.each([
    ['Pending',      {}],
    ['Provisioning', { status: { initialization: created } }],
    ['Provisioned',  { spec: { providerID: 'x' }, status: { initialization: both } }],
    ['Running',      { spec: { providerID: 'x' }, status: { initialization: both, nodeRef: { name: 'n' } } }],
    ['Deleting',     { ...deleting, status: { initialization: both, nodeRef: { name: 'n' } } }],
  ] as const)('is %s', (phase, overrides) => {
    const machine = aMachine(overrides)
    reportStatus(aScope({ machine, bootstrap: config(), infrastructure: infra() }), { now, health: healthy, gracePeriod: 300_000, log: silent })
    expect(machine.status).toMatchObject({ phase, lastUpdated: '2026-01-01T01:00:00Z' })
  })

  test('lastUpdated does not change while the phase stays the same', () => {
    const machine = aMachine({ status: { phase: 'Pending', lastUpdated: hourAgo } })
    reportStatus(aScope({ machine }), { now, health: healthy, gracePeriod: 300_000, log: silent })
    expect(machine.status?.lastUpdated).toBe(hourAgo)
  })
})
