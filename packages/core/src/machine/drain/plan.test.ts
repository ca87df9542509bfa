import type { Cluster, Machine, MachineDrainRule, MachineDrainRuleSpec } from '@capstan/api'
import type { Labels, OwnerReference, Pod } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { classifyPods, planDrain, type PodsInput } from './plan.ts'
import { rulesForMachine } from './rules.ts'

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

const controlledBy = (kind: string, name: string): { ownerReferences: OwnerReference[] } => ({
  ownerReferences: [{ apiVersion: 'apps/v1', kind, name, uid: name, controller: true }],
})
const drainLabel = (value: string) => ({ labels: { 'cluster.x-k8s.io/drain': value } })
const deletedAt = (time: string) => ({ deletionTimestamp: `2026-01-01T${time}Z` })
const namespaces: { [name: string]: Labels } = { default: {}, monitoring: { team: 'observability' } }

const input = (pods: Pod[], overrides: Partial<PodsInput> = {}): PodsInput => ({
  pods,
  rules: [],
  namespaceLabels: (name) => namespaces[name],
  daemonSetExists: (name) => name === 'default/exists',
  isNodeUnreachable: false,
  now,
  ...overrides,
})

const aRule = (name: string, spec: MachineDrainRuleSpec): MachineDrainRule => ({
  apiVersion: 'cluster.x-k8s.io/v1beta2',
  kind: 'MachineDrainRule',
  metadata: { name, namespace: 'default', uid: name, resourceVersion: '1', creationTimestamp: '' },
  spec,
})

/** Returns the behavior for a Pod and, if it is Drain, the order, as text. */
function decision(pod: Pod, overrides: Partial<PodsInput> = {}): string {
  const [podDrain] = classifyPods(input([pod], overrides))
  return podDrain!.behavior === 'Drain' ? `Drain ${podDrain!.order}` : podDrain!.behavior
}

// biome-ignore format: a table
test.each<[string, Pod, string]>([
  ['drains a Pod of a Deployment',                        aPod('a', controlledBy('ReplicaSet', 'rs')),                            'Drain 0'],
  ['drains a Pod without controller',                     aPod('a'),                                                              'Drain 0'],
  ['skips a Pod of a DaemonSet',                          aPod('a', controlledBy('DaemonSet', 'exists')),                         'Skip'],
  ['drains a finished Pod of a DaemonSet',                aPod('a', { ...controlledBy('DaemonSet', 'exists'), phase: 'Failed' }), 'Drain 0'],
  ['drains a Pod of a missing DaemonSet',                 aPod('a', controlledBy('DaemonSet', 'gone')),                           'Drain 0'],
  ['skips a static Pod',                                  aPod('a', { annotations: { 'kubernetes.io/config.mirror': 'x' } }),     'Skip'],
  ['skips a Pod with the drain label Skip',               aPod('a', drainLabel('Skip')),                                          'Skip'],
  ['waits for a Pod with the drain label wait-completed', aPod('a', drainLabel('wait-completed')),                                'WaitCompleted'],
  ['waits for a Pod with the drain label WaitCompleted',  aPod('a', drainLabel('WaitCompleted')),                                 'WaitCompleted'],
  ['ignores a drain label with two dashes',               aPod('a', drainLabel('wait--completed')),                               'Drain 0'],
  ['ignores other values of the drain label',             aPod('a', drainLabel('later')),                                         'Drain 0'],
])('%s', (_, pod, expected) => {
  expect(decision(pod)).toBe(expected)
})

test('skips Pods that an unreachable kubelet should have ended at least two seconds ago', () => {
  const pods = [aPod('old', deletedAt('00:59:58')), aPod('recent', deletedAt('00:59:59')), aPod('new', deletedAt('01:00:00'))]
  const decided = classifyPods(input(pods, { isNodeUnreachable: true, now: now + 999 }))
  expect(decided.map(({ pod, behavior }) => [pod.metadata.name, behavior])).toEqual([
    ['new', 'Drain'],
    ['old', 'Skip'],
    ['recent', 'Drain'],
  ])
})

test('fails when the namespace of a Pod does not exist, unless the Pod has a drain label', () => {
  const pods = [
    aPod('b', { namespace: 'lost' }),
    aPod('a', { namespace: 'lost' }),
    aPod('c', { namespace: 'lost', ...drainLabel('skip') }),
  ]
  expect(() => classifyPods(input(pods))).toThrow('Pods with error "Pod Namespace does not exist": lost/a, lost/b')
})

describe('MachineDrainRules', () => {
  const machine = { metadata: { labels: { os: 'linux' } } } as unknown as Machine
  const cluster = { metadata: { labels: { stage: 'production' } } } as unknown as Cluster
  const skip = { drain: { behavior: 'Skip' } } as const
  const applies = (...rules: MachineDrainRule[]) => rulesForMachine(rules, machine, cluster).map(({ metadata }) => metadata.name)

  // biome-ignore format: a table
  test.each<[string, MachineDrainRuleSpec['machines'], boolean]>([
    ['without selectors apply to all Machines',                             undefined, true],
    ['apply if the selector matches',                                       [{ selector: { matchLabels: { os: 'linux' } } }], true],
    ['do not apply if the selector does not match',                         [{ selector: { matchLabels: { os: 'windows' } } }], false],
    ['apply if the selector is empty',                                      [{ selector: {} }], true],
    ['apply if the clusterSelector matches',                                [{ clusterSelector: { matchLabels: { stage: 'production' } } }], true],
    ['do not apply if one of the two selectors of an entry does not match', [{ selector: { matchLabels: { os: 'linux' } }, clusterSelector: { matchLabels: { stage: 'test' } } }], false],
    ['apply if one of several entries matches',                             [{ selector: { matchLabels: { os: 'windows' } } }, { clusterSelector: { matchLabels: { stage: 'production' } } }], true],
  ])('%s', (_, machines, expected) => {
    expect(applies(aRule('a', { ...skip, ...(machines ? { machines } : {}) }))).toEqual(expected ? ['a'] : [])
  })

  test('are sorted by name', () => {
    expect(applies(aRule('b', skip), aRule('c', skip), aRule('a', skip))).toEqual(['a', 'b', 'c'])
  })

  test('with invalid selectors fail the drain, with an error for each rule', () => {
    const invalid = { key: 'os', operator: 'Like', values: ['linux'] }
    const first = aRule('first', { ...skip, machines: [{ selector: { matchExpressions: [invalid] } }] })
    const second = aRule('second', { ...skip, pods: [{ namespaceSelector: { matchExpressions: [invalid] } }] })
    const value = '{"matchExpressions":[{"key":"os","operator":"Like","values":["linux"]}]}'
    const problem = '"Like" is not a valid label selector operator'
    expect(() => applies(first)).toThrow(
      `failed to get matching MachineDrainRules: invalid selectors in MachineDrainRule first: spec.machines[0].selector: Invalid value: ${value}: ${problem}`,
    )
    expect(() => applies(first, second)).toThrow(
      `failed to get matching MachineDrainRules: [invalid selectors in MachineDrainRule first: spec.machines[0].selector: Invalid value: ${value}: ${problem}, invalid selectors in MachineDrainRule second: spec.pods[0].namespaceSelector: Invalid value: ${value}: ${problem}]`,
    )
  })

  test('apply to a Pod only if no earlier rule selects the Pod', () => {
    const rules = [
      aRule('a', {
        drain: { behavior: 'Drain', order: 5 },
        pods: [{ selector: { matchLabels: { app: 'web' } }, namespaceSelector: { matchLabels: { team: 'observability' } } }],
      }),
      aRule('b', { drain: { behavior: 'WaitCompleted' }, pods: [{ selector: { matchLabels: { app: 'job' } } }] }),
      aRule('c', { drain: { behavior: 'Skip' }, pods: [{ namespaceSelector: { matchLabels: { team: 'observability' } } }] }),
    ]
    const labels = (app: string) => ({ labels: { app } })
    expect(decision(aPod('a', { ...labels('web'), namespace: 'monitoring' }), { rules })).toBe('Drain 5')
    expect(decision(aPod('a', labels('web')), { rules })).toBe('Drain 0')
    expect(decision(aPod('a', labels('job')), { rules })).toBe('WaitCompleted')
    expect(decision(aPod('a', { ...labels('other'), namespace: 'monitoring' }), { rules })).toBe('Skip')
  })

  test('do not override the drain label of a Pod', () => {
    expect(decision(aPod('a', drainLabel('wait-completed')), { rules: [aRule('a', skip)] })).toBe('WaitCompleted')
  })
})

describe('a plan', () => {
  const order = (value: number, name: string) =>
    aRule(name, { drain: { behavior: 'Drain', order: value }, pods: [{ selector: { matchLabels: { order: name } } }] })
  const rules = [order(-1, 'first'), order(10, 'last')]
  const plan = (...pods: Pod[]) =>
    Object.fromEntries(
      Object.entries(planDrain(classifyPods(input(pods, { rules }))))
        .filter(([, list]) => list.length > 0)
        .map(([name, list]: [string, readonly Pod[]]) => [name, list.map(({ metadata }) => metadata.name)]),
    )
  const labelled = (name: string, value: string, overrides = {}) => aPod(name, { labels: { order: value }, ...overrides })

  test('evicts the Pods of the lowest order, sorted by name', () => {
    expect(plan(labelled('x', 'last'), aPod('m'), labelled('b', 'first'), labelled('a', 'first'))).toEqual({
      evict: ['a', 'b'],
      evictLater: ['m', 'x'],
    })
  })

  test('evicts nothing while a Pod of a lower order is being deleted', () => {
    expect(plan(labelled('a', 'first', deletedAt('00:59:00')), aPod('m'))).toEqual({ deleting: ['a'], evictLater: ['m'] })
  })

  test('counts Pods with the behavior WaitCompleted as order 0', () => {
    const job = aPod('job', drainLabel('wait-completed'))
    expect(plan(job, aPod('m'), labelled('x', 'last'))).toEqual({ completing: ['job'], evict: ['m'], evictLater: ['x'] })
    expect(plan(job, labelled('a', 'first'))).toEqual({ completeLater: ['job'], evict: ['a'] })
  })

  test('is empty when all Pods are skipped', () => {
    expect(plan(aPod('a', drainLabel('skip')))).toEqual({})
  })
})
