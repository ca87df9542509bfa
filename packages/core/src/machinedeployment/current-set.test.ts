import type { MachineDeployment, MachineSet } from '@capstan/api'
import { describe, expect, test } from 'vitest'
import { setsByRole } from './current-set.ts'
import { currentRevision } from './desired-machine-set.ts'

const now = Date.UTC(2026, 0, 10)
const template = (version: string) => ({
  spec: { version, bootstrap: {}, infrastructureRef: { apiGroup: 'i', kind: 'T', name: 't' } },
})
const aDeployment = (version: string, after?: string): MachineDeployment =>
  ({ spec: { template: template(version), ...(after ? { rollout: { after } } : {}) } }) as unknown as MachineDeployment
const aSet = (name: string, day: number, version: string, replicas: number, annotations = {}): MachineSet =>
  ({
    metadata: { namespace: 'default', name, creationTimestamp: `2026-01-0${day}T00:00:00Z`, annotations },
    spec: { replicas, template: template(version) },
  }) as unknown as MachineSet

describe('the current set', () => {
  const sets = [aSet('c', 3, 'v1', 1), aSet('b', 2, 'v1', 3), aSet('a', 1, 'v1', 1), aSet('x', 4, 'v0', 9)]
  test.each([
    ['is the largest with the template', aDeployment('v1'), 'b', ['a', 'c', 'x'], ''],
    [
      'is absent when no set has the template',
      aDeployment('v2'),
      undefined,
      ['a', 'b', 'c', 'x'],
      'MachineSet x: Version v0, v2 required',
    ],
    ['ignores a future rollout.after', aDeployment('v1', '2026-01-20T00:00:00Z'), 'b', ['a', 'c', 'x'], ''],
    ['is younger than an expired rollout.after', aDeployment('v1', '2026-01-02T12:00:00Z'), 'c', ['a', 'b', 'x'], ''],
    [
      'may have been created exactly at an expired rollout.after',
      aDeployment('v1', '2026-01-03T00:00:00Z'),
      'c',
      ['a', 'b', 'x'],
      '',
    ],
    [
      'is absent when rollout.after is now and all sets are older',
      aDeployment('v1', '2026-01-10T00:00:00Z'),
      undefined,
      ['a', 'b', 'c', 'x'],
      'MachineDeployment spec.rollout.after expired',
    ],
    [
      'is absent when all sets are older than an expired rollout.after',
      aDeployment('v1', '2026-01-08T00:00:00Z'),
      undefined,
      ['a', 'b', 'c', 'x'],
      'MachineDeployment spec.rollout.after expired',
    ],
  ])('%s', (_, deployment, current, old, reason) => {
    const roles = setsByRole(deployment, sets, now)
    expect(roles.current?.metadata.name).toBe(current)
    expect(roles.old.map(({ metadata }) => metadata.name)).toEqual(old)
    expect(roles.createReason).toBe(reason)
  })

  test.each([
    ['sets with another template', aDeployment('v1'), ['x']],
    ['no set, when all are older than an expired rollout.after', aDeployment('v1', '2026-01-08T00:00:00Z'), []],
    [
      'sets with another template that were created at an expired rollout.after or later',
      aDeployment('v2', '2026-01-03T00:00:00Z'),
      ['c', 'x'],
    ],
    [
      'all sets with another template, when rollout.after is in the future',
      aDeployment('v2', '2026-01-20T00:00:00Z'),
      ['a', 'b', 'c', 'x'],
    ],
  ])('may receive Machines for in-place updates from %s', (_, deployment, eligible) => {
    expect(setsByRole(deployment, sets, now).eligible.map(({ metadata }) => metadata.name)).toEqual(eligible)
  })

  test('is absent without sets', () => {
    expect(setsByRole(aDeployment('v1'), [], now)).toEqual({
      current: undefined,
      old: [],
      eligible: [],
      createReason: 'no MachineSets exist for the MachineDeployment',
    })
  })
})

describe('the revision', () => {
  const revision = (number: string, history?: string) =>
    aSet('s', 1, 'v1', 1, {
      'machinedeployment.clusters.x-k8s.io/revision': number,
      ...(history ? { 'machinedeployment.clusters.x-k8s.io/revision-history': history } : {}),
    })
  test.each([
    ['of the first set is 1', undefined, [], { current: '1' }],
    ['of a new set is one more than the highest of the old sets', undefined, [revision('1'), revision('4')], { current: '5' }],
    ['stays while no set has a newer one', revision('3', '1'), [revision('2')], { current: '3', history: '1' }],
    ['increases when a set becomes current again', revision('1'), [revision('2')], { current: '3', history: '1' }],
    ['leaves all its earlier numbers in the history', revision('3', '1'), [revision('4')], { current: '5', history: '1,3' }],
    [
      'ignores old sets whose revision is missing or not a number',
      revision('1'),
      [revision('x'), aSet('s', 1, 'v1', 1)],
      { current: '1' },
    ],
  ])('%s', (_, current, old, expected) => {
    expect(currentRevision(current, old)).toEqual(expected)
  })

  test('of the current set must be a number: otherwise the error names the set', () =>
    expect(() => currentRevision(revision('x'), [])).toThrow(
      'failed to parse current revision on MachineSet default/s: strconv.ParseInt: parsing "x": invalid syntax',
    ))
})
