import { freeze } from '@capstan/kube'
import { expect, test } from 'vitest'
import { packedObjects } from '../store/packed.ts'
import { eventBytes, listBytes, listParts, objectBytes } from './encode.ts'

const object = (name: string) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, uid: name, resourceVersion: '1', creationTimestamp: '' },
})

test('a frozen object is encoded once for all watchers and responses', () => {
  const shared = freeze(object('ä'))
  const first = objectBytes(shared)
  expect(objectBytes(shared)).toBe(first)
  const line = eventBytes('ADDED', shared)
  expect(eventBytes('ADDED', shared)).toBe(line)
  expect(line.toString()).toBe(`{"type":"ADDED","object":${JSON.stringify(shared)}}\n`)
  expect(objectBytes(shared)).toEqual(first)
  // The object's own bytes are now a slice of the line.
  expect(objectBytes(shared).buffer).toBe(line.buffer)
})

test('an object that is not frozen is encoded again', () => {
  const draft = object('a')
  objectBytes(draft)
  draft.metadata.name = 'b'
  expect(objectBytes(draft).toString()).toContain('"name":"b"')
})

test('a list contains its items, with or without their apiVersion and kind', () => {
  const list = {
    apiVersion: 'v1',
    kind: 'ConfigMapList',
    metadata: { resourceVersion: '7' },
    items: [freeze(object('a')), freeze(object('b'))],
  }
  expect(JSON.parse(listBytes(list).toString())).toEqual(list)
  const untyped = list.items.map(({ metadata }) => ({ metadata }))
  expect(JSON.parse(listBytes(list, { typedItems: false }).toString())).toEqual({ ...list, items: untyped })
  expect(JSON.parse(listBytes({ ...list, items: [] }).toString())).toEqual({ ...list, items: [] })
})

test.each([
  ['apiVersion is its first member', object('ä')],
  ['kind is its first member', { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'ä' } }],
  ['its apiVersion and kind follow other members', { metadata: { name: 'a' }, apiVersion: 'v1', kind: 'ConfigMap' }],
])('a packed object is encoded like a plain one, with and without apiVersion and kind, when %s', (_, plain) => {
  const encode = packedObjects(1)
  const packed = encode(structuredClone(plain) as never)
  const list = {
    apiVersion: 'v1',
    kind: 'ConfigMapList',
    metadata: { resourceVersion: '7' },
    items: [packed, freeze(object('b'))],
  }
  expect(objectBytes(packed).toString()).toBe(JSON.stringify(plain))
  expect(JSON.parse(listBytes(list as never).toString())).toEqual({ ...list, items: [plain, object('b')] })
  const { metadata } = plain
  const untyped = [{ metadata }, { metadata: object('b').metadata }]
  expect(JSON.parse(listBytes(list as never, { typedItems: false }).toString())).toEqual({ ...list, items: untyped })
})

test('a long list is encoded in parts of less than 300 KiB', () => {
  const items = Array.from({ length: 100 }, (_, index) => ({ ...object(`w-${index}`), data: { text: 'x'.repeat(10_000) } }))
  const long = { kind: 'WidgetList', apiVersion: 'example.com/v1', metadata: { resourceVersion: '1' }, items }
  const parts = [...listParts(long)]
  expect(parts.length).toBeGreaterThan(3)
  expect(Math.max(...parts.map(({ length }) => length))).toBeLessThan(300 * 1024)
  expect(JSON.parse(Buffer.concat(parts).toString())).toEqual(long)
})
