import type { Input, KubeObject, UnknownObject } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { AppliedObjects, difference } from './differences.ts'

const apiVersion = 'test.capstan.dev/v1'
const desired = (spec: object, labels: Record<string, string> = { a: '1' }): Input<UnknownObject> =>
  ({ apiVersion, kind: 'Thing', metadata: { name: 't', namespace: 'default', labels }, spec }) as Input<UnknownObject>

/** An object whose fields `fieldsV1` the field manager capi-topology has applied. Other writers may have changed the object since. */
const current = (spec: object, fieldsV1: object, labels: Record<string, string> = { a: '1' }): KubeObject =>
  ({
    apiVersion,
    kind: 'Thing',
    metadata: {
      name: 't',
      namespace: 'default',
      uid: 'u',
      labels,
      managedFields: [{ manager: 'capi-topology', operation: 'Apply', apiVersion, fieldsType: 'FieldsV1', fieldsV1 }],
    },
    spec,
    status: { ready: true },
  }) as unknown as KubeObject

const ownedLabels = { 'f:metadata': { 'f:labels': { 'f:a': {} } } }
const owned = (spec: object) => ({ ...ownedLabels, 'f:spec': spec })
const ownedAB = owned({ 'f:a': {}, 'f:b': { 'f:c': {} } })
const ownedTaints = (...keys: string[]) =>
  owned({ 'f:taints': Object.fromEntries(keys.map((key) => [`k:{"key":"${key}"}`, { '.': {}, 'f:key': {}, 'f:value': {} }])) })

describe('difference() of a desired and a current object', () => {
  test.each([
    ['no difference between equal objects', desired({ a: 1, b: { c: 2 } }), current({ a: 1, b: { c: 2 } }, ownedAB), 'none'],
    [
      'no difference for fields of other managers',
      desired({ a: 1, b: { c: 2 } }),
      current({ a: 1, b: { c: 2, d: 3 }, e: 4 }, ownedAB),
      'none',
    ],
    ['a changed value', desired({ a: 2, b: { c: 2 } }), current({ a: 1, b: { c: 2 } }, ownedAB), 'spec'],
    ['a value that another manager has changed', desired({ a: 1 }), current({ a: 9 }, owned({})), 'spec'],
    ['a new member', desired({ a: 1, b: { c: 2, d: 3 } }), current({ a: 1, b: { c: 2 } }, ownedAB), 'spec'],
    ['a member that is no longer wanted', desired({ a: 1 }), current({ a: 1, b: { c: 2 } }, ownedAB), 'spec'],
    ['a changed label', desired({ a: 1, b: { c: 2 } }, { a: '2' }), current({ a: 1, b: { c: 2 } }, ownedAB), 'metadata'],
    ['a label that is no longer wanted', desired({ a: 1, b: { c: 2 } }, {}), current({ a: 1, b: { c: 2 } }, ownedAB), 'metadata'],
    [
      'no difference for labels of other managers',
      desired({ a: 1, b: { c: 2 } }),
      current({ a: 1, b: { c: 2 } }, ownedAB, { a: '1', b: '2' }),
      'none',
    ],
    [
      'a missing entry of our field manager',
      desired({ a: 1 }),
      { ...current({ a: 1 }, {}), metadata: { ...current({}, {}).metadata, managedFields: [] } } as KubeObject,
      'metadata',
    ],
    ['a changed list, which is compared as a whole', desired({ l: [1] }), current({ l: [1, 2] }, owned({ 'f:l': {} })), 'spec'],
    [
      'no difference for items of other managers in a keyed list',
      desired({ taints: [{ key: 'a', value: '1' }] }),
      current({ taints: [{ key: 'x' }, { key: 'a', value: '1', set: true }] }, ownedTaints('a')),
      'none',
    ],
    [
      'a changed item of a keyed list',
      desired({ taints: [{ key: 'a', value: '2' }] }),
      current({ taints: [{ key: 'x' }, { key: 'a', value: '1' }] }, ownedTaints('a')),
      'spec',
    ],
    [
      'an item of a keyed list that is no longer wanted',
      desired({ taints: [{ key: 'a', value: '1' }] }),
      current(
        {
          taints: [
            { key: 'a', value: '1' },
            { key: 'b', value: '1' },
          ],
        },
        ownedTaints('a', 'b'),
      ),
      'spec',
    ],
    [
      'another order of the items of a keyed list',
      desired({
        taints: [
          { key: 'b', value: '1' },
          { key: 'a', value: '1' },
        ],
      }),
      current(
        {
          taints: [
            { key: 'a', value: '1' },
            { key: 'b', value: '1' },
          ],
        },
        ownedTaints('a', 'b'),
      ),
      'spec',
    ],
    [
      'no difference for items of other managers between the items of a keyed list',
      desired({
        taints: [
          { key: 'b', value: '1' },
          { key: 'a', value: '1' },
        ],
      }),
      current(
        { taints: [{ key: 'x' }, { key: 'b', value: '1' }, { key: 'y' }, { key: 'a', value: '1' }] },
        ownedTaints('a', 'b'),
      ),
      'none',
    ],
    [
      'a member of an atomic map that is no longer wanted',
      desired({ m: { a: 1 } }),
      current({ m: { a: 1, b: 2 } }, owned({ 'f:m': {} })),
      'spec',
    ],
    [
      'no difference between equal atomic maps',
      desired({ m: { a: { b: 1 }, c: undefined } }),
      current({ m: { a: { b: 1 } } }, owned({ 'f:m': {} })),
      'none',
    ],
    [
      'an equal value that our field manager does not own',
      desired({ a: 1, b: { c: 2 } }),
      current({ a: 1, b: { c: 2 } }, owned({ 'f:a': {} })),
      'metadata',
    ],
    [
      'an equal label that our field manager does not own',
      desired({ a: 1, b: { c: 2 } }, { a: '1', b: '2' }),
      current({ a: 1, b: { c: 2 } }, ownedAB, { a: '1', b: '2' }),
      'metadata',
    ],
    [
      'an equal item of a keyed list that our field manager does not own',
      desired({
        taints: [
          { key: 'a', value: '1' },
          { key: 'b', value: '1' },
        ],
      }),
      current(
        {
          taints: [
            { key: 'a', value: '1' },
            { key: 'b', value: '1' },
          ],
        },
        ownedTaints('a'),
      ),
      'metadata',
    ],
    [
      'an equal item of a set that our field manager does not own',
      desired({ s: ['x', 'y'] }),
      current({ s: ['x', 'y'] }, owned({ 'f:s': { 'v:"x"': {} } })),
      'metadata',
    ],
    ['no difference for an equal set', desired({ s: ['x'] }), current({ s: ['x'] }, owned({ 'f:s': { 'v:"x"': {} } })), 'none'],
    ['no difference for an empty map', desired({ a: 1, m: {} }), current({ a: 1, m: {} }, owned({ 'f:a': {} })), 'none'],
  ] as const)('reports %s', (_, desiredObject, currentObject, expected) => {
    expect(difference(desiredObject, currentObject)).toBe(expected)
  })
})

test('an object that the server changed during the apply is current, until the desired object changes or another manager takes over a field', () => {
  const applied = new AppliedObjects()
  const rewritten = current({ version: 'v1.34.0' }, owned({ 'f:version': {} }))
  const desiredObject = desired({ version: '1.34.0' })
  expect(difference(desiredObject, rewritten)).toBe('spec')
  applied.record(desiredObject, rewritten)
  expect(applied.isCurrent(desiredObject, rewritten)).toBe(true)
  expect(applied.isCurrent(desired({ version: '1.35.0' }), rewritten)).toBe(false)
  expect(applied.isCurrent(desiredObject, current({ version: 'v9' }, owned({})))).toBe(false)
})
