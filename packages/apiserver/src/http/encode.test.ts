import { freeze } from '@capstan/kube'
import { expect, test } from 'vitest'
import { eventBytes, listBytes, objectBytes } from './encode.ts'

const object = (name: string) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, uid: name, resourceVersion: '1', creationTimestamp: '' },
})

test('a frozen object is encoded once, for every watcher, list and answer', () => {
  const shared = freeze(object('ä'))
  const first = objectBytes(shared)
  expect(objectBytes(shared)).toBe(first)
  const line = eventBytes('ADDED', shared)
  expect(eventBytes('ADDED', shared)).toBe(line)
  expect(line.toString()).toBe(`{"type":"ADDED","object":${JSON.stringify(shared)}}\n`)
  expect(objectBytes(shared)).toEqual(first)
  // Its own bytes are the middle of the line now: one room for both.
  expect(objectBytes(shared).buffer).toBe(line.buffer)
})

test('an object that may still change is encoded anew', () => {
  const draft = object('a')
  objectBytes(draft)
  draft.metadata.name = 'b'
  expect(objectBytes(draft).toString()).toContain('"name":"b"')
})

test('a list is made of its items, with and without their types', () => {
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
