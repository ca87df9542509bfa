import type { Pod } from '@capstan/kube'
import { expect, test } from 'vitest'
import { drainProgress, type DrainResult } from './progress.ts'

const aPod = (name: string): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default', uid: name, resourceVersion: '1', creationTimestamp: '' },
})
const pods = (...names: string[]) => names.map(aPod)
const emptyResult: DrainResult = { deleting: [], failed: [], completing: [], evictLater: [], completeLater: [] }
const fails = (message: string, ...names: string[]) => pods(...names).map((pod) => ({ pod, message }))
const violated =
  "evict pod as it would violate the pod's disruption budget. The disruption budget pdb needs 20 healthy pods and has 20 currently"

// The expected message is that of upstream's TestEvictionResult_ConditionMessage, with other Pods.
test('the progress groups the Pods that the drain waits for by state and message, with at most three names each', () => {
  const result: DrainResult = {
    deleting: pods('d', 'a', 'b', 'c'),
    failed: [
      ...fails('some other error 1', 'y'),
      ...fails(`Cannot ${violated}`, 'x'),
      ...['2', '3', '4', '5'].flatMap((error) => fails(`some other error ${error}`, `z${error}`)),
    ],
    completing: pods('job'),
    evictLater: pods('l1', 'l2', 'l3', 'l4', 'l5'),
    completeLater: pods('j1', 'j2'),
  }
  expect(drainProgress(result, '2024-10-09T16:13:59Z')).toBe(
    [
      'Drain not completed yet (started at 2024-10-09T16:13:59Z):',
      '* Pods default/d, default/a, default/b, ... (1 more): deletionTimestamp set, but still not removed from the Node',
      `* Pod default/x: cannot ${violated}`,
      '* Pod default/y: failed to evict Pod, some other error 1',
      '* Pod default/z2: failed to evict Pod, some other error 2',
      '* Pod default/z3: failed to evict Pod, some other error 3',
      '* Pod default/z4: failed to evict Pod, some other error 4',
      '* 1 Pod with other issues',
      '* Pod default/job: waiting for completion',
      'After above Pods have been removed from the Node, the following Pods will be evicted: default/l1, default/l2, default/l3, ... (2 more)',
      'After above Pods have been removed from the Node, waiting for the following Pods to complete without eviction: default/j1, default/j2',
    ].join('\n'),
  )
})

test('the progress shows five messages, and counts the Pods with other messages', () => {
  const failed = ['1', '2', '3', '4', '5', '6', '7'].flatMap((error) =>
    error === '6' ? fails(error, 'a', 'b', 'c') : fails(error, error),
  )
  const lines = drainProgress({ ...emptyResult, failed }, 'x')?.split('\n')
  expect([lines?.length, lines?.at(-1)]).toEqual([7, '* 4 Pods with other issues'])
})

test('the progress is undefined when the drain waits for no Pod', () => {
  expect(drainProgress(emptyResult, 'x')).toBeUndefined()
})
