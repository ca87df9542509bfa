import { describe, expect, test } from 'vitest'
import { freeze } from '../json.ts'
import { s } from '../schema.ts'
import { applyStrategicPatch } from './strategic-patch.ts'

const env = s.list(s.object({ name: s.string(), value: s.string().optional() })).listMap('name')
const schema = s.object({
  containers: s
    .list(s.object({ name: s.string(), image: s.string(), args: s.list(s.string()), env }))
    .listMap('name')
    .optional(),
  volumes: s.list(s.object({ name: s.string(), emptyDir: s.unknownObject(), hostPath: s.unknownObject() })).listMap('name'),
  tolerations: s.list(s.object({ key: s.string() })),
  strategy: s.object({ type: s.string(), rollingUpdate: s.unknownObject() }),
  nodeSelector: s.map(s.string()),
}).json

const c1 = {
  name: 'c1',
  image: 'i1',
  args: ['x'],
  env: [
    { name: 'A', value: '1' },
    { name: 'B', value: '2' },
  ],
}
const c2 = { name: 'c2', image: 'i2' }
const object = freeze({
  metadata: { name: 'd', finalizers: ['x/a'], labels: { a: '1', b: '2' } },
  containers: [c1, c2],
  volumes: [{ name: 'v', emptyDir: {} }],
  tolerations: [{ key: 'k' }],
  strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1 } },
})
const patched = (patch: object) => applyStrategicPatch<Record<string, any>>(object, freeze(patch), schema)

describe('the result is that of a real server:', () => {
  test.each<[string, object, object]>([
    [
      'labels are merged one by one',
      { metadata: { labels: { a: null, c: '3' } } },
      { metadata: { ...object.metadata, labels: { b: '2', c: '3' } } },
    ],
    [
      'items are merged by their key',
      { containers: [{ name: 'c1', image: 'new' }] },
      { containers: [{ ...c1, image: 'new' }, c2] },
    ],
    [
      'new items are inserted in front',
      { containers: [{ name: 'c3', image: 'i3' }] },
      { containers: [{ name: 'c3', image: 'i3' }, c1, c2] },
    ],
    ['an item is deleted', { containers: [{ name: 'c2', $patch: 'delete' }] }, { containers: [c1] }],
    [
      'items of a list inside an item are deleted and added',
      {
        containers: [
          {
            name: 'c1',
            env: [
              { name: 'A', $patch: 'delete' },
              { name: 'C', value: '3' },
            ],
          },
        ],
      },
      {
        containers: [
          {
            ...c1,
            env: [
              { name: 'C', value: '3' },
              { name: 'B', value: '2' },
            ],
          },
          c2,
        ],
      },
    ],
    [
      'a list with the directive replace is replaced',
      { containers: [{ name: 'c1', env: [{ $patch: 'replace' }, { name: 'Z', value: '9' }] }] },
      { containers: [{ ...c1, env: [{ name: 'Z', value: '9' }] }, c2] },
    ],
    [
      'atomic lists are replaced as a whole',
      { tolerations: [{ key: 't2' }], containers: [{ name: 'c1', args: ['y'] }] },
      { tolerations: [{ key: 't2' }], containers: [{ ...c1, args: ['y'] }, c2] },
    ],
    [
      '$retainKeys removes all other keys',
      { strategy: { $retainKeys: ['type'], type: 'Recreate' } },
      { strategy: { type: 'Recreate' } },
    ],
    [
      'the type of a volume is replaced by another',
      { volumes: [{ name: 'v', emptyDir: null, hostPath: { path: '/x' } }] },
      { volumes: [{ name: 'v', hostPath: { path: '/x' } }] },
    ],
    [
      'directives for missing members have no effect, and the values next to these directives are not added',
      { '$deleteFromPrimitiveList/x': ['a'], nodeSelector: { $patch: 'replace', q: '1' } },
      {},
    ],
    [
      'finalizers are merged as a set',
      { metadata: { finalizers: ['x/b'] } },
      { metadata: { ...object.metadata, finalizers: ['x/b', 'x/a'] } },
    ],
    [
      'values are deleted from a set, and others are added',
      { metadata: { finalizers: ['x/b'], '$deleteFromPrimitiveList/finalizers': ['x/a'] } },
      { metadata: { ...object.metadata, finalizers: ['x/b'] } },
    ],
  ])('%s', (_, patch, changes) => {
    expect(patched(patch)).toEqual({ ...object, ...changes })
  })

  test.each<[string, object, string]>([
    [
      'an item without its key',
      { containers: [{ image: 'nokey' }] },
      'map: map[image:nokey] does not contain declared merge key: name',
    ],
    [
      'an unknown directive',
      { containers: [{ name: 'c1', $patch: 'bogus' }] },
      'unknown patch type: bogus in map: map[$patch:bogus name:c1]',
    ],
    [
      'a $setElementOrder that is not a list',
      { $setElementOrder: { containers: [] } },
      'expected a []interface {}, but received a map[string]interface {}',
    ],
    [
      'items in another order than $setElementOrder',
      { '$setElementOrder/containers': [{ name: 'c1' }, { name: 'c2' }], containers: [{ name: 'c2' }, { name: 'c1' }] },
      "The order in patch list:\n[map[name:c2] map[name:c1]]\n doesn't match $setElementOrder list:\n[map[name:c1] map[name:c2]]\n",
    ],
  ])('%s is rejected', (_, patch, message) => {
    expect(() => patched(patch)).toThrow(expect.objectContaining({ code: 500, reason: '', message }))
  })

  test('$retainKeys without a key that the patch sets is an error', () => {
    const rejection = { reason: 'BadRequest', message: 'invalid patch format of retainKeys' }
    expect(() => patched({ strategy: { $retainKeys: ['type'], rollingUpdate: {} } })).toThrow(expect.objectContaining(rejection))
  })
})

test('$setElementOrder puts items in order, with or without changes to them', () => {
  const names = (patch: object) =>
    patched(patch)
      .containers.map((container: { name: string }) => container.name)
      .join(' ')
  expect(names({ '$setElementOrder/containers': [{ name: 'c2' }, { name: 'c1' }] })).toBe('c2 c1')
  expect(
    names({ '$setElementOrder/containers': [{ name: 'c2' }, { name: 'new' }, { name: 'c1' }], containers: [{ name: 'new' }] }),
  ).toBe('c2 new c1')
  expect(names({ '$setElementOrder/containers': [{ name: 'new' }, { name: 'c2' }], containers: [{ name: 'new' }] })).toBe(
    'new c1 c2',
  )
})

test('fields that a patch creates contain none of its directives and nulls', () => {
  expect(
    applyStrategicPatch(
      {},
      {
        containers: [
          { name: 'a', env: null },
          { name: 'b', $patch: 'delete' },
        ],
      },
      schema,
    ),
  ).toEqual({ containers: [{ name: 'a' }] })
})

test('deeply nested objects are merged and added', () => {
  const nested = (value: unknown) => Array.from({ length: 990 }).reduce((inner) => ({ a: inner }), value) as object
  expect(JSON.stringify(applyStrategicPatch(nested(1), nested(2), {}))).toBe(JSON.stringify(nested(2)))
  expect(JSON.stringify(applyStrategicPatch({}, nested(2), {}))).toBe(JSON.stringify(nested(2)))
})
