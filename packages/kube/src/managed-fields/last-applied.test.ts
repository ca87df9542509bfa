import { expect, test } from 'vitest'
import type { KubeObject } from '../object.ts'
import { renewLastApplied } from './last-applied.ts'

const LastApplied = 'kubectl.kubernetes.io/last-applied-configuration'
const widget = (fields: object): KubeObject => ({
  apiVersion: 'test.dev/v1',
  kind: 'Widget',
  metadata: { name: 'a', uid: '', resourceVersion: '', creationTimestamp: '' },
  ...fields,
})

test.each([
  ['keeps the annotation when its 200,000 letters have one byte each', 'a', true],
  ['removes the annotation when its 200,000 letters have two bytes each', 'ä', false],
])('renewLastApplied %s', (_, letter, isKept) => {
  const result = widget({})
  result.metadata.annotations = { [LastApplied]: '{}' }
  renewLastApplied(result, widget({ spec: letter.repeat(200_000) }))
  expect(Object.keys(result.metadata.annotations)).toEqual(isKept ? [LastApplied] : [])
})
