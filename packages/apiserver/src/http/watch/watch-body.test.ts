import { freeze, type KubeObject, type WatchEvent } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { packedObjects } from '../../store/packed.ts'
import { SharedLines } from './watch-body.ts'

const object = (name: string, metadata: object = {}) =>
  ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...metadata } }) as KubeObject
const added = (object: KubeObject): WatchEvent => ({ type: 'ADDED', object })
const text = (object: KubeObject) => `{"type":"ADDED","object":${JSON.stringify(object)}}\n`

/** Packs objects. Each cache of unpacked objects keeps only one object. */
const packed = packedObjects(1)

describe('watchers share', () => {
  test.each([
    ['an object', () => freeze(object('ä'))],
    ['a packed object', () => packed(object('ä'))],
  ])('the encoded line of %s, one for each type of event', (_, makeObject) => {
    const lines = new SharedLines()
    const shared = makeObject()
    // Packs other objects, so that the cache drops the unpacked members of a packed object.
    for (let n = 0; n < 10; n++) void packed(object(`other-${n}`)).metadata.name
    const line = lines.line(added(shared))
    expect(line.toString()).toBe(text(shared))
    expect(lines.line({ type: 'MODIFIED', object: shared }).toString()).toBe(text(shared).replace('ADDED', 'MODIFIED'))
    expect(lines.line(added(shared))).toBe(line)
  })

  test('the joined text of several lines, if they receive the same lines', () => {
    const lines = new SharedLines()
    const [a, b, c] = ['a', 'b', 'c'].map((name) => lines.line(added(freeze(object(name)))))
    const both = lines.joined([a!, b!])
    expect(both.toString()).toBe(`${a!.toString()}${b!.toString()}`)
    expect(lines.joined([a!, b!])).toBe(both)
    expect(lines.joined([a!, c!]).toString()).toBe(`${a!.toString()}${c!.toString()}`)
    expect(lines.joined([a!])).toBe(a)
  })
})

test('only the latest lines of packed objects are cached, and no large lines', () => {
  const lines = new SharedLines()
  const [first, large] = [packed(object('first')), packed(object('large', { text: 'x'.repeat(2 ** 20) }))]
  const line = lines.line(added(first))
  expect(lines.line(added(large))).not.toBe(lines.line(added(large)))
  expect(lines.line(added(first))).toBe(line)
  for (let n = 0; n < 40; n++) lines.line(added(packed(object(`other-${n}`, { text: 'x'.repeat(2 ** 15) }))))
  expect(lines.line(added(first))).not.toBe(line)
  expect(lines.line(added(first))).toEqual(line)
})

test('shared lines are kept until the last watcher leaves', () => {
  const lines = new SharedLines()
  lines.enter()
  lines.enter()
  const shared = packed(object('shared'))
  const line = lines.line(added(shared))
  lines.leave()
  expect(lines.line(added(shared))).toBe(line)
  lines.leave()
  expect(lines.line(added(shared))).not.toBe(line)
})
