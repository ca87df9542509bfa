import { expect, test } from 'vitest'
import { patchOperations } from './inline-patch.ts'

const template = { apiVersion: 'infrastructure.cluster.x-k8s.io/v1beta2', kind: 'FooClusterTemplate', metadata: { name: 'x' } }

// Recorded with sigs.k8s.io/yaml v1.6, which upstream parses rendered templates with.
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
])('a template that renders to %j has the value that Go parses', (rendered, value) => {
  const patch = {
    name: 'p',
    definitions: [
      {
        selector: {
          apiVersion: template.apiVersion,
          kind: template.kind,
          matchResources: { infrastructureCluster: true },
        },
        jsonPatches: [{ op: 'add' as const, path: '/spec/x', valueFrom: { template: '{{ .text }}' } }],
      },
    ],
  }
  expect(patchOperations(patch, template as never, { kind: 'infrastructureCluster' }, { text: rendered })).toEqual([
    { op: 'add', path: '/spec/x', value },
  ])
})
