import type { KubeObject } from '@capstan/kube'
import { expect, test } from 'vitest'
import { metadataPatch } from './managed-metadata.ts'

const labels = (...keys: string[]) => ({ 'f:metadata': { 'f:labels': Object.fromEntries(keys.map((key) => [`f:${key}`, {}])) } })

const object: KubeObject = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: {
    name: 'c',
    uid: 'u',
    resourceVersion: '1',
    creationTimestamp: '',
    labels: { ours: 'a', shared: 'b', theirs: 'c' },
    managedFields: [
      {
        manager: 'us',
        operation: 'Update',
        apiVersion: 'v1',
        fieldsType: 'FieldsV1',
        fieldsV1: labels('ours', 'shared', 'gone'),
      },
      { manager: 'them', operation: 'Apply', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: labels('shared', 'theirs') },
    ],
  },
}

test.each([
  ['is undefined when the entries of the manager are as desired', { ours: 'a', shared: 'b' }, undefined],
  ['contains changed entries', { ours: 'x', shared: 'b' }, { labels: { ours: 'x' } }],
  ['contains new entries', { ours: 'a', shared: 'b', more: 'd' }, { labels: { more: 'd' } }],
  ['removes only entries that no other manager has set', {}, { labels: { ours: null } }],
])('the patch %s', (_, desiredLabels, patch) => {
  expect(metadataPatch(object, 'us', { labels: desiredLabels, annotations: {} })).toEqual(patch)
})
