import { type Input, type Kind, type KubeObject, type ManagedFieldsEntry, StatusError, VirtualClock } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { applyIntent, handOverMetadata, isApplied, repairedEntries } from './apply-intent.ts'

const entry = (manager: string, operation: 'Apply' | 'Update', fieldsV1: object, subresource?: string): ManagedFieldsEntry =>
  ({ manager, operation, apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1, ...(subresource ? { subresource } : {}) }) as never

const anObject = (managedFields: ManagedFieldsEntry[], overrides: { metadata?: object; spec?: object } = {}): KubeObject =>
  ({
    apiVersion: 'v1',
    kind: 'Thing',
    metadata: { name: 'x', managedFields, ...overrides.metadata },
    spec: overrides.spec,
  }) as never

const intent = (metadata: object, spec?: object): Input<KubeObject> =>
  ({ metadata: { name: 'x', ...metadata }, ...(spec ? { spec } : {}) }) as never

const labelled = { 'f:metadata': { 'f:labels': { 'f:a': {} } } }
const keyed = { 'f:spec': { 'f:taints': { 'k:{"effect":"E","key":"k"}': { '.': {}, 'f:effect': {}, 'f:key': {} } } } }
const taint = { key: 'k', effect: 'E' }
const gates = (...types: string[]) => types.map((conditionType) => ({ conditionType }))
const ownedGates = {
  'f:spec': {
    'f:gates': Object.fromEntries(
      ['A', 'B'].map((type) => [`k:{"conditionType":"${type}"}`, { '.': {}, 'f:conditionType': {} }]),
    ),
  },
}
const ownedFinalizers = { 'f:metadata': { 'f:finalizers': { 'v:"f"': {}, 'v:"g"': {} } } }

describe('isApplied', () => {
  // biome-ignore format: a table
  test.each<[boolean, string, KubeObject, Input<KubeObject>]>([
    [true,  'all fields are set and owned', anObject([entry('us', 'Apply', labelled)], { metadata: { labels: { a: '1', b: '2' } } }), intent({ labels: { a: '1' } })],
    [false, 'a value differs', anObject([entry('us', 'Apply', labelled)], { metadata: { labels: { a: '0' } } }), intent({ labels: { a: '1' } })],
    [false, 'a field is not owned', anObject([entry('us', 'Apply', labelled)], { metadata: { labels: { a: '1', b: '2' } } }), intent({ labels: { a: '1', b: '2' } })],
    [false, 'a field is owned and not wanted', anObject([entry('us', 'Apply', labelled)], { metadata: { labels: { a: '1' } } }), intent({ annotations: {} })],
    [false, 'only another manager owns the field', anObject([entry('other', 'Apply', labelled)], { metadata: { labels: { a: '1' } } }), intent({ labels: { a: '1' } })],
    [false, 'the field was written by an update', anObject([entry('us', 'Update', labelled)], { metadata: { labels: { a: '1' } } }), intent({ labels: { a: '1' } })],
    [false, 'the manager also has an update entry', anObject([entry('us', 'Apply', labelled), entry('us', 'Update', { 'f:spec': {} })], { metadata: { labels: { a: '1' } } }), intent({ labels: { a: '1' } })],
    [true,  'the manager also updated the status', anObject([entry('us', 'Apply', labelled), entry('us', 'Update', { 'f:status': {} }, 'status')], { metadata: { labels: { a: '1' } } }), intent({ labels: { a: '1' } })],
    [true,  'a keyed list has the wanted item', anObject([entry('us', 'Apply', keyed)], { spec: { taints: [{ key: 'z', effect: 'E' }, taint] } }), intent({}, { taints: [taint] })],
    [false, 'an item was removed', anObject([entry('us', 'Apply', keyed)], { spec: { taints: [] } }), intent({}, { taints: [taint] })],
    [false, 'an item is no longer wanted', anObject([entry('us', 'Apply', keyed)], { spec: { taints: [taint] } }), intent({}, { taints: [] })],
    [true,  'an atomic field is owned as a whole', anObject([entry('us', 'Apply', { 'f:spec': { 'f:selector': {} } })], { spec: { selector: { matchLabels: { a: '1' } } } }), intent({}, { selector: { matchLabels: { a: '1' } } })],
    [false, 'a label of an atomic selector is no longer wanted', anObject([entry('us', 'Apply', { 'f:spec': { 'f:selector': {} } })], { spec: { selector: { matchLabels: { a: '1', b: '2' } } } }), intent({}, { selector: { matchLabels: { a: '1' } } })],
    [false, 'an item of an atomic list is no longer wanted', anObject([entry('us', 'Apply', { 'f:spec': { 'f:args': {} } })], { spec: { args: ['a', 'b'] } }), intent({}, { args: ['a'] })],
    [false, 'an atomic list has another order', anObject([entry('us', 'Apply', { 'f:spec': { 'f:args': {} } })], { spec: { args: ['a', 'b'] } }), intent({}, { args: ['b', 'a'] })],
    [true,  'items of an atomic list have defaults', anObject([entry('us', 'Apply', { 'f:spec': { 'f:ports': {} } })], { spec: { ports: [{ port: 1, protocol: 'TCP' }] } }), intent({}, { ports: [{ port: 1 }] })],
    [true,  'a finalizer is owned by its value', anObject([entry('us', 'Apply', { 'f:metadata': { 'f:finalizers': { 'v:"f"': {} } } })], { metadata: { finalizers: ['f'] } }), intent({ finalizers: ['f'] })],
    [false, 'a keyed list has another order', anObject([entry('us', 'Apply', ownedGates)], { spec: { gates: gates('A', 'B') } }), intent({}, { gates: gates('B', 'A') })],
    [true,  'a keyed list has items of other managers between the wanted items', anObject([entry('us', 'Apply', ownedGates)], { spec: { gates: gates('X', 'B', 'Y', 'A') } }), intent({}, { gates: gates('B', 'A') })],
    [false, 'a set has another order', anObject([entry('us', 'Apply', ownedFinalizers)], { metadata: { finalizers: ['f', 'g'] } }), intent({ finalizers: ['g', 'f'] })],
  ])('is %s when %s', (expected, _, object, intended) => {
    expect(isApplied(object, intended, 'us')).toBe(expected)
  })
})

describe('applyIntent', () => {
  const kind: Kind = { group: 'x', version: 'v1', kind: 'Thing', plural: 'things', scope: 'Namespaced' }
  const applied = async (existing: KubeObject | undefined, intended: Input<KubeObject>) => {
    const sent: unknown[] = []
    const client = { apply: (_: Kind, object: KubeObject) => Promise.resolve(sent.push(object)) }
    await applyIntent({ client, clock: new VirtualClock(), signal: AbortSignal.any([]) } as never, kind, existing, intended, 'us')
    return sent
  }
  const empty = { labels: { a: '1' }, annotations: {}, ownerReferences: [] }

  test('creates an object without the empty members of its metadata, but keeps empty members of its spec', async () => {
    expect(await applied(undefined, intent(empty, { disk: {} }))).toEqual([
      { metadata: { name: 'x', labels: { a: '1' } }, spec: { disk: {} } },
    ])
  })

  test('gives up ownership of an empty map', async () => {
    const owned = { 'f:metadata': { ...labelled['f:metadata'], 'f:annotations': {} } }
    const object = anObject([entry('us', 'Apply', owned)], { metadata: { labels: { a: '1' }, uid: 'u' } })
    expect(await applied(object, intent(empty))).toEqual([{ metadata: { name: 'x', labels: { a: '1' }, uid: 'u' } }])
  })
})

describe('the intent for a provider object', () => {
  const kind: Kind = { group: 'x', version: 'v1', kind: 'Thing', plural: 'things', scope: 'Namespaced' }
  const intended = intent({ labels: { a: '1' }, annotations: {} })
  const owning = (annotations: object) => {
    const owned = { 'f:metadata': { ...labelled['f:metadata'], ...annotations } }
    return anObject([entry('us', 'Apply', owned)], { metadata: { labels: { a: '1' }, uid: 'u' } })
  }

  test('is sent with its empty annotations', async () => {
    const sent: unknown[] = []
    const client = { apply: (_: Kind, object: KubeObject) => Promise.resolve(sent.push(object)) }
    const io = { client, clock: new VirtualClock(), signal: AbortSignal.any([]) } as never
    await applyIntent(io, kind, owning({ 'f:annotations': { 'f:old': {} } }), intended, 'us', { ownsEmpty: true })
    expect(sent).toEqual([{ metadata: { name: 'x', labels: { a: '1' }, annotations: {}, uid: 'u' } }])
  })

  test.each([
    ['an entry', { 'f:annotations': {} }],
    ['no entry', {}],
  ])('counts as applied when managedFields have %s for its empty annotations', (_, annotations) => {
    expect(isApplied(owning(annotations), intended, 'us', { ownsEmpty: true })).toBe(true)
  })
})

describe('repairedEntries', () => {
  const now = { apiVersion: 'v2', time: '2026-01-01T00:00:00Z' }
  const added = {
    ...now,
    manager: 'us',
    operation: 'Apply',
    fieldsType: 'FieldsV1',
    fieldsV1: { 'f:metadata': { 'f:name': {} } },
  }
  const other = entry('other', 'Update', labelled)
  // biome-ignore format: a table
  test.each<[string, ManagedFieldsEntry[], unknown]>([
    ['returns undefined for applied fields',   [entry('us', 'Apply', labelled), other], undefined],
    ['returns undefined for fields of other managers', [other], undefined],
    ['converts an update entry of the manager to an apply entry', [other, entry('us', 'Update', labelled)], [other, { ...added, fieldsV1: labelled }]],
    ['keeps the apply entry and drops the update entry',   [entry('us', 'Apply', labelled), entry('us', 'Update', {})], [entry('us', 'Apply', labelled)]],
    ['adds an entry to an object without managed fields', [], [added]],
    ['replaces a before-first-apply entry by an entry of the manager', [entry('before-first-apply', 'Update', labelled), other], [other, added]],
  ])('%s', (_, entries, expected) => {
    expect(repairedEntries(entries, 'us', now)).toEqual(expected)
  })
})

describe('handOverMetadata', () => {
  const kind: Kind = { group: 'x', version: 'v1', kind: 'Thing', plural: 'things', scope: 'Namespaced' }
  const stale = anObject([entry('us', 'Apply', labelled)], { metadata: { resourceVersion: '1' } })
  const written = anObject([entry('us', 'Apply', labelled), entry('provider', 'Update', { 'f:spec': {} })], {
    metadata: { resourceVersion: '2' },
  })

  /** Transfers the metadata on a server that rejects the first `conflicts` writes, because a provider has changed the object. */
  const handOver = async (conflicts: number, object = stale) => {
    const sent: { op: string; path: string; value: unknown }[][] = []
    const client = {
      get: () => Promise.resolve(written),
      patch: (_kind: Kind, _key: object, { operations }: { operations: (typeof sent)[number] }) => {
        sent.push(operations)
        return sent.length <= conflicts
          ? Promise.reject(new StatusError('Conflict', 'the object has been modified'))
          : Promise.resolve('patched')
      },
    }
    const managers = { from: 'us', to: 'metadata' }
    const metadata = { labels: { a: '1' }, annotations: {} }
    const updated = await handOverMetadata({ client } as never, kind, object, managers, metadata)
    return { updated, last: sent.at(-1), tries: sent.length }
  }

  test('reads the object again after a conflict, and keeps the entries of other managers', async () => {
    const { updated, last, tries } = await handOver(1)
    expect([updated, tries, last?.[1]?.value]).toEqual(['patched', 2, '2'])
    const entries = last?.[0]?.value as ManagedFieldsEntry[]
    expect(entries.map(({ manager }) => manager)).toEqual(['provider', 'us', 'metadata'])
    expect(entries.at(-1)!.fieldsV1).toEqual({ 'f:metadata': { 'f:labels': { 'f:a': {} }, 'f:annotations': {} } })
  })

  test('transfers nothing from a manager that owns annotations but no labels, as during an in-place update', async () => {
    const annotated = anObject([entry('us', 'Apply', { 'f:metadata': { 'f:annotations': { 'f:update': {} } } })])
    const { updated, tries } = await handOver(0, annotated)
    expect([updated, tries]).toEqual([annotated, 0])
  })

  test('fails after three conflicts', async () => {
    await expect(handOver(3)).rejects.toThrow('the object has been modified')
  })
})
