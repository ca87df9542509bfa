import { expect, test } from 'vitest'
import { isPaused, pausedCondition } from './paused.ts'

const aMachine = (annotations?: Record<string, string>) => ({
  apiVersion: 'cluster.x-k8s.io/v1beta2',
  kind: 'Machine',
  metadata: { name: 'm', uid: 'u', resourceVersion: '1', creationTimestamp: '', ...(annotations ? { annotations } : {}) },
})
const pausedAnnotation = { 'cluster.x-k8s.io/paused': 'false' }
const bothCauses = 'Cluster spec.paused is set to true, Machine has the cluster.x-k8s.io/paused annotation'

test.each([
  ['neither the Cluster nor the object is paused', false, undefined, 'False', 'NotPaused', ''],
  ['the Cluster is paused', true, undefined, 'True', 'Paused', 'Cluster spec.paused is set to true'],
  [
    'the object is paused by its annotation, even with the value false',
    undefined,
    pausedAnnotation,
    'True',
    'Paused',
    'Machine has the cluster.x-k8s.io/paused annotation',
  ],
  ['the Cluster and the object are paused', true, pausedAnnotation, 'True', 'Paused', bothCauses],
] as const)('pausedCondition and isPaused report that %s', (_, paused, annotations, status, reason, message) => {
  const cluster = { spec: paused === undefined ? {} : { paused } }
  expect(pausedCondition(cluster, aMachine(annotations))).toEqual({ type: 'Paused', status, reason, message })
  expect(isPaused(cluster, aMachine(annotations))).toBe(status === 'True')
})
