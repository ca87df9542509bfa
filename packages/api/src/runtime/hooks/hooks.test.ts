import { freeze } from '@capstan/kube'
import { expect, it, test } from 'vitest'
import type { Cluster } from '../../core/v1beta2/cluster.ts'
import {
  AfterControlPlaneInitialized,
  BeforeClusterUpgrade,
  clusterOnTheWire,
  Discovery,
  hiddenAnnotations,
  hookPath,
} from './index.ts'

test.each([
  [Discovery, undefined, '/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery'],
  [
    AfterControlPlaneInitialized,
    'Install-CNI',
    '/hooks.runtime.cluster.x-k8s.io/v1alpha1/aftercontrolplaneinitialized/install-cni',
  ],
])('the path of $name is in lower case', (hook, handler, path) => expect(hookPath(hook, handler)).toBe(path))

it('clusterOnTheWire omits status, managed fields and hidden annotations', () => {
  const cluster: Cluster = freeze({
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'Cluster',
    metadata: {
      name: 'demo',
      namespace: 'default',
      uid: 'u1',
      resourceVersion: '7',
      creationTimestamp: '2026-01-01T00:00:00Z',
      annotations: { ...Object.fromEntries(hiddenAnnotations.map((name) => [name, '{}'])), mine: 'kept' },
      managedFields: [{ manager: 'm', operation: 'Update', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: {} }],
    },
    spec: { paused: false },
    status: { phase: 'Pending' },
  } as Cluster)
  expect(clusterOnTheWire(cluster)).toEqual({
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'Cluster',
    metadata: {
      name: 'demo',
      namespace: 'default',
      uid: 'u1',
      resourceVersion: '7',
      creationTimestamp: '2026-01-01T00:00:00Z',
      annotations: { mine: 'kept' },
    },
    spec: { paused: false },
  })
})

it('the schema of a request requires apiVersion, kind and the mandatory fields of the hook', () => {
  expect(BeforeClusterUpgrade.request.json.required).toEqual([
    'apiVersion',
    'kind',
    'cluster',
    'fromKubernetesVersion',
    'toKubernetesVersion',
  ])
})
