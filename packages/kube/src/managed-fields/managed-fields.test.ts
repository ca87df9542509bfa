import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { draft, freeze } from '../json.ts'
import type { KubeObject } from '../object.ts'
import { s } from '../schema.ts'
import type { FieldSet } from './field-set.ts'
import { difference, emptySet, fieldSet, intersection, leaf, recursiveDifference, sameSet, union } from './field-set.ts'
import { fieldsIn, removeFields } from './fields-of.ts'
import { atOnce, PieceSize, type Work } from '../clock.ts'
import { decodeFields, encodeFields } from './fields-v1.ts'
import { merging } from './merge.ts'
import { applyPatch, keepTimes, resetFields, updateManagedFields } from './managed-fields.ts'
import { typeOfSchema } from './type.ts'

const port = s.object({ port: s.integer(), protocol: s.string().default('TCP'), name: s.string().optional() })
const schema = freeze(
  s.object({
    spec: s
      .object({
        replicas: s.integer().optional(),
        color: s.string().optional(),
        ports: s.list(port).listMap('port', 'protocol').optional(),
        tags: s.list(s.string()).listSet().optional(),
        args: s.list(s.string()).optional(),
        free: s.unknownObject().optional(),
      })
      .optional(),
    status: s.object({ phase: s.string().optional() }).optional(),
  }).json,
)
const start = Date.UTC(2026, 0, 1)
const at = (minutes: number) => start + minutes * 60_000
const context = (manager: string, minutes = 0) => ({
  apiVersion: 'shop.example.com/v1',
  schema,
  manager,
  now: at(minutes),
  ignored: resetFields({ hasStatusSubresource: true }),
})

const widget = (fields: object = {}, metadata: object = {}): KubeObject =>
  ({
    apiVersion: 'shop.example.com/v1',
    kind: 'Widget',
    metadata: { name: 'w', namespace: 'ns', ...metadata },
    ...fields,
  }) as KubeObject

/** A stored object: frozen, with the fields that the server sets. */
const stored = (object: KubeObject): KubeObject =>
  freeze({
    ...draft(object),
    metadata: { ...draft(object.metadata), uid: 'u', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
  })

const apply = (live: KubeObject | undefined, manager: string, spec: object, minutes = 0, force = false, metadata: object = {}) =>
  applyPatch(live, widget({ spec }, metadata), { ...context(manager, minutes), force })

const update = (
  live: KubeObject | undefined,
  manager: string,
  change: (object: Record<string, any>) => void,
  minutes = 0,
  subresource?: string,
) => {
  const next = draft(live ?? widget())
  change(next)
  updateManagedFields(live, next, {
    ...context(manager, minutes),
    ...(subresource ? { subresource, ignored: resetFields({ subresource, hasStatusSubresource: true }) } : {}),
  })
  return next
}

/** Formats each entry of managedFields as one line: `m Apply 00:01 {...}`. */
const entryTexts = (object: KubeObject) =>
  (object.metadata.managedFields ?? []).map(
    ({ manager, operation, time, fieldsV1, subresource }) =>
      `${manager} ${operation} ${time?.slice(11, 16) ?? '-'}${subresource ? ` ${subresource}` : ''} ${JSON.stringify(fieldsV1)}`,
  )

describe('apply', () => {
  test('makes its manager the owner of the applied spec fields of a new object; the keys of list items include defaults', () => {
    const created = apply(undefined, 'm', { replicas: 1, ports: [{ port: 80 }], tags: ['a'], free: { deep: { k: 1 } } })
    expect(entryTexts(created)).toEqual([
      'm Apply 00:00 {"f:spec":{"f:free":{"f:deep":{".":{},"f:k":{}}},"f:ports":{"k:{\\"port\\":80,\\"protocol\\":\\"TCP\\"}":{".":{},"f:port":{}}},"f:replicas":{},"f:tags":{"v:\\"a\\"":{}}}}',
    ])
  })

  test('removes fields that its manager no longer applies, unless another manager owns them', () => {
    const first = stored(apply(undefined, 'm', { replicas: 1, color: 'red', tags: ['a', 'b'] }))
    const shared = stored(apply(first, 'other', { tags: ['b'] }))
    const second = apply(shared, 'm', { replicas: 1 }) as KubeObject & { spec: object }
    expect(second.spec).toEqual({ replicas: 1, tags: ['b'] })
  })

  test('a manager that applies an existing value gets an entry without a time, and the entry of the other manager does not change', () => {
    const live = stored(apply(undefined, 'm', { replicas: 1 }))
    const joined = apply(live, 'second', { replicas: 1 }, 5)
    expect(entryTexts(joined)).toEqual([
      'second Apply - {"f:spec":{"f:replicas":{}}}',
      'm Apply 00:00 {"f:spec":{"f:replicas":{}}}',
    ])
  })

  test('a conflict names the managers and fields', () => {
    const live = stored(
      update(stored(apply(undefined, 'm1', { replicas: 1, color: 'red' })), 'ctl', (w) => (w.spec.tags = ['x']), 1),
    )
    expect(() => apply(live, 'm2', { replicas: 2, color: 'blue' }, 2)).toThrow(
      expect.objectContaining({
        reason: 'Conflict',
        code: 409,
        message: 'Apply failed with 2 conflicts: conflicts with "m1":\n- .spec.color\n- .spec.replicas',
        details: {
          causes: [
            { reason: 'FieldManagerConflict', message: 'conflict with "m1"', field: '.spec.color' },
            { reason: 'FieldManagerConflict', message: 'conflict with "m1"', field: '.spec.replicas' },
          ],
        },
      }),
    )
    expect(() => apply(stored(update(live, 'ctl', (w) => (w.spec.color = 'green'))), 'm2', { color: 'blue' })).toThrow(
      'Apply failed with 1 conflict: conflict with "ctl" using shop.example.com/v1: .spec.color',
    )
  })

  test('a forced apply takes over the fields that it changes from other managers', () => {
    const live = stored(apply(undefined, 'm1', { replicas: 1, color: 'red' }))
    expect(entryTexts(apply(live, 'm2', { replicas: 2 }, 1, true))).toEqual([
      'm1 Apply 00:00 {"f:spec":{"f:color":{}}}',
      'm2 Apply 00:01 {"f:spec":{"f:replicas":{}}}',
    ])
  })

  test('the first apply to an object without managedFields records the existing fields', () => {
    const bare = stored(widget({ spec: { replicas: 1 } }, { labels: { a: 'b' } }))
    expect(entryTexts(apply(bare, 'm', { color: 'red' }, 3))).toEqual([
      'm Apply 00:03 {"f:spec":{"f:color":{}}}',
      'before-first-apply Update 00:03 {"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{".":{},"f:replicas":{}}}',
    ])
  })

  test('the status in an applied object gets no manager', () => {
    const created = applyPatch(undefined, widget({ status: { phase: 'x' } }), { ...context('m'), force: false })
    expect(entryTexts(created)).toEqual([])
  })

  test.each<[string, object, object, string]>([
    [
      'a value of a wrong type',
      { spec: { replicas: 'x' } },
      {},
      'failed to create typed patch object (ns/w; shop.example.com/v1, Kind=Widget): .spec.replicas: expected numeric (int or float), got string',
    ],
    ['a number for a string', { spec: { color: 5 } }, {}, '.spec.color: expected string, got &value.valueUnstructured{Value:5}'],
    ['an unknown field', { spec: { zzz: 1 } }, {}, '.spec.zzz: field not declared in schema'],
    [
      'duplicate keys',
      { spec: { ports: [{ port: 1 }, { port: 1, protocol: 'TCP' }] } },
      {},
      '.spec.ports: duplicate entries for key [port=1,protocol="TCP"]',
    ],
    ['duplicate values', { spec: { tags: ['a', 'a'] } }, {}, '.spec.tags: duplicate entries for key [="a"]'],
    ['managedFields in its metadata', {}, { managedFields: [] }, 'metadata.managedFields must be nil'],
  ])('an applied object with %s is rejected', (_, fields, metadata, message) => {
    expect(() => applyPatch(undefined, widget(fields, metadata), { ...context('m'), force: false })).toThrow(message)
  })

  test('an applied object of another version than the request is rejected', () => {
    const other = { ...widget(), apiVersion: 'shop.example.com/v2' }
    expect(() => applyPatch(undefined, other, { ...context('m'), force: false })).toThrow(
      'Incorrect version specified in apply patch. Specified patch version: shop.example.com/v2, expected: shop.example.com/v1',
    )
  })

  test('only kubectl takes over fields of the annotation of client-side apply, and it updates the annotation', () => {
    const key = 'kubectl.kubernetes.io/last-applied-configuration'
    const last = JSON.stringify(widget({ spec: { color: 'red' } }))
    const live = stored(
      update(undefined, 'kubectl-client-side-apply', (w) => {
        w.spec = { color: 'red', replicas: 1 }
        w.metadata.annotations = { [key]: last }
      }),
    )
    const taken = apply(live, 'kubectl', { color: 'blue' }, 1)
    expect(JSON.parse(taken.metadata.annotations![key]!).spec).toEqual({ color: 'blue' })
    expect(() => apply(live, 'kubectl', { color: 'blue', replicas: 2 }, 1)).toThrow(
      'Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using shop.example.com/v1: .spec.replicas',
    )
    expect(() => apply(live, 'someone', { color: 'blue' }, 1)).toThrow('Apply failed with 1 conflict')
  })
})

describe('update', () => {
  test('transfers the changed fields from other managers to its manager, which also owns added containers', () => {
    const live = stored(apply(undefined, 'm', { replicas: 1, color: 'red' }))
    const next = update(
      live,
      'ctl',
      (w) => {
        w.spec.replicas = 2
        w.metadata.labels = { a: 'b' }
      },
      1,
    )
    expect(entryTexts(next)).toEqual([
      'm Apply 00:00 {"f:spec":{"f:color":{}}}',
      'ctl Update 00:01 {"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{"f:replicas":{}}}',
    ])
  })

  test('that sets an equal value changes no ownership, and needs no write', () => {
    const live = stored(update(undefined, 'a', (w) => (w.spec = { replicas: 1 })))
    const next = update(live, 'b', (w) => (w.spec.replicas = 1), 1)
    expect(entryTexts(next)).toEqual(entryTexts(live))
    expect(keepTimes(live, next)).toBe(true)
  })

  test('that creates an object makes its manager the owner of the fields in a spec, but not of the spec itself, if the zero value of the kind has a spec; an apply without a spec adds none', () => {
    const next = widget({ spec: { replicas: 1 } })
    updateManagedFields(undefined, next, { ...context('m'), zeroValue: { spec: {} } })
    expect(entryTexts(next)).toEqual(['m Update 00:00 {"f:spec":{"f:replicas":{}}}'])
    const applied = applyPatch(undefined, widget(), { ...context('m'), zeroValue: { spec: {} }, force: false })
    expect(applied).not.toHaveProperty('spec')
  })

  test('through the status subresource makes its manager the owner of status fields only', () => {
    const live = stored(update(undefined, 'a', (w) => (w.spec = { replicas: 1 })))
    const next = update(
      live,
      'ctl',
      (w) => {
        w.status = { phase: 'Running' }
        w.metadata.labels = { ignored: 'yes' }
      },
      1,
      'status',
    )
    expect(entryTexts(next)).toEqual([
      'a Update 00:00 {"f:spec":{".":{},"f:replicas":{}}}',
      'ctl Update 00:01 status {"f:status":{".":{},"f:phase":{}}}',
    ])
  })

  test.each<[string, unknown, string[]]>([
    ['an absent list keeps the entries', undefined, ['m Apply 00:00 {"f:spec":{"f:replicas":{}}}']],
    ['an empty list removes the entries', [], []],
    ['a list of one empty entry removes the entries', [{}], []],
    [
      'an undecodable list is ignored',
      [{ manager: 'x', operation: 'Bogus', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: {} }],
      ['m Apply 00:00 {"f:spec":{"f:replicas":{}}}'],
    ],
    [
      'a valid list replaces the entries',
      [
        {
          manager: 'x',
          operation: 'Apply',
          apiVersion: 'shop.example.com/v1',
          fieldsType: 'FieldsV1',
          fieldsV1: { 'f:spec': { 'f:replicas': {} } },
        },
      ],
      ['x Apply - {"f:spec":{"f:replicas":{}}}'],
    ],
  ])('in managedFields of an update, %s', (_, managedFields, expected) => {
    const live = stored(apply(undefined, 'm', { replicas: 1 }))
    expect(entryTexts(update(live, 'ctl', (w) => (w.metadata.managedFields = managedFields)))).toEqual(expected)
  })

  test('with more than ten managers, the oldest entries are merged into ancient-changes', () => {
    let live: KubeObject | undefined
    for (let index = 0; index < 12; index++) {
      live = stored(update(live, `m${index}`, (w) => (w.metadata.labels = { ...w.metadata.labels, [`l${index}`]: 'x' }), index))
    }
    const names = live!.metadata.managedFields!.map(({ manager }) => manager)
    expect(names).toEqual(['ancient-changes', ...[3, 4, 5, 6, 7, 8, 9, 10, 11].map((index) => `m${index}`)])
    expect(live!.metadata.managedFields![0]).toMatchObject({
      time: '2026-01-01T00:02:00Z',
      fieldsV1: { 'f:metadata': { 'f:labels': { '.': {}, 'f:l0': {}, 'f:l1': {}, 'f:l2': {} } } },
    })
  })

  test('an object that does not fit its schema is written without managedFields', () => {
    const live = stored(update(undefined, 'a', (w) => (w.spec = { ports: [{ port: 1 }] })))
    expect(entryTexts(update(live, 'b', (w) => (w.spec.ports = [null])))).toEqual([])
  })
})

test('an apply that changes nothing keeps the times of all entries', () => {
  const live = stored(apply(undefined, 'm', { replicas: 1 }))
  const again = apply(live, 'm', { replicas: 1 }, 9)
  expect(keepTimes(live, again)).toBe(true)
  expect(again).toEqual(live)
})

test('a container whose fields are all removed stays as an empty container', () => {
  const fields = decodeFields({ 'f:spec': { 'f:free': { 'f:a': {} } } })
  expect(removeFields(typeOfSchema(schema), { spec: { free: { a: 1 } } }, fields)).toEqual({ spec: { free: {} } })
})

describe('set algebra', () => {
  const element = fc.constantFrom('f:a', 'f:b', 'k:{"name":"x"}', 'v:1')
  const { set } = fc.letrec<{ set: FieldSet }>((tie) => ({
    set: fc
      .tuple(
        fc.boolean(),
        fc.array(fc.tuple(element, fc.oneof({ maxDepth: 3, withCrossShrink: true }, fc.constant(leaf), tie('set'))), {
          maxLength: 3,
        }),
      )
      .map(([owned, children]) => fieldSet(owned, children)),
  }))
  const root = set.map((child) => ({ ...child, owned: false }))
  const same = (a: FieldSet, b: FieldSet) => expect(sameSet(a, b)).toBe(true)

  test('obeys the laws of sets, and random sets round-trip as FieldsV1', () => {
    fc.assert(
      fc.property(root, root, root, (a, b, c) => {
        same(union(a, b), union(b, a))
        same(intersection(a, b), intersection(b, a))
        same(union(union(a, b), c), union(a, union(b, c)))
        same(union(difference(a, b), intersection(a, b)), a)
        same(intersection(a, union(b, c)), union(intersection(a, b), intersection(a, c)))
        same(difference(a, union(b, c)), difference(difference(a, b), c))
        same(difference(a, a), emptySet)
        same(intersection(recursiveDifference(a, b), b), emptySet)
        same(decodeFields(JSON.parse(JSON.stringify(atOnce(encodeFields(a))))), a)
      }),
      { seed: 1 },
    )
  })
})

describe('the cache of encoded sets', () => {
  const aSet = (count: number) =>
    decodeFields(Object.fromEntries(Array.from({ length: count }, (_, index) => [`f:n${index}`, {}])))

  test('returns one object for equal small sets', () => {
    expect(atOnce(encodeFields(aSet(1000)))).toBe(atOnce(encodeFields(aSet(1000))))
  })

  test('does not keep large sets', () => {
    expect(atOnce(encodeFields(aSet(3000)))).not.toBe(atOnce(encodeFields(aSet(3000))))
    expect(atOnce(encodeFields(aSet(3000)))).toEqual(atOnce(encodeFields(aSet(3000))))
  })
})

describe('long work is divided into pieces', () => {
  const type = typeOfSchema(schema)
  const names = Array.from({ length: 10 * PieceSize }, (_, index) => `v${index}`)
  const map = { spec: { free: Object.fromEntries(names.map((name) => [name, 1])) } }
  const list = { spec: { tags: names } }

  test.each<[string, () => Work<unknown>]>([
    ['when it merges an applied map', () => merging(type, {}, map)],
    ['when it merges into a live map', () => merging(type, map, map)],
    ['when it merges an applied list', () => merging(type, {}, list)],
    ['when it lists the fields of a map', () => fieldsIn(type, map)],
    ['when it lists the fields of a list', () => fieldsIn(type, list)],
  ])('%s', (_, startWork) => {
    const work = startWork()
    let pauses = 0
    while (!work.next().done) pauses++
    expect(pauses).toBeGreaterThanOrEqual(10)
  })
})
