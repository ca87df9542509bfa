/** Work on long values runs in pieces, so that other requests run between the pieces. The result equals that of uninterrupted work. */
import { expect, test } from 'vitest'
import { after, asWork, atOnce, each, sorting, type Work } from './clock.ts'
import { applyMergePatch, applyingMergePatch } from './patch/merge-patch.ts'
import { applyingStrategicPatch } from './patch/strategic-patch.ts'
import { countingKeys } from './json-scan.ts'
import { writeJSON } from './json-text.ts'
import { draft, drafting, isLong } from './json.ts'
import { encodeFields } from './managed-fields/fields-v1.ts'
import { setOf } from './managed-fields/field-set.ts'
import { keyElement } from './managed-fields/path-element.ts'
import type { JSONSchema } from './schema.ts'
import { stableText, writingJSON, writingStableText } from './structural/stable-text.ts'
import { structural } from './structural/structural.ts'

/** Runs work to its end. Returns its result, and the number of its pieces. */
function run<T>(work: Work<T>): { pieces: number; result: T } {
  for (let pieces = 1; ; pieces++) {
    const piece = work.next()
    if (piece.done) return { pieces, result: piece.value }
  }
}

const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `n${(index * 7) % count}`)
const mapOf = (count: number, value: unknown = 'v') => Object.fromEntries(names(count).map((name) => [name, value]))
/**
 * Returns lists of eight members, with about `count` members in total. Together with the lists and the nested values, these are about
 * 1.25 × `count` values.
 */
const listsOf = (count: number) => names(Math.ceil(count / 8)).map((name) => [name, 1, null, true, { name }, [], {}, 'v'])

const schema: JSONSchema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        texts: { type: 'object', additionalProperties: { type: 'string', default: 'd' } },
        items: {
          type: 'array',
          items: { type: 'object', properties: { a: { type: 'string' }, b: { type: 'string', default: 'b' } } },
        },
      },
    },
  },
}
const named = (count: number) => names(count).map((name) => ({ name }))
const patching = (object: object, patch: object) =>
  applyingStrategicPatch(object, patch, {
    type: 'object',
    properties: {
      items: {
        type: 'array',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
        items: { type: 'object', properties: { name: { type: 'string' } } },
      },
      set: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } },
    },
  })
const objects = (count: number) => ({ spec: { texts: mapOf(count, null), items: names(count).map((x) => ({ a: null, x })) } })
/** Returns a function that changes a new object in pieces, and returns the object with the result of the change. */
const changedInPieces = (change: (object: object) => Work<unknown>) =>
  function* (count: number): Work<unknown> {
    const object = objects(count)
    const result = yield* change(object)
    return { object, result }
  }
const { pruning, droppingNulls, defaulting, ...atOnceOperations } = structural(schema)
/** Like `changedInPieces`, for a change without pieces. */
const changedAtOnce = (change: (object: object) => unknown) => (count: number) => {
  const object = objects(count)
  return { object, result: change(object) }
}

test.each<[string, (count: number) => Work<unknown>, (count: number) => unknown]>([
  ['a copy of a map', (n) => drafting(mapOf(n)), mapOf],
  ['a copy of lists', (n) => drafting(listsOf(n)), (n) => draft(listsOf(n))],
  ['the number of keys', (n) => countingKeys([mapOf(n), { a: { b: 1 } }]), (n) => n + 2],
  ['sorted texts', (n) => sorting(names(8 * n)), (n) => names(8 * n).sort()],
  [
    'sorted numbers',
    (n) =>
      sorting(
        names(8 * n).map((_, i) => -1 - i),
        (a, b) => a - b,
      ),
    (n) => names(8 * n).map((_, i) => i - 8 * n),
  ],
  ['the stable text of a map', (n) => writingStableText(mapOf(n)), (n) => stableText(mapOf(n))],
  ['the stable text of lists', (n) => writingStableText(listsOf(n)), (n) => stableText(listsOf(n))],
  ['JSON of a map', (n) => writingJSON({ a: undefined, b: mapOf(n) }), (n) => writeJSON({ b: mapOf(n) })],
  ['JSON of lists', (n) => writingJSON(listsOf(n)), (n) => writeJSON(listsOf(n))],
  ['a merge patch', (n) => applyingMergePatch({ a: {}, b: 1 }, { a: mapOf(n), b: null }), (n) => ({ a: mapOf(n) })],
  ['a strategic merge patch of members', (n) => patching({ a: {}, b: 1 }, { a: mapOf(n), b: null }), (n) => ({ a: mapOf(n) })],
  [
    'a strategic merge patch that drops the nulls of new members',
    (n) => patching({}, { a: { b: mapOf(n, { c: null }) } }),
    (n) => ({ a: { b: mapOf(n, {}) } }),
  ],
  [
    'a strategic merge patch of items',
    (n) => patching({ items: named(n) }, { items: named(n).map((item) => ({ ...item, v: [item] })) }),
    (n) => ({ items: named(n).map((item) => ({ ...item, v: [item] })) }),
  ],
  [
    'a strategic merge patch of values',
    (n) => patching({ set: names(n) }, { '$deleteFromPrimitiveList/set': names(n), set: ['a'] }),
    () => ({ set: ['a'] }),
  ],
  [
    'FieldsV1 of a set of fields',
    (n) => encodeFields(itemsOf(n)),
    (n) =>
      Object.fromEntries(
        names(n)
          .sort()
          .map((name) => [keyElement({ name }), {}]),
      ),
  ],
  ['pruned objects', changedInPieces(pruning), changedAtOnce(atOnceOperations.prune)],
  ['objects without nulls', changedInPieces(droppingNulls), changedAtOnce(atOnceOperations.dropNulls)],
  ['objects with defaults', changedInPieces(defaulting), changedAtOnce(atOnceOperations.default)],
])('computes %s in pieces, with the result of uninterrupted work', (_, work, expected) => {
  const few = run(work(2))
  const many = run(work(5000))
  expect([few.result, many.result]).toEqual([expected(2), expected(5000)])
  expect(JSON.stringify(many.result)).toBe(JSON.stringify(expected(5000)))
  expect(few.pieces).toBe(1)
  expect(many.pieces).toBeGreaterThan(4)
})

const itemsOf = (count: number) => setOf(names(count).map((name) => [keyElement({ name })]))

test('a merge patch merges objects, replaces lists, and removes members that are null', () => {
  const document = { kept: 1, gone: 2, map: { a: 1, b: { c: 1 } }, list: [1, { a: null }] }
  const patch = { gone: null, map: { a: null, b: { d: [null, { e: null }] } }, list: [2], more: { f: null, g: 1 } }
  const result = { kept: 1, map: { b: { c: 1, d: [null, {}] } }, list: [2], more: { g: 1 } }
  expect(applyMergePatch(document, patch)).toEqual(result)
})

test('`each` returns no remaining work for short lists, and counts elements of nested lists together', () => {
  let count = 0
  const visit = (): undefined => void count++
  expect(after(each([1, 2, 3], visit), () => each([4], visit))).toBeUndefined()
  const lists = Array.from({ length: 100 }, () => Array.from({ length: 100 }, () => 0))
  const { pieces } = run(asWork(() => each(lists, (list) => each(list, visit))))
  expect(count).toBe(4 + 10_000)
  expect(pieces).toBeGreaterThanOrEqual(9)
  atOnce(asWork(() => each(lists, (list) => each(list, visit))))
  expect(count).toBe(4 + 20_000)
})

test('an object is long if it has more than ten thousand values, whether in one map or in many lists', () => {
  expect([{}, mapOf(9_000), mapOf(10_001), listsOf(9_000), { a: { b: listsOf(20_000) } }].map(isLong)).toEqual([
    false,
    false,
    true,
    true,
    true,
  ])
})
