import type { KubeObject } from '@capstan/kube'
import { expect, test } from 'vitest'
import { ReachedReasons, unreachedReasons } from './reached-reasons.ts'

const kind = { group: 'cluster.x-k8s.io', version: 'v1beta2', kind: 'Machine', plural: 'machines', scope: 'Namespaced' } as const

const reached = (...conditions: readonly (readonly [type: string, status: string, reason: string])[]): ReachedReasons => {
  const reasons = new ReachedReasons()
  const status = { conditions: conditions.map(([type, status, reason]) => ({ type, status, reason })) }
  reasons.record(kind, { metadata: { name: 'm' }, status } as unknown as KubeObject)
  return reasons
}

test('a reason counts as reached when upstream and Capstan report it with the same status', () => {
  const theirs = reached(['Ready', 'True', 'Ready'], ['Ready', 'False', 'NotReady'], ['Paused', 'False', 'NotPaused'])
  const ours = reached(['Ready', 'True', 'Ready'], ['Ready', 'Unknown', 'NotReady'], ['Paused', 'False', 'NotPaused'])
  const declared = [
    [
      'Machine',
      [
        { type: 'Ready', reasons: ['Ready', 'NotReady', 'InternalError'] },
        { type: 'Paused', reasons: ['NotPaused'] },
      ],
    ],
    ['MachineSet', [{ type: 'Paused', reasons: ['Paused'] }]],
  ] as const
  expect(unreachedReasons([theirs, ours], declared)).toEqual([
    'Machine: Ready NotReady, InternalError',
    'MachineSet: Paused Paused',
  ])
})
