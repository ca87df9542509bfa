import { describe, expect, test } from 'vitest'
import type { ControlPlaneVersion, UpgradeFacts, WorkerTopology } from './upgrade.ts'
import { controlPlaneVersion, upgradeIsOver, workerVersions } from './upgrade.ts'

const controlPlaneAt = (version: string, overrides: Partial<NonNullable<UpgradeFacts['controlPlane']>> = {}) => ({
  version,
  provisioning: false,
  upgrading: false,
  ...overrides,
})

const facts = (overrides: Partial<UpgradeFacts> = {}): UpgradeFacts => ({
  desired: 'v1.34.1',
  plan: { controlPlane: ['v1.34.1'], workers: ['v1.34.1'] },
  controlPlane: controlPlaneAt('v1.33.2'),
  lowestWorker: 'v1.33.2',
  anyWorkerUpgrading: false,
  pending: new Set(),
  step: undefined,
  responses: new Map(),
  ...overrides,
})
const planForWorkersOnly = { controlPlane: [], workers: ['v1.34.1'] }
const pendingAfterStart = new Set(['AfterClusterUpgrade', 'AfterControlPlaneUpgrade'])

const clusterAllowed = new Map([['BeforeClusterUpgrade', 'proceed']])
const stepAllowed = new Map([...clusterAllowed, ['BeforeControlPlaneUpgrade', 'proceed']])

describe('controlPlaneVersion', () => {
  test.each([
    ['a new control plane gets the version of the topology', { controlPlane: undefined }, 'v1.34.1 stable'],
    [
      'a control plane that is provisioning keeps its version',
      { controlPlane: controlPlaneAt('v1.33.2', { provisioning: true }) },
      'v1.33.2 provisioning',
    ],
    [
      'a control plane that is upgrading keeps its version',
      { controlPlane: controlPlaneAt('v1.34.1', { upgrading: true }), pending: pendingAfterStart },
      'v1.34.1 upgrading',
    ],
    ['an upgrade begins with BeforeClusterUpgrade', {}, 'call BeforeClusterUpgrade'],
    [
      'a blocking response of BeforeClusterUpgrade delays the upgrade',
      { responses: new Map([['BeforeClusterUpgrade', 'blocked']]) },
      'v1.33.2 pending',
    ],
    [
      'a non-blocking response of BeforeClusterUpgrade leads to BeforeControlPlaneUpgrade',
      { responses: clusterAllowed },
      'call BeforeControlPlaneUpgrade',
    ],
    [
      'a blocking response of BeforeControlPlaneUpgrade delays the step',
      { responses: new Map([...clusterAllowed, ['BeforeControlPlaneUpgrade', 'blocked']]) },
      'v1.33.2 pending',
    ],
    ['a non-blocking response of BeforeControlPlaneUpgrade starts the step', { responses: stepAllowed }, 'v1.34.1 starting'],
    ['does not call BeforeClusterUpgrade while workers are upgrading', { anyWorkerUpgrading: true }, 'v1.33.2 pending'],
    [
      'an upgrade in progress calls BeforeControlPlaneUpgrade, and not BeforeClusterUpgrade again',
      { pending: new Set(['AfterClusterUpgrade']) },
      'call BeforeControlPlaneUpgrade',
    ],
    [
      'repeats a step that was interrupted at its start',
      { pending: pendingAfterStart, step: 'v1.34.1', responses: stepAllowed },
      'v1.34.1 starting',
    ],
    [
      'calls AfterControlPlaneUpgrade when the control plane has the version of the step',
      { pending: pendingAfterStart, step: 'v1.34.1', controlPlane: controlPlaneAt('v1.34.1'), plan: planForWorkersOnly },
      'call AfterControlPlaneUpgrade',
    ],
    [
      'calls BeforeWorkersUpgrade after AfterControlPlaneUpgrade',
      {
        pending: new Set(['AfterClusterUpgrade', 'BeforeWorkersUpgrade', 'AfterWorkersUpgrade']),
        controlPlane: controlPlaneAt('v1.34.1'),
        plan: planForWorkersOnly,
      },
      'call BeforeWorkersUpgrade',
    ],
    [
      'the control plane is stable while BeforeWorkersUpgrade blocks the workers',
      {
        pending: new Set(['AfterClusterUpgrade', 'BeforeWorkersUpgrade', 'AfterWorkersUpgrade']),
        controlPlane: controlPlaneAt('v1.34.1'),
        plan: planForWorkersOnly,
        responses: new Map([['BeforeWorkersUpgrade', 'blocked']]),
      },
      'v1.34.1 stable',
    ],
    [
      'does not call AfterWorkersUpgrade while workers are upgrading',
      {
        pending: new Set(['AfterClusterUpgrade', 'AfterWorkersUpgrade']),
        controlPlane: controlPlaneAt('v1.34.1'),
        plan: { controlPlane: [], workers: [] },
        anyWorkerUpgrading: true,
      },
      'v1.34.1 stable',
    ],
    [
      'calls AfterWorkersUpgrade when the workers are upgraded',
      {
        pending: new Set(['AfterClusterUpgrade', 'AfterWorkersUpgrade']),
        controlPlane: controlPlaneAt('v1.34.1'),
        plan: { controlPlane: [], workers: [] },
      },
      'call AfterWorkersUpgrade',
    ],
    [
      'calls a pending AfterControlPlaneUpgrade without a recorded step',
      { pending: pendingAfterStart, controlPlane: controlPlaneAt('v1.34.1'), plan: planForWorkersOnly },
      'call AfterControlPlaneUpgrade',
    ],
    [
      'a control plane whose version is the next step of the workers waits for them',
      {
        desired: 'v1.35.0',
        plan: { controlPlane: ['v1.35.0'], workers: ['v1.33.2', 'v1.35.0'] },
        pending: new Set(['AfterClusterUpgrade']),
      },
      'v1.33.2 pending, waits for workers',
    ],
    [
      'an upgraded control plane is stable',
      { controlPlane: controlPlaneAt('v1.34.1'), plan: { controlPlane: [], workers: [] } },
      'v1.34.1 stable',
    ],
  ] as [string, Partial<UpgradeFacts>, string][])('%s', (_, overrides, expected) => {
    const decision = controlPlaneVersion(facts(overrides))
    const waits = decision.kind === 'version' && decision.waitingForWorkers ? ', waits for workers' : ''
    expect(decision.kind === 'call' ? `call ${decision.hook}` : `${decision.version} ${decision.state}${waits}`).toBe(expected)
  })
})

const worker = (name: string, overrides: Partial<WorkerTopology> = {}): WorkerTopology => ({
  name,
  current: 'v1.33.2',
  upgrading: false,
  defer: false,
  hold: false,
  ...overrides,
})

/** Formats the versions of workers as `a:v1.34.1 starting, b:…`. */
function versionsText(overrides: Partial<UpgradeFacts>, workers: WorkerTopology[], concurrency = 1): string {
  const upgradeFacts = facts({
    controlPlane: controlPlaneAt('v1.34.1'),
    plan: planForWorkersOnly,
    pending: new Set(['AfterClusterUpgrade']),
    ...overrides,
  })
  const decision = controlPlaneVersion(upgradeFacts)
  if (decision.kind === 'call') throw new Error(`${decision.hook} must be called first`)
  return workerVersions(upgradeFacts, decision, workers, { concurrency })
    .map(({ name, version, state }) => `${name}:${version} ${state}`)
    .join(', ')
}

describe('workerVersions', () => {
  test('upgrades one worker at a time', () => {
    expect(versionsText({}, [worker('a'), worker('b')])).toBe('a:v1.34.1 starting, b:v1.33.2 pending')
  })
  test('upgrades as many workers at once as the concurrency allows', () => {
    expect(versionsText({}, [worker('a'), worker('b'), worker('c')], 2)).toBe(
      'a:v1.34.1 starting, b:v1.34.1 starting, c:v1.33.2 pending',
    )
  })
  // The spelling "MachineDepoyment" is upstream's.
  test.each([
    ['MachineDeployment', 'MachineDeployments: failed to compute MachineDepoyment', 'machine deployment'],
    ['MachinePool', 'MachinePools: failed to compute MachinePool', 'machine pool'],
  ] as const)('throws when the plan has no step for a %s that must be upgraded', (kind, computed, text) => {
    const upgradeFacts = facts({ controlPlane: controlPlaneAt('v1.34.1'), plan: { controlPlane: [], workers: [] } })
    const stable = { kind: 'version', version: 'v1.34.1', state: 'stable', pending: false } as never as ControlPlaneVersion
    expect(() => workerVersions(upgradeFacts, stable, [worker('a', { current: 'v1.35.0' })], { concurrency: 1, kind })).toThrow(
      `failed to compute ${computed} for topology "a": cannot compute the ${text} version if the ${text} is pending upgrade and the upgrade plan is not set`,
    )
  })
  test('counts a worker that still replaces its Machines towards the concurrency limit', () => {
    const a = worker('a', { current: 'v1.34.1', upgrading: true })
    expect(versionsText({ anyWorkerUpgrading: true, plan: { controlPlane: [], workers: [] } }, [a, worker('b')])).toBe(
      'a:v1.34.1 settled, b:v1.33.2 pending',
    )
  })
  test('counts a worker only once when it starts an upgrade while it still replaces Machines', () => {
    expect(versionsText({ anyWorkerUpgrading: true }, [worker('a', { upgrading: true }), worker('b'), worker('c')], 2)).toBe(
      'a:v1.34.1 starting, b:v1.34.1 starting, c:v1.33.2 pending',
    )
  })
  test('skips a deferred worker', () => {
    expect(versionsText({}, [worker('a', { defer: true }), worker('b')])).toBe('a:v1.33.2 deferred, b:v1.34.1 starting')
  })
  test('hold-upgrade-sequence defers its worker and all later workers', () => {
    expect(versionsText({}, [worker('a'), worker('b', { hold: true }), worker('c')], 3)).toBe(
      'a:v1.34.1 starting, b:v1.33.2 deferred, c:v1.33.2 deferred',
    )
  })
  test('workers are neither upgraded nor created while AfterControlPlaneUpgrade blocks', () => {
    const blocked = { pending: pendingAfterStart, responses: new Map([['AfterControlPlaneUpgrade', 'blocked'] as const]) }
    expect(versionsText(blocked, [worker('a'), worker('new', { current: undefined })])).toBe(
      'a:v1.33.2 pending, new:v1.34.1 pendingCreate',
    )
  })
  test('workers are neither upgraded nor created while BeforeWorkersUpgrade blocks', () => {
    const pending = new Set(['AfterClusterUpgrade', 'BeforeWorkersUpgrade', 'AfterWorkersUpgrade'])
    const blocked = { pending, responses: new Map([['BeforeWorkersUpgrade', 'blocked'] as const]) }
    expect(versionsText(blocked, [worker('a'), worker('new', { current: undefined })])).toBe(
      'a:v1.33.2 pending, new:v1.34.1 pendingCreate',
    )
  })
  test('workers wait while the control plane upgrades', () => {
    expect(versionsText({ controlPlane: controlPlaneAt('v1.34.1', { upgrading: true }) }, [worker('a')])).toBe(
      'a:v1.33.2 pending',
    )
  })
})

test('with a stable control plane, an upgrade is over when all workers are settled, none is upgrading, and no hook of a step is pending', () => {
  const upgradeFacts = facts({ controlPlane: controlPlaneAt('v1.34.1'), plan: { controlPlane: [], workers: [] } })
  const decision = controlPlaneVersion(upgradeFacts)
  if (decision.kind === 'call') throw new Error('unexpected')
  const settled = { name: 'a', version: 'v1.34.1', state: 'settled', upgrading: false } as const
  expect(upgradeIsOver(upgradeFacts, decision, [settled])).toBe(true)
  expect(upgradeIsOver(upgradeFacts, decision, [{ ...settled, upgrading: true }])).toBe(false)
  expect(upgradeIsOver(upgradeFacts, decision, [{ ...settled, state: 'deferred' }])).toBe(false)
  expect(upgradeIsOver({ ...upgradeFacts, pending: pendingAfterStart }, decision, [settled])).toBe(false)
})
