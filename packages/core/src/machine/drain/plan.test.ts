import type { OwnerReference, Pod } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { drainProgress, planDrain } from './plan.ts'

const now = Date.UTC(2026, 0, 1, 1)

const aPod = (name: string, { phase = 'Running', ...metadata }: Partial<Pod['metadata']> & { phase?: string } = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name,
    namespace: 'default',
    uid: name,
    resourceVersion: '1',
    creationTimestamp: '2026-01-01T00:00:00Z',
    ...metadata,
  },
  status: { phase },
})

const by = (kind: string, name: string): { ownerReferences: OwnerReference[] } => ({
  ownerReferences: [{ apiVersion: 'apps/v1', kind, name, uid: name, controller: true }],
})
const drainLabel = (value: string) => ({ labels: { 'cluster.x-k8s.io/drain': value } })
const deletedAt = (time: string) => ({ deletionTimestamp: `2026-01-01T${time}Z` })

// biome-ignore format: a table
test.each<[string, Pod, 'evict' | 'leaving' | 'completing' | 'stay']>([
  ['a Pod of a Deployment goes',               aPod('a', by('ReplicaSet', 'rs')),                    'evict'],
  ['a Pod of nobody goes',                     aPod('a'),                                            'evict'],
  ['a Pod that is going is waited for',        aPod('a', deletedAt('00:59:00')),                     'leaving'],
  ['a Pod of a DaemonSet stays',               aPod('a', by('DaemonSet', 'exists')),                 'stay'],
  ['unless it is finished',                    aPod('a', { ...by('DaemonSet', 'exists'), phase: 'Failed' }), 'evict'],
  ['or its DaemonSet is gone',                 aPod('a', by('DaemonSet', 'gone')),                   'evict'],
  ['a static Pod stays',                       aPod('a', { annotations: { 'kubernetes.io/config.mirror': 'x' } }), 'stay'],
  ['a Pod may ask to be skipped',              aPod('a', drainLabel('Skip')),                        'stay'],
  ['or to be let finish',                      aPod('a', drainLabel('wait-completed')),              'completing'],
  ['in any spelling',                          aPod('a', drainLabel('WaitCompleted')),               'completing'],
  ['other wishes are not heard',               aPod('a', drainLabel('later')),                       'evict'],
])('%s', (_, pod, fate) => {
  const plan = planDrain({ pods: [pod], daemonSetExists: (name) => name === 'default/exists', isNodeUnreachable: false, now })
  expect(plan[fate]).toEqual([pod])
})

test('Pods that an unreachable kubelet should have ended are not waited for', () => {
  const pods = [aPod('old', deletedAt('00:59:58')), aPod('new', deletedAt('01:00:00'))]
  const plan = planDrain({ pods, daemonSetExists: () => true, isNodeUnreachable: true, now })
  expect([plan.stay, plan.leaving].map((some) => some.map(({ metadata }) => metadata.name))).toEqual([['old'], ['new']])
})

describe('progress', () => {
  test('is told by what holds the drain up', () => {
    const violated =
      "cannot evict pod as it would violate the pod's disruption budget. The disruption budget pdb needs 20 healthy pods and has 20 currently"
    expect(
      drainProgress(
        { leaving: ['a', 'b', 'c', 'd'].map((name) => aPod(name)), completing: [aPod('job')] },
        [
          { pod: aPod('x'), message: violated },
          { pod: aPod('y'), message: 'failed to evict Pod, some other error' },
        ],
        '2026-01-01T00:00:00Z',
      ),
    ).toBe(
      [
        'Drain not completed yet (started at 2026-01-01T00:00:00Z):',
        '* Pods default/a, default/b, default/c, ... (1 more): deletionTimestamp set, but still not removed from the Node',
        `* Pod default/x: ${violated}`,
        '* Pod default/y: failed to evict Pod, some other error',
        '* Pod default/job: waiting for completion',
      ].join('\n'),
    )
  })

  test('names five problems and counts the rest', () => {
    const failed = ['1', '2', '3', '4', '5', '6', '7'].map((name) => ({
      pod: aPod(name),
      message: `failed to evict Pod, ${name}`,
    }))
    const lines = drainProgress({ leaving: [], completing: [] }, failed, 'x')?.split('\n')
    expect([lines?.length, lines?.at(-1)]).toEqual([7, '* 2 Pods with other issues'])
  })

  test('ends when nothing is left', () => {
    expect(drainProgress({ leaving: [], completing: [] }, [], 'x')).toBeUndefined()
  })
})
