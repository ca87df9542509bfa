import { describe, expect, test } from 'vitest'
import { upgradePlan } from './upgrade-plan.ts'

const chain = ['v1.30.0', 'v1.30.4', 'v1.31.2', 'v1.32.1', 'v1.33.0', 'v1.33.2', 'v1.34.1', 'v1.35.0']

describe('upgrade plan', () => {
  test.each([
    ['no steps without a control plane', 'v1.34.1', undefined, [], [], [], []],
    ['no steps when control plane and workers have the version', 'v1.34.1', 'v1.34.1', ['v1.34.1'], [], [], []],
    [
      'an upgrade to the next minor version takes one step',
      'v1.34.1',
      'v1.33.2',
      ['v1.33.2', 'v1.33.2'],
      [],
      ['v1.34.1'],
      ['v1.34.1'],
    ],
    [
      'a step for workers with a lower version than the control plane',
      'v1.34.1',
      'v1.34.1',
      ['v1.33.2', 'v1.34.1'],
      [],
      [],
      ['v1.34.1'],
    ],
    ['no steps for workers when there are none', 'v1.34.1', 'v1.33.2', [], [], ['v1.34.1'], []],
    [
      'an upgrade over several minor versions uses the last known version of each, but none above the desired version',
      'v1.33.0',
      'v1.30.0',
      ['v1.30.0'],
      chain,
      ['v1.31.2', 'v1.32.1', 'v1.33.0'],
      ['v1.33.0'],
    ],
    ['an upgrade to another patch version takes one step', 'v1.30.4', 'v1.30.0', [], chain, ['v1.30.4'], []],
    [
      'of several builds of the desired version, later ones are ignored',
      'v1.33.1+b',
      'v1.31.0+b',
      [],
      // Upstream: upgrade_plan_test.go, "version with not sortable build tags".
      'v1.31.0+a v1.31.0+b v1.31.0+c v1.31.1+a v1.32.0+a v1.32.0+b v1.32.0+c v1.33.0+b v1.33.1+a v1.33.1+b v1.33.1+c'.split(' '),
      ['v1.32.0+c', 'v1.33.1+b'],
      [],
    ],
    [
      'workers upgrade at most three minor versions at a time',
      'v1.35.0',
      'v1.30.0',
      ['v1.30.0'],
      chain,
      ['v1.31.2', 'v1.32.1', 'v1.33.2', 'v1.34.1', 'v1.35.0'],
      ['v1.33.2', 'v1.35.0'],
    ],
  ] as const)('%s', (_, desired, controlPlane, workers, known, expectedControlPlane, expectedWorkers) => {
    expect(upgradePlan({ desired, controlPlane, workers, known })).toEqual({
      controlPlane: expectedControlPlane,
      workers: expectedWorkers,
    })
  })

  test.each([
    ['v1.35.0', 'v1.33.2', [], 'cannot compute an upgrade plan from v1.33.2 to v1.35.0'],
    [
      'v1.34.9',
      'v1.33.2',
      chain,
      'invalid ControlPlane upgrade plan: control plane upgrade plan must end with version v1.34.9, ends with v1.34.1 instead',
    ],
    [
      'v1.33.2',
      'v1.31.2',
      ['v1.31.2', 'v1.33.2'],
      'invalid ControlPlane upgrade plan: item 0; expecting a version with minor 31 or 32, found version v1.33.2',
    ],
    ['v1.33.0', 'v1.33.2', [], 'invalid ControlPlane upgrade plan: item 0; version v1.33.0 must be greater than v1.33.2'],
  ] as const)('to %s from %s is rejected', (desired, controlPlane, known, message) => {
    expect(() => upgradePlan({ desired, controlPlane, workers: [], known })).toThrow(message)
  })

  test('is rejected when workers have a higher patch version than the topology', () => {
    const versions = { desired: 'v1.34.0', controlPlane: 'v1.34.0', known: [] }
    expect(() => upgradePlan({ ...versions, workers: ['v1.34.5'] })).toThrow(
      'invalid workers upgrade plan, item 0; version v1.34.0 must be greater than v1.34.5',
    )
  })

  test.each([
    ['have a higher minor version than the topology', { desired: 'v1.34.0', controlPlane: 'v1.34.0', workers: ['v1.35.0'] }],
    ['would need a step to an unknown version', { desired: 'v1.35.0', controlPlane: 'v1.34.0', workers: ['v1.30.0'] }],
  ])('workers that %s have no steps', (_, versions) => {
    const { controlPlane, desired } = versions
    expect(upgradePlan({ ...versions, known: [] })).toEqual({
      controlPlane: controlPlane === desired ? [] : [desired],
      workers: [],
    })
  })
})

describe('a plan of an extension', () => {
  const from = { desired: 'v1.36.0', controlPlane: 'v1.34.1', workers: ['v1.32.0'], known: [] }
  const steps = ['v1.35.0', 'v1.36.0']
  test.each([
    ['without steps for workers gets computed steps for workers', { controlPlane: steps, workers: [] }, ['v1.35.0', 'v1.36.0']],
    [
      'with steps for workers is used unchanged',
      { controlPlane: steps, workers: ['v1.34.1', 'v1.36.0'] },
      ['v1.34.1', 'v1.36.0'],
    ],
  ])('%s', (_, extensionPlan, workers) =>
    expect(upgradePlan({ ...from, extensionPlan })).toEqual({ controlPlane: steps, workers }),
  )

  test.each([
    [
      'contains a version for workers that is not a step of the control plane',
      { workers: ['v1.33.0', 'v1.36.0'] },
      "invalid workers upgrade plan: versions v1.33.0 doesn't match any versions in the control plane upgrade plan nor the control plane version",
    ],
    [
      'upgrades workers by more than three minor versions in one step',
      { workers: ['v1.36.0', 'v1.35.0'] },
      'invalid workers upgrade plan, item 0; workers cannot go from minor 32 (v1.32.0) to minor 36 (v1.36.0), an intermediate step is required to comply with Kubernetes version skew rules',
    ],
    [
      'repeats a version for workers',
      { workers: ['v1.35.0', 'v1.35.0', 'v1.36.0'] },
      'invalid workers upgrade plan, item 1; version v1.35.0 must be greater than v1.35.0',
    ],
    [
      'has steps for workers that end before the desired version',
      { workers: ['v1.35.0'] },
      'invalid workers upgrade plan; workers upgrade plan must end with version v1.36.0, ends with v1.35.0 instead',
    ],
    [
      'has steps for the control plane that end before the desired version',
      { controlPlane: ['v1.35.0'] },
      'invalid ControlPlane upgrade plan: control plane upgrade plan must end with version v1.36.0, ends with v1.35.0 instead',
    ],
    [
      'contains an invalid version for the control plane',
      { controlPlane: ['next'] },
      'invalid ControlPlane upgrade plan: item 0; failed to parse version next: Invalid character(s) found in major number "0next"',
    ],
  ])('is rejected when it %s', (_, planFields, message) =>
    expect(() => upgradePlan({ ...from, extensionPlan: { controlPlane: steps, workers: [], ...planFields } })).toThrow(message),
  )

  test('is rejected when it contains an invalid version for workers, and no version for the control plane', () => {
    const upgraded = { ...from, controlPlane: from.desired }
    expect(() => upgradePlan({ ...upgraded, extensionPlan: { controlPlane: [], workers: ['1.x'] } })).toThrow(
      'invalid workers upgrade plan, item 0; failed to parse version 1.x: Invalid character(s) found in minor number "x"',
    )
  })

  test('is rejected when it has steps for workers, but there are no workers', () =>
    expect(() => upgradePlan({ ...from, workers: [], extensionPlan: { controlPlane: steps, workers: ['v1.36.0'] } })).toThrow(
      'invalid worker upgrade plan; there are no workers or workers already at the desired version',
    ))

  test('is rejected when it has builds of one version in another order for workers than for the control plane', () => {
    const builds = { desired: 'v1.34.1+c', controlPlane: 'v1.34.1+a', workers: ['v1.34.1+a'], known: [] }
    const controlPlane = ['v1.34.1+b', 'v1.34.1+c']
    expect(upgradePlan({ ...builds, extensionPlan: { controlPlane, workers: controlPlane } }).workers).toEqual(controlPlane)
    expect(() =>
      upgradePlan({ ...builds, extensionPlan: { controlPlane, workers: ['v1.34.1+c', 'v1.34.1+b', 'v1.34.1+c'] } }),
    ).toThrow('invalid workers upgrade plan, item 1; version v1.34.1+b must be before v1.34.1+c')
  })
})
