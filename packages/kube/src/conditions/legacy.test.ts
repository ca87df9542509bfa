import { describe, expect, test } from 'vitest'
import { freeze } from '../json.ts'
import {
  type LegacyCondition,
  legacyAggregate,
  legacyConditionsOf,
  legacyFalse,
  legacySummary,
  legacyTrue,
  legacyUnknown,
  mirrorLegacyReady,
  mirrorProviderReady,
  type NewLegacyCondition,
  setLegacyConditions,
} from './legacy.ts'

const now = Date.UTC(2026, 0, 2, 3, 4, 5, 678)
const then = '2026-01-01T00:00:00Z'
const since = (condition: NewLegacyCondition): LegacyCondition => ({ lastTransitionTime: then, ...condition })

/** Formats a condition as `False/Info Reason: message`. */
const text = (condition: NewLegacyCondition | undefined): string => {
  if (!condition) return 'none'
  const { status, severity, reason, message } = condition
  return `${status}${severity ? `/${severity}` : ''}${reason ? ` ${reason}` : ''}${message ? `: ${message}` : ''}`
}

describe('setLegacyConditions', () => {
  test('lists Ready first and all other types alphabetically, and keeps conditions that were not computed', () => {
    const existing = [since(legacyTrue('Ready')), since(legacyTrue('B'))]
    const set = setLegacyConditions(existing, [legacyTrue('C'), legacyTrue('A'), legacyTrue('Zed')], now)
    expect(set.map(({ type }) => type)).toEqual(['Ready', 'A', 'B', 'C', 'Zed'])
  })

  test.each<[string, NewLegacyCondition, string]>([
    ['stays when no field changes', legacyFalse('A', 'Why', 'Info', 'so'), then],
    ['changes with the message', legacyFalse('A', 'Why', 'Info', 'because'), '2026-01-02T03:04:05Z'],
    ['changes with the severity', legacyFalse('A', 'Why', 'Error', 'so'), '2026-01-02T03:04:05Z'],
    ['changes with the reason', legacyFalse('A', 'How', 'Info', 'so'), '2026-01-02T03:04:05Z'],
    [
      'changes with the status, to the current time also for a mirrored condition',
      { ...legacyTrue('A'), lastTransitionTime: '2025-12-31T00:00:00Z' },
      '2026-01-02T03:04:05Z',
    ],
  ])('the transition time %s', (_, computed, time) => {
    const [condition] = setLegacyConditions([since(legacyFalse('A', 'Why', 'Info', 'so'))], [computed], now)
    expect(condition?.lastTransitionTime).toBe(time)
  })

  test('a mirrored condition that is new keeps its time', () => {
    const [condition] = setLegacyConditions(undefined, [{ ...legacyTrue('A'), lastTransitionTime: then }], now)
    expect(condition).toEqual({ type: 'A', status: 'True', lastTransitionTime: then })
  })

  test('returns the same list when nothing changes', () => {
    const existing = freeze(setLegacyConditions([], [legacyFalse('A', 'Why', 'Info')], now))
    expect(setLegacyConditions(existing, [legacyFalse('A', 'Why', 'Info')], now + 60_000)).toBe(existing)
  })

  test('an empty reason or message is omitted, a long message is truncated', () => {
    const [empty, long] = setLegacyConditions(
      [],
      [legacyFalse('A', '', 'Info'), legacyUnknown('B', 'Why', 'x'.repeat(20_000))],
      now,
    )
    expect(empty).toEqual({ type: 'A', status: 'False', severity: 'Info', lastTransitionTime: '2026-01-02T03:04:05Z' })
    expect(long?.message).toHaveLength(10_240)
  })
})

describe('mirrors of Ready', () => {
  const fallback = legacyFalse('InfrastructureReady', 'WaitingForInfrastructure', 'Info')
  test.each<[string, unknown, string]>([
    ['the fallback when the object reports no conditions', undefined, 'False/Info WaitingForInfrastructure'],
    [
      'the condition of contract v1beta1',
      [{ type: 'Ready', status: 'False', severity: 'Error', reason: 'No', message: 'm' }],
      'False/Error No: m',
    ],
    [
      'the condition of contract v1beta2, without a severity',
      [{ type: 'Ready', status: 'False', reason: 'NotReady', message: 'm' }],
      'False NotReady: m',
    ],
    [
      'the condition in a list with entries that are null or lack a status',
      [null, { type: 'Ready' }, { type: 'Ready', status: 'True' }],
      'True',
    ],
    [
      'the condition without its fields that are null',
      [{ type: 'Ready', status: 'False', severity: null, reason: null, message: 'm', lastTransitionTime: null }],
      'False: m',
    ],
    ...[
      ['an entry that is no object', 'Ready'],
      ['an entry with a reason that is no text', { type: 'Other', status: 'True', reason: 5 }],
      ['an entry with an invalid time', { type: 'Other', status: 'True', lastTransitionTime: 'yesterday' }],
    ].map(([name, entry]): [string, unknown, string] => [
      `the fallback when the object's conditions have ${name as string}`,
      [entry, { type: 'Ready', status: 'True' }],
      'False/Info WaitingForInfrastructure',
    ]),
    ['the fallback when the conditions are not a list', 'conditions', 'False/Info WaitingForInfrastructure'],
  ])('a mirror of the Ready condition of a provider object is %s', (_, conditions, expected) => {
    const mirrored = mirrorProviderReady({ status: { conditions } }, 'InfrastructureReady', fallback)
    expect(text(mirrored)).toBe(expected)
    expect(mirrored.type).toBe('InfrastructureReady')
  })

  test('mirrorLegacyReady copies the legacy Ready condition of an object with its time, and ignores its Ready condition of v1beta2', () => {
    const status = {
      conditions: [since(legacyTrue('Ready'))],
      deprecated: { v1beta1: { conditions: [since(legacyFalse('Ready', 'No', 'Info'))] } },
    }
    expect(mirrorLegacyReady({ status }, 'MachineSetReady', fallback)).toMatchObject({
      type: 'MachineSetReady',
      reason: 'No',
      lastTransitionTime: then,
    })
  })

  test('legacyConditionsOf returns an empty list for an object without legacy conditions', () => {
    expect(legacyConditionsOf({ status: { deprecated: { v1beta1: {} } } })).toEqual([])
  })
})

describe('legacySummary', () => {
  const error = legacyFalse('A', 'Broken', 'Error', 'a')
  const warning = legacyFalse('B', 'Odd', 'Warning', 'b')
  const info = legacyFalse('C', 'Slow', 'Info', 'c')
  const ok = legacyTrue('D')
  const unknown = legacyUnknown('E', 'Dark', 'e')
  const bare: NewLegacyCondition = { type: 'F', status: 'False', reason: 'Bare', message: 'f' }
  const of = ['F', 'E', 'D', 'C', 'B', 'A']
  test.each<[string, NewLegacyCondition[], string]>([
    ['without a reported condition there is no summary', [], 'none'],
    ['an error takes precedence over all other conditions', [unknown, ok, info, warning, error], 'False/Error Broken: a'],
    ['a warning takes precedence over information', [unknown, ok, info, warning], 'False/Warning Odd: b'],
    ['information takes precedence over True', [unknown, ok, info], 'False/Info Slow: c'],
    ['True takes precedence over Unknown', [unknown, ok], 'True'],
    ['a single Unknown condition determines the summary', [unknown], 'Unknown Dark: e'],
    ['Unknown takes precedence over False without severity', [bare, unknown], 'Unknown Dark: e'],
    ['a single False condition without severity determines the summary', [bare], 'False Bare: f'],
    ['an earlier Ready condition is ignored', [legacyFalse('Ready', 'Old', 'Error')], 'none'],
    ['conditions that are not listed are ignored', [legacyFalse('G', 'Other', 'Error'), ok], 'True'],
  ])('%s', (_, conditions, expected) => {
    expect(text(legacySummary(conditions, { of }))).toBe(expected)
  })

  test('of several conditions with equal severity, the first by the order of `of` determines the summary', () => {
    const both = [legacyFalse('A', 'First', 'Info', 'a'), legacyFalse('B', 'Second', 'Info', 'b')]
    expect(text(legacySummary(both, { of: ['B', 'A'] }))).toBe('False/Info Second: b')
  })

  test.each<[string, NewLegacyCondition[], string]>([
    [
      'the message counts the completed steps',
      [legacyTrue('A'), legacyFalse('B', 'Waiting', 'Info')],
      'False/Info Waiting: 1 of 2 completed',
    ],
    [
      'a step that is not reported counts as not completed',
      [legacyFalse('B', 'Waiting', 'Info')],
      'False/Info Waiting: 0 of 2 completed',
    ],
    ['the summary is True, without a message, when all steps are completed', [legacyTrue('A'), legacyTrue('B')], 'True'],
    [
      'steps are not counted when a condition that is not a step is reported',
      [legacyTrue('A'), legacyTrue('B'), legacyFalse('C', 'Sick', 'Warning', 'm')],
      'False/Warning Sick: m',
    ],
  ])('%s', (_, conditions, expected) => {
    expect(text(legacySummary(conditions, { of: ['A', 'B', 'C'], steps: ['A', 'B'] }))).toBe(expected)
  })
})

describe('legacyAggregate', () => {
  const machine = (name: string, ready?: NewLegacyCondition) => ({
    kind: 'Machine',
    metadata: { name },
    status: { deprecated: { v1beta1: { conditions: ready ? [since(ready)] : [] } } },
  })
  const waiting = legacyFalse('Ready', 'WaitingForInfrastructure', 'Info', '1 of 2 completed')
  const failed = legacyFalse('Ready', 'Failed @ DevMachine/x', 'Error')
  // biome-ignore format: a table
  test.each<[string, ReturnType<typeof machine>[], string]>([
    ['there is no aggregate when no object reports Ready',           [machine('a'), machine('b')],                                        'none'],
    ['is True when all objects are Ready',                [machine('a', legacyTrue('Ready')), machine('b', legacyTrue('Ready'))], 'True'],
    ['is False when one object is not Ready',             [machine('a', legacyTrue('Ready')), machine('b', waiting)],          'False/Info WaitingForInfrastructure @ Machine/b: 1 of 2 completed'],
    ['of several objects with equal severity, the first by name gives the reason',    [machine('b', waiting), machine('a', waiting), machine('c')],        'False/Info WaitingForInfrastructure @ Machine/a: 0 of 3 completed'],
    ['a reason that already names an object stays unchanged',    [machine('a', failed), machine('b', waiting)],                      'False/Error Failed @ DevMachine/x: 0 of 2 completed'],
  ])('%s', (_, machines, expected) => {
    expect(text(legacyAggregate(machines, 'MachinesReady'))).toBe(expected)
  })
})
