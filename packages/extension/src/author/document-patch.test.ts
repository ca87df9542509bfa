import { applyJsonPatch, applyMergePatch, freeze, type Json } from '@capstan/kube'
import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { type EncodedPatch, patchBetween, type PatchFormat } from './document-patch.ts'

const decoded = ({ patch }: EncodedPatch) => JSON.parse(Buffer.from(patch, 'base64').toString())
const applied = <T extends object>(document: T, patch: EncodedPatch): T =>
  patch.patchType === 'JSONPatch' ? applyJsonPatch(document, decoded(patch)) : applyMergePatch(document, decoded(patch))

const json = (leaves: fc.Arbitrary<unknown>) =>
  fc.letrec<{ any: unknown; object: Record<string, unknown> }>((tie) => ({
    any: fc.oneof({ depthSize: 'small' }, leaves, fc.array(tie('any'), { maxLength: 5 }), tie('object')),
    object: fc.dictionary(fc.constantFrom('a', 'b', 'c/d', 'e~f', '', '-', '0', 'constructor'), tie('any'), { maxKeys: 4 }),
  })).object
const leaf = fc.oneof(fc.integer({ min: 0, max: 2 }), fc.boolean(), fc.constantFrom('', 'x', 'ü'))

describe.each<[PatchFormat, fc.Arbitrary<object>]>([
  ['JSONPatch', json(fc.oneof(leaf, fc.constant(null)))],
  ['JSONMergePatch', json(leaf)],
])('a %s', (format, object) => {
  const between = (a: object, b: object) => patchBetween(freeze(a), freeze(b), format)

  it('converts the original to the edited document, is deterministic, and leaves no difference to the edited document', () => {
    fc.assert(
      fc.property(object, object, (original, edited) => {
        const patch = between(original, edited)
        const patched = patch ? applied(original, patch) : original
        expect(patched).toEqual(edited)
        expect(between(patched, edited)).toBeUndefined()
        expect(between(original, edited)).toEqual(patch)
      }),
      { seed: 1, numRuns: 500 * Number(process.env.CAPSTAN_FUZZ ?? 1) },
    )
  })

  it('is undefined for an unchanged document', () => {
    fc.assert(
      fc.property(object, (document) => {
        expect(between(document, structuredClone(document))).toBeUndefined()
      }),
      { seed: 1 },
    )
  })

  test.each<[string, unknown, string]>([
    ['a date', new Date(0), 'spec.list[1].x is not JSON: Date'],
    ['NaN', Number.NaN, 'spec.list[1].x is not JSON: NaN'],
    ['a function', () => 1, 'spec.list[1].x is not JSON: function'],
    ['a map', new Map(), 'spec.list[1].x is not JSON: Map'],
    ['undefined in a list', [undefined], 'spec.list[1].x[0] is not JSON: undefined'],
  ])('rejects %s, with its path', (_, x, message) => {
    expect(() => patchBetween({}, { spec: { list: [1, { x }] } }, format)).toThrow(new TypeError(message))
  })
})

test('a patch is encoded in standard base64 with padding', () => {
  expect(patchBetween({}, { a: '??>>~~' }, 'JSONPatch')).toEqual({
    patchType: 'JSONPatch',
    patch: Buffer.from('[{"op":"add","path":"/a","value":"??>>~~"}]').toString('base64'),
  })
})

test.each<[string, Json, Json, unknown]>([
  ['a changed member', { a: 1, b: 1 }, { a: 2, b: 1 }, { a: 2 }],
  ['a changed list as the whole list', { a: [1, 2] }, { a: [1] }, { a: [1] }],
  ['a removal', { a: { b: 1, c: 1 } }, { a: { c: 1 } }, { a: { b: null } }],
])('a JSONMergePatch expresses %s', (_, from, to, patch) => {
  expect(decoded(patchBetween(from as object, to as object, 'JSONMergePatch')!)).toEqual(patch)
})

test.each([
  [{}, { a: null }],
  [{}, { a: { b: null } }],
  [{ a: null }, {}],
  [{}, { a: [{ b: null }] }],
])('a JSONMergePatch from %j to %j, which sets or removes a null, is an error; a JSONPatch is not', (from, to) => {
  expect(() => patchBetween(from, to, 'JSONMergePatch')).toThrow('use a JSONPatch')
  expect(applied(from, patchBetween(from, to, 'JSONPatch')!)).toEqual(to)
})

test('patches contain no integer up to 2^64 that JavaScript may have rounded', () => {
  const original = { spec: JSON.parse('{"limit":9007199254740993,"list":[9007199254740993,1]}') as Json }
  const edited = { spec: { limit: 2 ** 53, list: [2 ** 53, 2] } }
  expect(decoded(patchBetween(original, edited, 'JSONPatch')!)).toEqual([{ op: 'replace', path: '/spec/list/1', value: 2 }])
  expect(() => patchBetween(original, edited, 'JSONMergePatch')).toThrow('that JavaScript may have rounded')
})
