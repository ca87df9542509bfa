import { proceed } from '@capstan/controller'
import { legacyConditionsOf } from '@capstan/kube'
import { aCluster, aMachine, aNode, aProviderObject, foundObject, nodeConditions } from '@capstan/testing'
import { describe, expect, test } from 'vitest'
import { reportLegacyStatus } from './legacy-status.ts'
import type { MachineScope, StepResult } from './scope.ts'

const now = Date.UTC(2026, 0, 1, 1)
const deletionTimestamp = '2026-01-01T00:00:00Z'
const missing = { state: 'missing' } as const

const infra = (status: object = {}, metadata: object = {}) => foundObject(aProviderObject('DevMachine', { status, metadata }))
const config = (status: object = {}) => foundObject(aProviderObject('DevConfig', { group: 'bootstrap.example.com', status }))
const ready = (status: string, overrides: object = {}) => ({ conditions: [{ type: 'Ready', status, ...overrides }] })
const provisioned = { initialization: { provisioned: true } }
const created = { initialization: { dataSecretCreated: true } }

const aScope = (overrides: Partial<MachineScope> = {}): MachineScope => ({
  machine: aMachine({ spec: { providerID: 'dev:///m1' }, status: { nodeRef: { name: 'node-1' } } }),
  cluster: aCluster(),
  machineSet: undefined,
  machineDeployment: undefined,
  bootstrap: config(created),
  infrastructure: infra(provisioned),
  node: { state: 'found', node: aNode() },
  deletion: { reason: 'Deleting', message: 'Deletion started' },
  steps: {},
  ...overrides,
})

/** Computes the status, and returns one condition as `False/Info Reason: message`, or `-` if the condition is absent. */
function reported(scope: MachineScope, type: string): string {
  reportLegacyStatus(scope, now)
  const condition = legacyConditionsOf(scope.machine).find((candidate) => candidate.type === type)
  if (!condition) return '-'
  const { status, severity, reason, message } = condition
  return `${status}${severity ? `/${severity}` : ''}${reason ? ` ${reason}` : ''}${message ? `: ${message}` : ''}`
}

const newMachine = () => aMachine()
const deletingMachine = (overrides: Parameters<typeof aMachine>[0] = {}) =>
  aMachine({ metadata: { deletionTimestamp }, ...overrides })

describe('InfrastructureReady', () => {
  // biome-ignore format: a table
  test.each<[string, Partial<MachineScope>, string]>([
    ['not read',                    { infrastructure: { state: 'unread' } },                       '-'],
    ['missing',                     { infrastructure: missing },                                   '-'],
    ['not provisioned',             { infrastructure: infra() },                                   'False/Info WaitingForInfrastructure'],
    ['provisioned, without Ready',  {},                                                            'True'],
    ['Ready of contract v1beta1',   { infrastructure: infra(ready('False', { severity: 'Error', reason: 'NoQuota', message: 'm' })) }, 'False/Error NoQuota: m'],
    ['Ready of contract v1beta2',   { infrastructure: infra(ready('True', { reason: 'Ready', message: '' })) },                        'True Ready'],
    ['deleting, not provisioned',   { machine: deletingMachine(), infrastructure: infra() },               'False/Info Deleting'],
    ['deleting, still provisioned', { machine: deletingMachine() },                                        'True'],
    ['deleted, step not reached',   { machine: deletingMachine(), infrastructure: missing },               '-'],
    ['deleted',                     { machine: deletingMachine(), infrastructure: missing, steps: { infrastructure: { state: 'done' } } }, 'False/Info Deleted'],
  ])('is computed from the state: %s', (_, scope, expected) => {
    expect(reported(aScope(scope), 'InfrastructureReady')).toBe(expected)
  })
})

describe('BootstrapReady', () => {
  const withSecret = aMachine({
    spec: { bootstrap: { dataSecretName: 'secret', configRef: aMachine().spec.bootstrap.configRef! } },
  })
  // biome-ignore format: a table
  test.each<[string, Partial<MachineScope>, string]>([
    ['no config',                               { bootstrap: { state: 'none' } },                                '-'],
    ['not created',                             { bootstrap: config() },                                         'False/Info WaitingForDataSecret'],
    ['created is not a boolean',                { bootstrap: config({ initialization: { dataSecretCreated: 'yes' } }) }, '-'],
    ['created, without Ready',                  {},                                                              'True'],
    ['with Ready',                              { bootstrap: config(ready('False', { severity: 'Warning', reason: 'Slow' })) }, 'False/Warning Slow'],
    ['the Machine has the data secret already', { machine: withSecret, bootstrap: config(ready('False', { reason: 'Slow' })) }, 'True'],
    ['deleting',                                { machine: deletingMachine(), bootstrap: config() },                     'False/Info Deleting'],
    ['deleted',                                 { machine: deletingMachine(), bootstrap: missing, steps: { bootstrap: { state: 'done' } } }, 'False/Info Deleted'],
    ['nothing to delete',                       { machine: deletingMachine(), bootstrap: { state: 'none' }, steps: { bootstrap: { state: 'skipped' } } }, '-'],
  ])('is computed from the state: %s', (_, scope, expected) => {
    expect(reported(aScope(scope), 'BootstrapReady')).toBe(expected)
  })
})

describe('NodeHealthy', () => {
  const node = (wrong: Parameters<typeof nodeConditions>[0]) =>
    ({ state: 'found', node: aNode({ status: { conditions: nodeConditions(wrong) } }) }) as const
  const allUnknown = { Ready: 'Unknown', MemoryPressure: 'Unknown', DiskPressure: 'Unknown', PIDPressure: 'Unknown' }
  const twoWrongText = 'Node condition Ready is Unknown. Node condition DiskPressure is True'
  const allUnknownText =
    'Node condition Ready is Unknown. Node condition MemoryPressure is Unknown. Node condition DiskPressure is Unknown. Node condition PIDPressure is Unknown'
  // biome-ignore format: a table
  test.each<[string, Partial<MachineScope>, string]>([
    ['no providerID',                  { node: { state: 'noProviderID' } },                          'False/Info WaitingForNodeRef'],
    ['not connected',                  { node: { state: 'disconnected' } },                     '-'],
    ['could not be read',              { node: { state: 'unread' } },                           'Unknown NodeInspectionFailed: Failed to get the Node for this Machine by ProviderID'],
    ['not registered yet',             { machine: newMachine(), node: missing },                     'False/Warning NodeProvisioning: Waiting for a node with matching ProviderID to exist'],
    ['deleted',                        { node: missing },                                       'False/Error NodeNotFound'],
    ['deleted with the Machine',       { machine: deletingMachine(), node: missing },                   '-'],
    ['healthy',                        {},                                                      'True'],
    ['one condition bad, one unknown', { node: node({ Ready: 'Unknown', DiskPressure: 'True' }) }, `False/Warning NodeConditionsFailed: ${twoWrongText}`],
    ['some conditions unknown',        { node: node({ Ready: 'Unknown' }) },                    'True'],
    ['all conditions unknown',         { node: node(allUnknown) },                                    `Unknown NodeConditionsFailed: ${allUnknownText}`],
    ['infrastructure being deleted',   { infrastructure: infra(provisioned, { deletionTimestamp }) }, 'False/Info Deleting'],
    ['infrastructure deleted',         { infrastructure: missing },                             'False/Info Deleting'],
    ['the Node cannot be deleted',     { machine: deletingMachine(), steps: { node: { state: 'failed', message: 'no', outcome: proceed() } } }, 'False/Warning DeletionFailed'],
  ])('is computed from the state: %s', (_, scope, expected) => {
    expect(reported(aScope(scope), 'NodeHealthy')).toBe(expected)
  })
})

describe('the steps of a deletion', () => {
  const waiting: StepResult = { state: 'waiting', outcome: proceed() }
  const failed: StepResult = { state: 'failed', message: 'no answer', outcome: proceed() }
  const done: StepResult = { state: 'done' }
  const skipped: StepResult = { state: 'skipped' }
  const stage = { reason: 'DrainingNode', message: 'Drain not completed yet' } as const
  // biome-ignore format: a table
  test.each<[string, MachineScope['steps'], string, string]>([
    ['hooks block the drain',             { preDrainHooks: waiting },     'PreDrainDeleteHookSucceeded',     'False/Info WaitingExternalHook'],
    ['no hook blocks the drain',          { preDrainHooks: done },        'PreDrainDeleteHookSucceeded',     'True'],
    ['not drained yet',                   { drain: waiting },             'DrainingSucceeded',               'False/Info Draining: Drain not completed yet'],
    ['cannot be drained',                 { drain: failed },              'DrainingSucceeded',               'False/Warning DrainingFailed: no answer'],
    ['drained',                           { drain: done },                'DrainingSucceeded',               'True'],
    ['drain is skipped',                  { drain: skipped },             'DrainingSucceeded',               '-'],
    ['volumes are attached',              { volumes: waiting },           'VolumeDetachSucceeded',           'False/Info WaitingForVolumeDetach: Waiting for node volumes to be detached'],
    ['volumes could not be read',         { volumes: failed },            'VolumeDetachSucceeded',           'False/Info WaitingForVolumeDetach: Waiting for node volumes to be detached'],
    ['no volume is attached',             { volumes: done },              'VolumeDetachSucceeded',           'True'],
    ['hooks block the infrastructure',    { preTerminateHooks: waiting }, 'PreTerminateDeleteHookSucceeded', 'False/Info WaitingExternalHook'],
    ['no hook blocks the infrastructure', { preTerminateHooks: done },    'PreTerminateDeleteHookSucceeded', 'True'],
    ['step not reached',                  {},                             'PreTerminateDeleteHookSucceeded', '-'],
  ])('determine a condition: %s', (_, steps, type, expected) => {
    expect(reported(aScope({ machine: deletingMachine(), deletion: stage, steps }), type)).toBe(expected)
  })
})

describe('Ready', () => {
  const failedHealthCheck = {
    type: 'HealthCheckSucceeded',
    status: 'False',
    severity: 'Warning',
    reason: 'UnhealthyNode',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  }
  const unhealthy = aMachine({ status: { deprecated: { v1beta1: { conditions: [failedHealthCheck] } } } })
  // biome-ignore format: a table
  test.each<[string, Partial<MachineScope>, string]>([
    ['both steps pending',        { machine: newMachine(), bootstrap: config(), infrastructure: infra() }, 'False/Info WaitingForInfrastructure: 0 of 2 completed'],
    ['one step pending',          { machine: newMachine(), infrastructure: infra() },                      'False/Info WaitingForInfrastructure: 1 of 2 completed'],
    ['unhealthy',                 { machine: unhealthy },                                             'False/Warning UnhealthyNode'],
    ['all conditions are met',    {},                                                                 'True'],
    ['missing Node',              { node: missing },                                                  'True'],
    ['infrastructure deleted',    { machine: deletingMachine(), bootstrap: missing, infrastructure: missing, steps: { infrastructure: { state: 'done' } } }, 'False/Info Deleted'],
  ])('is computed from the state: %s', (_, scope, expected) => {
    expect(reported(aScope(scope), 'Ready')).toBe(expected)
  })
})

test('reporting the same conditions again changes nothing', () => {
  const scope = aScope({ machine: deletingMachine(), steps: { drain: { state: 'waiting', outcome: proceed() } } })
  reportLegacyStatus(scope, now)
  const firstReport = structuredClone(scope.machine.status)
  reportLegacyStatus(scope, now + 60_000)
  expect(scope.machine.status).toEqual(firstReport)
})
