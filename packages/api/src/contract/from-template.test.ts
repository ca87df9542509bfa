import type { UnknownObject } from '@capstan/kube'
import { expect, test } from 'vitest'
import { clonedKind, fromTemplate } from './from-template.ts'

const aTemplate = (spec: object): UnknownObject => ({
  apiVersion: 'infra.example.com/v1beta1',
  kind: 'DevMachineTemplate',
  metadata: { name: 'workers', namespace: 'default', uid: 'u', resourceVersion: '1', creationTimestamp: '' },
  spec,
})
const owner = { apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'MachineSet', name: 'ms', uid: 'ms-uid' }

test('a clone has the spec, labels and annotations of the template, its own name and owner, and annotations that name the template', () => {
  const template = aTemplate({
    template: {
      metadata: { labels: { a: '1', b: '1' }, annotations: { c: '1' }, finalizers: ['x'], uid: 'stale', ownerReferences: [{}] },
      spec: { size: 3 },
    },
  })
  expect(
    fromTemplate(template, {
      name: 'm1',
      namespace: 'default',
      clusterName: 'demo',
      labels: { b: '2' },
      annotations: { d: '2' },
      owner,
    }),
  ).toEqual({
    apiVersion: 'infra.example.com/v1beta1',
    kind: 'DevMachine',
    metadata: {
      name: 'm1',
      namespace: 'default',
      labels: { a: '1', b: '2', 'cluster.x-k8s.io/cluster-name': 'demo' },
      annotations: {
        c: '1',
        d: '2',
        'cluster.x-k8s.io/cloned-from-name': 'workers',
        'cluster.x-k8s.io/cloned-from-groupkind': 'DevMachineTemplate.infra.example.com',
      },
      ownerReferences: [owner],
    },
    spec: { size: 3 },
  })
})

test('a template without `spec.template` leads to an object without a spec', () => {
  const clone = fromTemplate(aTemplate({}), { name: 'm1', namespace: 'default', clusterName: 'demo' })
  expect(clone).not.toHaveProperty('spec')
  expect(clone.kind).toBe('DevMachine')
})

test('apiVersion and kind in `spec.template` replace the derived values', () => {
  const clone = fromTemplate(aTemplate({ template: { kind: 'Special', apiVersion: 'other.example.com/v1' } }), {
    name: 'm1',
    namespace: 'default',
    clusterName: 'demo',
  })
  expect(clone).toMatchObject({ kind: 'Special', apiVersion: 'other.example.com/v1' })
})

test('objects made from templates have the plural of their own kind', () => {
  expect(
    clonedKind({ group: 'g', version: 'v1', kind: 'FooPolicyTemplate', plural: 'foopolicytemplates', scope: 'Namespaced' }),
  ).toMatchObject({
    kind: 'FooPolicy',
    plural: 'foopolicies',
    version: 'v1',
  })
})
