import type { KubeObject } from '@capstan/kube'
import { expect, test } from 'vitest'
import { PropagatedAnnotation, propagateMetadata, type TemplateMetadata, templatedMetadata } from './metadata.ts'

const anObject = (labels?: Record<string, string>, annotations?: Record<string, string>): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Thing',
  metadata: {
    name: 'm',
    uid: 'u',
    resourceVersion: '1',
    creationTimestamp: '',
    ...(labels ? { labels } : {}),
    ...(annotations ? { annotations } : {}),
  },
})
const metadataAfter = (object: KubeObject, template: TemplateMetadata) => {
  propagateMetadata(object, template)
  const { labels, annotations } = object.metadata
  return { labels, annotations }
}

test.each([
  ['adds nothing for an empty template', anObject(), {}, { labels: undefined, annotations: undefined }],
  [
    'adds a label and records it',
    anObject({ own: '1' }),
    { labels: { tier: 'a' } },
    { labels: { own: '1', tier: 'a' }, annotations: { [PropagatedAnnotation]: 'tier;' } },
  ],
  [
    'removes a label that was removed from the template, and keeps labels of other writers',
    anObject({ own: '1', tier: 'a' }, { [PropagatedAnnotation]: 'tier;' }),
    {},
    { labels: { own: '1' }, annotations: {} },
  ],
  [
    'restores a label that another writer has changed',
    anObject({ tier: 'b' }, { [PropagatedAnnotation]: 'tier;' }),
    { labels: { tier: 'a' } },
    { labels: { tier: 'a' }, annotations: { [PropagatedAnnotation]: 'tier;' } },
  ],
  [
    'adds labels and annotations of the template, and removes an annotation that was removed from the template',
    anObject(undefined, { old: '1', [PropagatedAnnotation]: ';old' }),
    { labels: { b: '1', a: '2' }, annotations: { fresh: '2' } },
    { labels: { b: '1', a: '2' }, annotations: { fresh: '2', [PropagatedAnnotation]: 'a,b;fresh' } },
  ],
])('propagateMetadata %s', (_, object, template, expected) => {
  expect(metadataAfter(object, template)).toEqual(expected)
})

test('metadata of a new object needs no later change', () => {
  const template = { labels: { tier: 'a' }, annotations: { note: 'x' } }
  const { labels, annotations } = templatedMetadata(template)
  expect(metadataAfter(anObject(labels, annotations), template)).toEqual({ labels, annotations })
})
