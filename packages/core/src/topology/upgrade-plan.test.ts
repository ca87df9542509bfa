import { describe, expect, test } from 'vitest'
import { upgradePlan } from './upgrade-plan.ts'

const chain = ['v1.30.0', 'v1.30.4', 'v1.31.2', 'v1.32.1', 'v1.33.0', 'v1.33.2', 'v1.34.1', 'v1.35.0']

describe('upgrade plan', () => {
  test.each([
    ['nothing to do while there is no control plane', 'v1.34.1', undefined, [], [], [], []],
    ['nothing to do when all is there', 'v1.34.1', 'v1.34.1', ['v1.34.1'], [], [], []],
    ['one minor in one step', 'v1.34.1', 'v1.33.2', ['v1.33.2', 'v1.33.2'], [], ['v1.34.1'], ['v1.34.1']],
    ['workers that lag behind', 'v1.34.1', 'v1.34.1', ['v1.33.2', 'v1.34.1'], [], [], ['v1.34.1']],
    ['no workers, no plan for them', 'v1.34.1', 'v1.33.2', [], [], ['v1.34.1'], []],
    [
      'a chain takes the last version of each minor',
      'v1.33.0',
      'v1.30.0',
      ['v1.30.0'],
      chain,
      ['v1.31.2', 'v1.32.1', 'v1.33.0'],
      ['v1.33.0'],
    ],
    ['a patch in a chain goes straight', 'v1.30.4', 'v1.30.0', [], chain, ['v1.30.4'], []],
    [
      'workers stop every third minor',
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
  ] as const)('to %s from %s is refused', (desired, controlPlane, known, message) => {
    expect(() => upgradePlan({ desired, controlPlane, workers: [], known })).toThrow(message)
  })
})
