import { describe, expect, test } from 'vitest'
import { conditionTypes } from '../condition.ts'
import { freeze } from '../json.ts'
import type { Condition } from '../schema.ts'
import { aggregate } from './aggregate.ts'
import { mirror } from './mirror.ts'
import { defaultPriority } from './priority.ts'
import { conditionsOf, isFalse, isTrue, isUnknown } from './read.ts'
import type { ReportedCondition } from './read.ts'
import { setConditions } from './set.ts'
import { summary } from './summary.ts'

const Conditions = conditionTypes({ Ready: ['Ready', 'NotReady', 'ReadyUnknown'], Deleting: ['Deleting', 'NotDeleting'] })

const condition = (type: string, status: Condition['status'], message = '', since = '2026-01-01T00:00:00Z'): Condition => ({
  type,
  status,
  reason: `${type}Reason`,
  message,
  lastTransitionTime: since,
})

describe('setConditions', () => {
  const now = Date.UTC(2026, 0, 2, 3, 4, 5, 678)
  const types = (conditions: readonly Condition[]) => conditions.map(({ type }) => type).join(' ')

  test('the transition time, in whole seconds, changes only with the status', () => {
    const old = [condition('Ready', 'False', 'waiting')]
    const updated = setConditions(old, [Conditions.Ready.false('NotReady', 'still waiting')], { now, generation: 3 })
    expect(updated).toEqual([
      {
        ...old[0],
        reason: 'NotReady',
        message: 'still waiting',
        observedGeneration: 3,
        lastTransitionTime: '2026-01-01T00:00:00Z',
      },
    ])
    expect(setConditions(updated, [Conditions.Ready.true('Ready')], { now })[0]).toMatchObject({
      lastTransitionTime: '2026-01-02T03:04:05Z',
    })
  })

  test('a mirrored condition keeps the time of its source, rounded down to seconds', () => {
    const mirrored = mirror([condition('Ready', 'True', '', '2025-05-05T05:05:05.999Z')], 'Ready')
    expect(setConditions(undefined, [mirrored], { now })[0]?.lastTransitionTime).toBe('2025-05-05T05:05:05Z')
  })

  test('returns the same list when no condition changes, so that the object is not written', () => {
    const old = freeze([{ ...condition('Ready', 'True'), reason: 'Ready', observedGeneration: 1 }])
    expect(setConditions(old, [Conditions.Ready.true('Ready')], { now, generation: 1 })).toBe(old)
  })

  test.each([
    ['in the given order', ['Ready', 'Available'], 'Available Ready'],
    ['of types without a given order last, alphabetically', ['Zebra', 'Gate', 'Ready'], 'Ready Gate Zebra'],
    ['with Paused and Deleting at the end', ['Deleting', 'Zebra', 'Paused', 'Available'], 'Available Zebra Paused Deleting'],
  ])('setConditions lists conditions %s', (_, inputTypes, listed) => {
    const computed = inputTypes.map((type) => condition(type, 'True'))
    expect(types(setConditions([], computed, { now, order: ['Available', 'Ready'] }))).toBe(listed)
  })
})

describe('reading conditions', () => {
  test('a missing condition is Unknown', () => {
    expect([isTrue([], 'Ready'), isFalse([], 'Ready'), isUnknown([], 'Ready')]).toEqual([false, false, true])
  })

  test.each([
    ['no condition of an object without a status', {}, []],
    ['no condition when the conditions are not a list', { status: { conditions: 'none' } }, []],
    [
      'only entries with type and status',
      { status: { conditions: [null, 1, { type: 'Ready' }, { type: 'Ready', status: 'True' }] } },
      ['Ready'],
    ],
    [
      'status.v1beta2.conditions instead of status.conditions when an object has both',
      { status: { conditions: [{ type: 'Old', status: 'True' }], v1beta2: { conditions: [{ type: 'New', status: 'True' }] } } },
      ['New'],
    ],
  ])('conditionsOf returns %s', (_, object, types) => {
    expect(conditionsOf(object).map(({ type }) => type)).toEqual(types)
  })
})

describe('mirror', () => {
  test.each<[string, ReportedCondition[], Parameters<typeof mirror>[2], string]>([
    ['keeps its type by default', [condition('Ready', 'False', 'no disk')], {}, 'Ready False ReadyReason no disk'],
    [
      'can have another type',
      [condition('Ready', 'True')],
      { as: 'InfrastructureReady' },
      'InfrastructureReady True ReadyReason ',
    ],
    ['is Unknown when it is not reported', [], {}, 'Ready Unknown NotYetReported Condition Ready not yet reported'],
    [
      'is replaced by the fallback when it is not reported',
      [],
      { as: 'X', fallback: Conditions.Ready.false('NotReady', 'wait') },
      'X False NotReady wait',
    ],
    [
      'without a reason gets the reason NoReasonReported',
      [{ type: 'Ready', status: 'True' }],
      {},
      'Ready True NoReasonReported ',
    ],
    [
      'with status True and without a reason gets the given reason',
      [{ type: 'Ready', status: 'True' }],
      { trueReason: 'Ready' },
      'Ready True Ready ',
    ],
    [
      'with an invalid status is Unknown',
      [{ type: 'Ready', status: 'Maybe' as never }],
      {},
      'Ready Unknown InvalidConditionReported status for the Ready condition must be one of True, False, Unknown',
    ],
    [
      'with a reason of several words is Unknown',
      [{ type: 'Ready', status: 'False', reason: 'no power' }],
      {},
      'Ready Unknown InvalidConditionReported reason for the Ready condition must begin with a letter, contain only letters, digits, "_", "," and ":", and end in a letter, digit or "_", with at most 1024 characters',
    ],
    [
      'with a message that is not a string is Unknown',
      [{ type: 'Ready', status: 'False', reason: 'Off', message: 5 as never }],
      {},
      'Ready Unknown InvalidConditionReported message for the Ready condition must be a string',
    ],
  ])('a condition %s', (_, source, options, expected) => {
    const { type, status, reason, message } = mirror(source, 'Ready', options)
    expect(`${type} ${status} ${reason} ${message}`).toBe(expected)
  })

  const good = { type: 'Ready', status: 'True' }
  const cause = (path: string) => `failed to convert ${path} from StubMachine to []metav1.Condition:`
  test.each([
    [
      'another condition with an unknown status',
      { conditions: [good, { type: 'Other', status: 'Maybe' }] },
      `${cause('status.conditions')} status for the Other condition must be one of True, False, Unknown`,
    ],
    [
      'a condition without a status',
      { conditions: [{ type: 'Ready' }] },
      `${cause('status.conditions')} status must be set for the Ready condition`,
    ],
    [
      'a condition without a type',
      { conditions: [{ status: 'True' }] },
      `${cause('status.conditions')} type must be set for all conditions`,
    ],
    [
      'another condition with an invalid time',
      { conditions: [good, { type: 'Other', lastTransitionTime: 'yesterday' }] },
      `${cause('status.conditions')} failed to unmarshal lastTransitionTime value: yesterday: parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"`,
    ],
    [
      'a condition in status.v1beta2.conditions with an unknown status',
      { conditions: [good], v1beta2: { conditions: [{ type: 'Ready', status: 'Yes' }] } },
      `${cause('status.v1beta2.conditions')} status for the Ready condition must be one of True, False, Unknown`,
    ],
  ])('is Unknown when the conditions are invalid: %s', (_, status, message) => {
    expect(mirror({ kind: 'StubMachine', status } as never, 'Ready')).toEqual({
      type: 'Ready',
      status: 'Unknown',
      reason: 'InvalidConditionReported',
      message,
    })
  })
})

test.each(['', 'null', null])('a condition with the time %o is mirrored', (lastTransitionTime) => {
  const conditions = [{ type: 'Ready', status: 'True', reason: 'Ready', message: '', lastTransitionTime }]
  expect(mirror({ status: { conditions } }, 'Ready')).toMatchObject({ status: 'True', reason: 'Ready' })
})

describe('summary', () => {
  const reasons = { issue: 'NotReady', unknown: 'ReadyUnknown', info: 'Ready' } as const
  const sum = (conditions: Condition[], options: Partial<Parameters<typeof summary>[2]> = {}) => {
    const { status, reason, message } = summary(conditions, Conditions.Ready, {
      of: ['A', 'B', 'Deleting'],
      negative: ['Deleting'],
      reasons,
      ...options,
    } as never)
    return `${status} ${reason}\n${message}`
  }

  test.each<[string, Condition[], Partial<Parameters<typeof summary>[2]>, string]>([
    [
      'a summary is True when no condition is an issue or Unknown',
      [condition('A', 'True'), condition('B', 'True', 'fine'), condition('Deleting', 'False', '')],
      {},
      'True Ready\n* B: fine',
    ],
    [
      'when there is an issue, the message contains issues and Unknown conditions, and omits other conditions',
      [condition('B', 'False', 'broken'), condition('A', 'Unknown', 'lost'), condition('Deleting', 'False', 'x')],
      {},
      'False NotReady\n* A: lost\n* B: broken',
    ],
    [
      'a condition of negative polarity is an issue when True',
      [condition('A', 'True'), condition('B', 'True'), condition('Deleting', 'True')],
      {},
      'False NotReady\n* Deleting: DeletingReason',
    ],
    [
      'a summary is Unknown when a condition is missing and no condition is an issue',
      [condition('A', 'True'), condition('Deleting', 'False')],
      {},
      'Unknown ReadyUnknown\n* B: Condition not yet reported',
    ],
    [
      'a missing condition can be ignored',
      [condition('A', 'True'), condition('Deleting', 'False')],
      { ignoreIfMissing: ['B'] },
      'True Ready\n',
    ],
    [
      'an override replaces the condition of its type',
      [condition('A', 'True'), condition('Deleting', 'True', 'long story')],
      { ignoreIfMissing: ['B'], overrides: [Conditions.Deleting.true('Deleting', 'in progress')] },
      'False NotReady\n* Deleting: in progress',
    ],
    [
      'a type that is repeated counts once, at its last position',
      [condition('A', 'False', 'gone'), condition('B', 'False', 'lost')],
      { of: ['A', 'B', 'A'] },
      'False NotReady\n* B: lost\n* A: gone',
    ],
    [
      'a custom priority replaces the default priority',
      [condition('A', 'False', 'gone'), condition('B', 'True')],
      { of: ['A', 'B'], priority: (c) => (c.type === 'A' ? 'info' : defaultPriority()(c)) },
      'True Ready\n* A: gone',
    ],
    [
      'the caller can change the lines of the message',
      [condition('A', 'False', 'gone')],
      { of: ['A'], lines: (all) => all.map((line) => line.toUpperCase()) },
      'False NotReady\n* A: GONE',
    ],
    [
      'messages with several lines or with bullets are indented',
      [
        condition('A', 'False', '* one'),
        condition('B', 'False', 'two\n* three'),
        condition('C', 'False', '* four\n  * five\n* six'),
      ],
      { of: ['A', 'B', 'C'] },
      'False NotReady\n* A:\n  * one\n* B:\n  * two\n    * three\n* C:\n  * four\n    * five\n  * six',
    ],
  ])('%s', (_, conditions, options, expected) => expect(sum(conditions, options)).toBe(expected))

  test.each([
    ['of the target condition itself', () => summary([], 'Ready', { of: ['Ready'] }), 'condition Ready cannot sum up itself'],
    [
      'of conditions that may all be missing, and of which none is reported,',
      () => summary([], 'Ready', { of: ['A'], ignoreIfMissing: ['A'] }),
      'condition Ready sums up no conditions: none of A is reported',
    ],
    [
      'with an override of a missing condition',
      () => summary([], 'Ready', { of: ['A'], overrides: [condition('A', 'True')] }),
      'condition A is overridden in the summary for Ready but not reported',
    ],
  ])('a summary %s is an error', (_, make, message) => expect(make).toThrow(message))
})

describe('aggregate', () => {
  const object = (kind: string, name: string, conditions: Condition[], labels = {}) => ({
    kind,
    metadata: { name, labels },
    status: { conditions },
  })
  const ready = (name: string, status: Condition['status'], message: string, kind = 'Machine', labels = {}) =>
    object(kind, name, [condition('Ready', status, message)], labels)
  const controlPlane = { 'cluster.x-k8s.io/control-plane': '' }

  test.each<[string, Parameters<typeof aggregate>[0], Parameters<typeof aggregate>[2], string]>([
    [
      'an aggregate is True when no condition is an issue or Unknown',
      [ready('a', 'True', ''), ready('b', 'True', '')],
      {},
      'True InfoReported\n',
    ],
    [
      'when no condition is an issue or Unknown, the message contains the non-empty messages',
      [ready('a', 'True', 'hi'), ready('b', 'True', '')],
      {},
      'True InfoReported\n* Machine a: hi',
    ],
    [
      'an aggregate is Unknown when an object lacks the condition and no condition is an issue',
      [object('Machine', 'a', [])],
      {},
      'Unknown UnknownReported\n* Machine a: Condition Ready not yet reported',
    ],
    [
      'a condition of negative polarity is an issue when True',
      [ready('a', 'True', 'growing'), ready('b', 'False', 'x')],
      { negative: true },
      'True IssuesReported\n* Machine a: growing',
    ],
    [
      'the message lists three names in order, and counts the other objects',
      ['e', 'd', 'c', 'b', 'a'].map((name) => ready(name, 'False', 'down')),
      {},
      'False IssuesReported\n* Machines a, b, c, ... (2 more): down',
    ],
    [
      'the message lists at most three messages, by priority, frequency and name, and counts the other objects of each kind',
      [
        ready('u1', 'Unknown', 'unsure'),
        ready('u2', 'Unknown', 'unsure'),
        ready('m2', 'False', 'rare'),
        ready('m3', 'False', 'frequent'),
        ready('m1', 'False', 'frequent'),
        ready('m4', 'False', 'other'),
        ready('m5', 'False', 'another'),
        ready('p', 'False', 'frequent', 'MachinePool'),
      ],
      {},
      'False IssuesReported\n* Machines m1, m3: frequent\n* Machine m2: rare\n* Machine m4: other\nAnd 1 Machine with other issues\nAnd 2 Machines with status unknown\nAnd 1 MachinePool with other issues',
    ],
    [
      'the message lists control plane Machines first, independent of their priority',
      [
        ready('a', 'False', 'down'),
        ready('b', 'False', 'down'),
        ready('c', 'Unknown', '* lost', 'Machine', controlPlane),
        ready('b2', 'Unknown', '* lost'),
      ],
      {},
      'False IssuesReported\n* Machines c, b2:\n  * lost\n* Machines a, b: down',
    ],
  ])('%s', (_, objects, options, expected) => {
    const { status, reason, message } = aggregate(objects, 'Ready', options)
    expect(`${status} ${reason}\n${message}`).toBe(expected)
  })

  test('returns a condition of the type `as`, with the given reasons', () => {
    expect(
      aggregate([ready('a', 'Unknown', '')], 'Ready', {
        as: Conditions.Ready,
        reasons: { issue: 'NotReady', unknown: 'ReadyUnknown', info: 'Ready' },
      }),
    ).toEqual({
      type: 'Ready',
      status: 'Unknown',
      reason: 'ReadyUnknown',
      message: '* Machine a: ',
    })
  })
})
