import type { ConfigMap, Secret } from '@capstan/kube'
import { expect, test } from 'vitest'
import { changesTo } from './apply.ts'
import { needsApply, recordResource } from './binding.ts'
import { readManifests } from './manifests.ts'

const metadata = { name: 'addons', namespace: 'default', uid: '', resourceVersion: '', creationTimestamp: '' }
const configMap = (data?: { [key: string]: string }): ConfigMap => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata,
  ...(data ? { data } : {}),
})
const secret = (data: { [key: string]: string }): Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata,
  data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')])),
})
const manifest = (kind: string, name = 'x') => `apiVersion: v1\nkind: ${kind}\nmetadata:\n  name: ${name}\n`
const names = (source: ConfigMap) =>
  readManifests(source, 'ConfigMap').objects.map(({ kind, metadata }) => `${kind} ${metadata?.name}`)

test('objects are sorted by kind within a value, and values by key', () => {
  const first = ['Deployment', 'Pod', 'ConfigMap', 'Namespace', 'Service', 'CustomResourceDefinition'].map((kind) =>
    manifest(kind),
  )
  expect(names(configMap({ b: manifest('Namespace', 'second'), a: first.join('---\n') }))).toEqual([
    'Namespace x',
    'CustomResourceDefinition x',
    'ConfigMap x',
    'Pod x',
    'Deployment x',
    'Service x',
    'Namespace second',
  ])
})

test('reads values that are YAML documents, a JSON object or a JSON list of objects', () => {
  expect(names(configMap({ a: `---\n# nothing\n--- # next\n${manifest('Pod')}--- \r\n${manifest('Pod', 'z')}---\n` }))).toEqual([
    'Pod x',
    'Pod z',
  ])
  const object = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x' } }
  expect(names(configMap({ a: JSON.stringify(object) }))).toEqual(['Pod x'])
  expect(names(configMap({ a: ` ${JSON.stringify([object, { ...object, kind: 'Namespace' }])}` }))).toEqual([
    'Namespace x',
    'Pod x',
  ])
})

test('reads YAML as sigs.k8s.io/yaml does: dates and times are strings, 0644 is octal, the key `on` is `true`, the last of duplicate keys wins', () => {
  const text = `${manifest('ConfigMap')}data:\n  date: 2024-01-01\n  time: 12:30\n  mode: 0644\n  on: yes\n  a: 1\n  a: 2\n`
  expect(readManifests(configMap({ a: text }), 'ConfigMap').objects).toMatchObject([
    { data: { date: '2024-01-01', time: '12:30', mode: 420, true: true, a: 2 } },
  ])
})

test('hashes all values, sorted by key, to the same hash for a Secret and a ConfigMap', () => {
  const data = { b: manifest('Pod'), a: manifest('Namespace') }
  const { hash } = readManifests(configMap(data), 'ConfigMap')
  expect(hash).toMatch(/^sha256:[0-9a-f]{64}$/)
  expect(readManifests(secret(data), 'Secret').hash).toBe(hash)
  expect(readManifests(configMap({ x: data.a + data.b }), 'ConfigMap').hash).toBe(hash)
  expect(readManifests(configMap({ ...data, a: manifest('Namespace', 'y') }), 'ConfigMap').hash).not.toBe(hash)
})

test.each([
  ['no data', undefined, 'failed to get data field from resource default/addons'],
  ['a value of fewer than 32 bytes', { a: 'kind: Pod' }, 'EOF'],
  ['a broken list', { a: '[{"kind": "Pod", "password": "hunter2" ' }, 'failed converting data to objects: not a valid JSON list'],
  [
    'plain text',
    { a: 'password-hunter2-and-nothing-but-text' },
    'failed converting data to unstructured objects: failed to unmarshal YAML document 1: not an object',
  ],
  [
    'broken YAML in the second document',
    { a: `${manifest('Pod')}---\nkind: Secret\npassword: "hunter2` },
    'failed converting data to unstructured objects: failed to unmarshal YAML document 2: invalid YAML in line 2',
  ],
  [
    'text after a document separator',
    { a: `${manifest('Pod')}--- {password: hunter2}\n${manifest('Pod', 'z')}` },
    'failed converting data to unstructured objects: failed to read YAML: text after the document separator in line 5',
  ],
  [
    'text directly after a document separator',
    { a: `---\n${manifest('Pod')}---hunter2\n` },
    'failed converting data to unstructured objects: failed to read YAML: text after the document separator in line 6',
  ],
])('%s fails without quoting the value', (_, data, message) => {
  expect(() => readManifests(configMap(data), 'ConfigMap')).toThrow(message)
  expect(() => readManifests(configMap(data), 'ConfigMap')).not.toThrow('hunter2')
})

test('a resource is applied until it succeeds, and again after a change if the strategy is Reconcile; a repeated failure keeps the time of the first', () => {
  const ref = { kind: 'ConfigMap', name: 'addons' } as const
  const entry = { clusterResourceSetName: 'crs' }
  expect(needsApply(entry, ref, 'h1', 'ApplyOnce')).toBe(true)
  recordResource(entry, { ...ref, applied: false, hash: 'h1', lastAppliedTime: '2026-01-01T00:00:00Z' })
  expect(needsApply(entry, ref, 'h1', 'ApplyOnce')).toBe(true)
  recordResource(entry, { ...ref, applied: false, hash: 'h1', lastAppliedTime: '2026-01-01T00:01:00Z' })
  expect(entry).toMatchObject({ resources: [{ applied: false, lastAppliedTime: '2026-01-01T00:00:00Z' }] })
  recordResource(entry, { ...ref, applied: true, hash: 'h1', lastAppliedTime: '2026-01-01T00:02:00Z' })
  expect(needsApply(entry, ref, 'h2', 'ApplyOnce')).toBe(false)
  expect(needsApply(entry, ref, 'h1', 'Reconcile')).toBe(false)
  expect(needsApply(entry, ref, 'h2', 'Reconcile')).toBe(true)
  expect(needsApply(entry, { ...ref, kind: 'Secret' as const }, 'h1', 'Reconcile')).toBe(true)
})

test('the patch removes all fields that the manifest lacks, except resourceVersion, also when only fields set by the server differ', () => {
  const current = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'x', uid: 'u', resourceVersion: '5', creationTimestamp: 't', labels: { a: '1', b: '2' }, generation: 3 },
    data: { a: '1', b: '2' },
    status: { ready: true },
  }
  const desiredManifest = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'x', labels: { a: '1' } },
    data: { a: '1', b: '3' },
  }
  // Upstream: client.MergeFrom, which compares whole objects. The server keeps the fields that it sets.
  expect(changesTo(current, desiredManifest)).toEqual({
    metadata: { uid: null, creationTimestamp: null, generation: null, labels: { b: null } },
    data: { b: '3' },
    status: null,
  })
  expect(
    changesTo(current, { ...desiredManifest, metadata: { name: 'x', labels: { a: '1', b: '2' } }, data: { a: '1', b: '2' } }),
  ).toEqual({ metadata: { uid: null, creationTimestamp: null, generation: null }, status: null })
})
