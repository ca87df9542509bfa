import { draft, equal, type KubeObject } from '@capstan/kube'
import { beforeEach, describe, expect, test } from 'vitest'
import { type ObjectEncoding, packedObjects, cacheKey, isPacked, jsonOf } from './packed.ts'

const object = (name: string, members: object = {}): KubeObject =>
  ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, labels: { a: 'b' } },
    data: { text: 'ü "quoted" \u2028 🚢' },
    ...members,
  }) as never

describe('a packed object', () => {
  let encode: ObjectEncoding
  beforeEach(() => {
    encode = packedObjects(2)
  })

  test('has the members of the stored object, in their order, whether it is unpacked or not', () => {
    const packed = encode(object('one'))
    const text = JSON.stringify(object('one'))
    for (const evicted of [false, true]) {
      if (evicted) for (const name of ['two', 'three']) encode(object(name))
      expect(Object.keys(packed)).toEqual(['apiVersion', 'kind', 'metadata', 'data'])
      expect(packed).toEqual(object('one'))
      expect(JSON.stringify(packed)).toBe(text)
      expect(JSON.stringify({ ...packed })).toBe(text)
      expect(draft(packed)).toStrictEqual(object('one'))
      expect(equal(packed, object('one'))).toBe(true)
      expect(Object.getPrototypeOf(packed)).toBe(Object.prototype)
    }
    expect(jsonOf(packed)).toBe(text)
  })

  test('is deeply frozen, before and after it is unpacked again', () => {
    const packed = encode(object('one'))
    expect(Object.isFrozen(packed)).toBe(true)
    expect(Object.isFrozen(packed.metadata.labels)).toBe(true)
    for (const name of ['two', 'three']) encode(object(name))
    expect(Object.isFrozen(packed.metadata.labels)).toBe(true)
    expect(() => Object.assign(packed, { kind: 'Secret' })).toThrow(TypeError)
  })

  test('stays unpacked while it is among the newest, and is unpacked again when read', () => {
    const packed = encode(object('one'))
    const unpacked = cacheKey(packed)
    expect(unpacked).toEqual(object('one'))
    encode(object('two'))
    expect(cacheKey(packed)).toBe(unpacked)
    encode(object('three'))
    expect(cacheKey(packed)).toBeUndefined()
    expect(packed.metadata.name).toBe('one')
    expect(packed.metadata).toBe(packed.metadata)
    expect(cacheKey(packed)).toEqual(object('one'))
  })

  test('omits undefined members, as JSON does', () => {
    const packed = encode(object('one', { status: undefined }))
    expect(Object.keys(packed)).not.toContain('status')
    expect(jsonOf(packed)).toBe(JSON.stringify(object('one')))
  })
})

test('an object with more top-level members than the maximum is not packed', () => {
  const many = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`member-${index}`, index]))
  const stored = packedObjects()(object('many', many))
  expect(isPacked(stored)).toBe(false)
  expect(cacheKey(stored)).toBe(stored)
  expect(Object.isFrozen(stored.metadata)).toBe(true)
  expect(JSON.parse(jsonOf(stored))).toEqual(object('many', many))
})

test('an object may have members with the names of inherited members', () => {
  const parsed = JSON.parse(
    '{"apiVersion":"v1","kind":"X","metadata":{"name":"a"},"__proto__":{"b":1},"constructor":2}',
  ) as KubeObject
  const packed = packedObjects()(parsed)
  expect(Object.keys(packed)).toEqual(['apiVersion', 'kind', 'metadata', '__proto__', 'constructor'])
  expect((packed as unknown as Record<string, unknown>)['constructor']).toBe(2)
  expect(JSON.parse(JSON.stringify(packed))).toEqual(parsed)
})
