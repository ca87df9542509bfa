import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { JsonPatchOperation } from '../client.ts'
import type { Json } from '../json.ts'
import { freeze } from '../json.ts'
import { applyJsonPatch, diffJson, parseJsonPatch } from './json-patch.ts'
import { applyMergePatch, diffMerge } from './merge-patch.ts'

/** Returns arbitraries of JSON: `object` generates objects with the given member names, `any` generates leaves, lists and such objects. */
const json = (names: fc.Arbitrary<string>, leaves: fc.Arbitrary<unknown>) =>
  fc.letrec<{ any: unknown; object: Record<string, unknown> }>((tie) => ({
    any: fc.oneof({ depthSize: 'small' }, leaves, fc.array(tie('any'), { maxLength: 4 }), tie('object')),
    object: fc.dictionary(names, tie('any'), { maxKeys: 4 }),
  }))
const names = fc.constantFrom('a', 'b', 'a/b', 'c~d', '', 'constructor', 'toString', '-', '0')
const leaf = fc.oneof(fc.integer({ min: 0, max: 3 }), fc.boolean(), fc.constantFrom('', 'x', 'y'))

describe('JSON patch', () => {
  const document = freeze({ spec: { replicas: 1, args: ['a', 'b'], free: { x: { y: 1 } } } })
  test.each<[string, JsonPatchOperation[], unknown]>([
    ['adds a member', [{ op: 'add', path: '/spec/new', value: 1 }], { ...document.spec, new: 1 }],
    ['adds an item at the end', [{ op: 'add', path: '/spec/args/-', value: 'c' }], { ...document.spec, args: ['a', 'b', 'c'] }],
    ['adds an item in front', [{ op: 'add', path: '/spec/args/0', value: 'z' }], { ...document.spec, args: ['z', 'a', 'b'] }],
    ['removes an item from the end', [{ op: 'remove', path: '/spec/args/-1' }], { ...document.spec, args: ['a'] }],
    [
      'adds a missing member by the operation replace',
      [{ op: 'replace', path: '/spec/nope', value: 1 }],
      { ...document.spec, nope: 1 },
    ],
    [
      'copies a value',
      [{ op: 'copy', from: '/spec/free/x', path: '/spec/free/z' }],
      { ...document.spec, free: { x: { y: 1 }, z: { y: 1 } } },
    ],
    ['moves a value', [{ op: 'move', from: '/spec/free/x', path: '/spec/free/z' }], { ...document.spec, free: { z: { y: 1 } } }],
    [
      'unescapes the name of a member',
      [{ op: 'add', path: '/spec/free/a~1b~0c', value: 1 }],
      { ...document.spec, free: { x: { y: 1 }, 'a/b~c': 1 } },
    ],
    [
      'changes a member after a test',
      [
        { op: 'test', path: '/spec/replicas', value: 1 },
        { op: 'replace', path: '/spec/replicas', value: 2 },
      ],
      { ...document.spec, replicas: 2 },
    ],
    ['accepts a test for null when the member is absent', [{ op: 'test', path: '/spec/nope', value: null }], document.spec],
  ])('%s', (_, operations, spec) => expect(applyJsonPatch(document, operations).spec).toEqual(spec))

  test('the whole document can be replaced', () => {
    expect(applyJsonPatch<Json>({ a: 1 }, [{ op: 'replace', path: '', value: [1] }])).toEqual([1])
  })

  test.each<[string, unknown, string]>([
    [
      'a test that fails',
      { op: 'test', path: '/spec/replicas', value: 99 },
      'operation 0 ("test" "/spec/replicas"): the value is 1',
    ],
    [
      'removing a missing member',
      { op: 'remove', path: '/spec/nope' },
      'operation 0 ("remove" "/spec/nope"): there is nothing at "nope"',
    ],
    [
      'an index out of range',
      { op: 'remove', path: '/spec/args/9' },
      'operation 0 ("remove" "/spec/args/9"): "9" is not an index of a list of length 2',
    ],
    ['an unknown operation', { op: 'bogus', path: '/spec' }, 'operation 0 ("bogus" "/spec"): the operation is unknown'],
    ['a missing parent', { op: 'add', path: '/nope/x', value: 1 }, 'operation 0 ("add" "/nope/x"): there is nothing at "nope"'],
    [
      'an inherited member',
      { op: 'add', path: '/constructor/prototype/x', value: 1 },
      'operation 0 ("add" "/constructor/prototype/x"): there is nothing at "constructor"',
    ],
    [
      'a move of a value into itself',
      { op: 'move', from: '/spec', path: '/spec/free/z' },
      'operation 0 ("move" "/spec/free/z"): a value cannot move into itself',
    ],
    ['a copy of a missing member', { op: 'copy', from: '/x', path: '/y' }, 'operation 0 ("copy" "/y"): there is nothing at "/x"'],
    ['an operation without a path', { op: 'add', value: 1 }, 'operation 0 ("add" undefined): the path is not a string'],
  ])('%s is rejected', (_, operation, reason) => {
    expect(() => applyJsonPatch(document, [operation as JsonPatchOperation])).toThrow(
      expect.objectContaining({
        reason: 'Invalid',
        message: 'the server rejected our request due to an error in our request',
        details: {},
        cause: expect.objectContaining({ message: reason }),
      }),
    )
  })

  test('copies of more than 250,000 objects and lists in total are rejected', () => {
    const lists = { lists: Array.from({ length: 2_500 }, () => []) }
    const copies = (count: number) =>
      Array.from({ length: count }, (_, index) => ({ op: 'copy', from: '/lists', path: `/copy${index}` }) as const)
    expect(Object.keys(applyJsonPatch(lists, copies(99)))).toHaveLength(100)
    expect(() => applyJsonPatch(lists, copies(100))).toThrow(
      expect.objectContaining({
        cause: expect.objectContaining({ message: expect.stringContaining('have more than 250000 objects and lists in total') }),
      }),
    )
  })

  test('a member named __proto__ is an ordinary member', () => {
    const patched = applyJsonPatch<object>({}, [{ op: 'add', path: '/__proto__', value: { polluted: true } }])
    expect(JSON.stringify(patched)).toBe('{"__proto__":{"polluted":true}}')
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
  })

  test.each<[unknown, string]>([
    [{ op: 'add' }, 'error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp'],
    [['x'], 'error decoding patch: json: cannot unmarshal string into Go value of type handlers.jsonPatchOp'],
    [
      Array.from({ length: 10_001 }, () => ({})),
      'Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001',
    ],
  ])('an invalid body is rejected: %#', (body, message) => expect(() => parseJsonPatch(body)).toThrow(message))

  test('applying the difference of two documents to the first gives the second', () => {
    const { any } = json(names, fc.oneof(leaf, fc.constant(null)))
    fc.assert(
      fc.property(any, any, (from, to) => {
        expect(applyJsonPatch(from, diffJson(from as Json, to as Json))).toEqual(to)
      }),
      { seed: 1 },
    )
  })

  test('a difference changes only the members and items that differ, in alphabetical order of members', () => {
    expect(diffJson({ c: 1, b: [1, 2, 3, 4], a: 'x' }, { b: [1, 3, 4], a: 'y', d: {} })).toEqual([
      { op: 'replace', path: '/a', value: 'y' },
      { op: 'remove', path: '/b/1' },
      { op: 'remove', path: '/c' },
      { op: 'add', path: '/d', value: {} },
    ])
  })

  const [a, b, c] = [
    { name: 'a', size: 1 },
    { name: 'b', size: 1 },
    { name: 'c', size: 1 },
  ]
  test.each<[string, Json, Json, JsonPatchOperation[]]>([
    [
      'two items are removed',
      [1, 2, 3, 4, 5],
      [1, 3, 5],
      [
        { op: 'remove', path: '/1' },
        { op: 'remove', path: '/2' },
      ],
    ],
    ['an item is inserted in front', [a, b], [c, a, b], [{ op: 'add', path: '/0', value: c }]],
    [
      'the first item is removed, a field of the last item changes',
      [a, b, c],
      [b, { ...c, size: 2 }],
      [
        { op: 'remove', path: '/0' },
        { op: 'replace', path: '/1/size', value: 2 },
      ],
    ],
    ['a field of the middle item changes', [a, b, c], [a, { ...b, size: 2 }, c], [{ op: 'replace', path: '/1/size', value: 2 }]],
    ['an item of a nested list changes', [[1, 2, 3], [4]], [[2, 3], [4]], [{ op: 'remove', path: '/0/0' }]],
  ])('the difference of two lists has the fewest operations: %s', (_, from, to, operations) =>
    expect(diffJson(from, to)).toEqual(operations),
  )

  test('the difference of two lists of integers has as many operations as their edit distance', () => {
    const list = fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 8 })
    fc.assert(
      fc.property(list, list, (from, to) => {
        expect(diffJson(from, to)).toHaveLength(editDistance(from, to))
      }),
      { seed: 1 },
    )
  })

  const editDistance = ([a, ...as]: readonly number[], [b, ...bs]: readonly number[]): number => {
    if (a === undefined) return b === undefined ? 0 : 1 + bs.length
    if (b === undefined) return 1 + as.length
    if (a === b) return editDistance(as, bs)
    return 1 + Math.min(editDistance(as, bs), editDistance(as, [b, ...bs]), editDistance([a, ...as], bs))
  }

  test('the difference does not depend on the order of members', () => {
    const reversed = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(reversed)
      if (typeof value !== 'object' || value === null) return value
      return Object.fromEntries(
        Object.entries(value)
          .map(([name, member]) => [name, reversed(member)] as const)
          .reverse(),
      )
    }
    const { any } = json(names, leaf)
    fc.assert(
      fc.property(any, any, (from, to) => {
        expect(diffJson(reversed(from) as Json, to as Json)).toEqual(diffJson(from as Json, reversed(to) as Json))
      }),
      { seed: 1 },
    )
  })

  test('applying the difference of two very long lists to the first gives the second', () => {
    const from = Array.from({ length: 1000 }, (_, index) => index)
    const to = from.map((item) => item + 0.5)
    expect(applyJsonPatch(from, diffJson(from, to))).toEqual(to)
  })
})

describe('merge patch', () => {
  test.each<[string, unknown, unknown, unknown]>([
    ['merges objects member by member', { a: 1, b: { c: 1, d: 2 } }, { b: { c: 3 } }, { a: 1, b: { c: 3, d: 2 } }],
    ['null removes a member', { a: 1, b: 2 }, { a: null, c: null }, { b: 2 }],
    ['nulls inside new objects are removed', {}, { a: { b: null, c: { d: null } } }, { a: { c: {} } }],
    [
      'nulls inside objects of lists are removed, null items of lists are kept',
      {},
      { a: [{ b: null }, null] },
      { a: [{}, null] },
    ],
    ['nulls inside objects of a list that replaces an object are kept', { a: {} }, { a: [{ b: null }] }, { a: [{ b: null }] }],
    ['lists are replaced as a whole', { a: [1, 2] }, { a: [3] }, { a: [3] }],
    ['an object replaces a scalar', { a: 'x' }, { a: { b: 1 } }, { a: { b: 1 } }],
    ['a scalar replaces an object', { a: { b: 1 } }, { a: 'x' }, { a: 'x' }],
  ])('%s', (_, document, patch, expected) => expect(applyMergePatch(freeze(document), freeze(patch))).toEqual(expected))

  test('a member named __proto__ is an ordinary member', () => {
    const patched = applyMergePatch({ constructor: { x: 1 } }, JSON.parse('{"__proto__":{"polluted":1},"constructor":{"y":2}}'))
    expect(JSON.stringify(patched)).toBe('{"constructor":{"x":1,"y":2},"__proto__":{"polluted":1}}')
    expect(({} as { polluted?: number }).polluted).toBeUndefined()
  })

  test('applying the difference of two objects to the first gives the second, and equal objects have no difference', () => {
    const { object } = json(names, leaf)
    fc.assert(
      fc.property(object, object, (from, to) => {
        const patch = diffMerge(from, to)
        expect(applyMergePatch(from, patch ?? {})).toEqual(to)
        expect(diffMerge(to, to)).toBeUndefined()
      }),
      { seed: 1 },
    )
  })
})
