import type { JsonObject } from '@capstan/kube'
import { expect, test } from 'vitest'
import { patchOperations, selects } from './inline-patch.ts'

const template = { apiVersion: 'infrastructure.cluster.x-k8s.io/v1beta2', kind: 'FooClusterTemplate', metadata: { name: 'x' } }

// Recorded with sigs.k8s.io/yaml v1.6, with which upstream parses rendered templates.
test.each<[rendered: string, value: unknown]>([
  ['2024-01-01', '2024-01-01'],
  ['2024-01-01T00:00:00Z', '2024-01-01T00:00:00Z'],
  ['12:30', '12:30'],
  ['yes', true],
  ['0644', 420],
  ['1_000', 1000],
  ['{a: 1, a: 2}', { a: 2 }],
  ['{x: &a {k: 1}, z: {<<: *a, l: 2}}', { x: { k: 1 }, z: { k: 1, l: 2 } }],
  ['', null],
])('a template that renders to %j has the value that upstream parses', (rendered, value) => {
  expect(operations({ template: '{{ .text }}' }, { text: rendered })).toEqual([{ op: 'add', path: '/spec/x', value }])
})

// Upstream: fastjson's Exists and Get accept the index of a list as a segment.
test.each([
  ['cidrs[1]', 'b'],
  ['cidrs.1', 'b'],
])('the variable %s is an item of a list', (variable, value) =>
  expect(operations({ variable }, { cidrs: ['a', 'b'] })).toEqual([{ op: 'add', path: '/spec/x', value }]),
)

test('an index past the end of a list is an error', () =>
  expect(() => operations({ variable: 'cidrs.2' }, { cidrs: ['a', 'b'] })).toThrow(
    'variable "cidrs.2" does not exist: failed to lookup segment "2"',
  ))

// Upstream: matchesSelector in json_patch_generator.go.
test.each([
  ['machineDeploymentClass', 'does not select', false],
  ['machinePoolClass', 'selects', true],
])('a selector with %s worker %s a template of the MachinePool class worker', (resources, _, expected) => {
  const selector = {
    apiVersion: template.apiVersion,
    kind: template.kind,
    matchResources: { [resources]: { names: ['worker'] } },
  }
  expect(selects(selector, template as never, { kind: 'machinePool', class: 'worker' })).toBe(expected)
})

function operations(valueFrom: { template: string } | { variable: string }, variables: JsonObject) {
  const matchResources = { infrastructureCluster: true }
  const selector = { apiVersion: template.apiVersion, kind: template.kind, matchResources }
  const definitions = [{ selector, jsonPatches: [{ op: 'add' as const, path: '/spec/x', valueFrom }] }]
  return patchOperations({ name: 'p', definitions }, template as never, { kind: 'infrastructureCluster' }, variables)
}
