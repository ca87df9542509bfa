import { seconds } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { keepsQuorum, parseRecord, planRemediation, type RemediationFacts, type ObservedMachine } from './remediation.ts'

const now = Date.parse('2026-01-02T00:00:00Z')
const ago = (s: number) => `${new Date(now - seconds(s)).toISOString().slice(0, 19)}Z`

const aMachine = (name: string, fields: Partial<ObservedMachine> = {}): ObservedMachine => ({
  name,
  created: `2026-01-01T00:00:0${name.slice(1)}Z`,
  deleting: false,
  hasNode: true,
  healthy: true,
  outdated: [],
  deleteFirst: false,
  updatable: false,
  update: 'none',
  failsHealthCheck: false,
  remediationRequested: false,
  marked: false,
  ...fields,
})
/** Fields of a Machine that the control plane must remediate. */
const broken = { healthy: false, failsHealthCheck: true, remediationRequested: true }
const [m2, m3] = [aMachine('m2'), aMachine('m3')]

const decide = (fields: Partial<RemediationFacts>): string => {
  const plan = planRemediation({ machines: [], initialized: true, inProgress: false, limits: {}, now, ...fields })
  switch (plan.kind) {
    case 'none':
      return 'none'
    case 'delete':
      return `delete ${plan.machine}, retry ${plan.record.retryCount}`
    case 'wait':
      return `${plan.machine} ${plan.reason}: ${plan.message}`
  }
}

// Most cases and all messages are from upstream's remediation_test.go, v1.14, where the kind is KubeadmControlPlane.
describe('a remediation', () => {
  test.each<[string, Partial<RemediationFacts>, string]>([
    ['does nothing for healthy Machines', { machines: [aMachine('m1'), m2, m3] }, 'none'],
    [
      'does nothing for a Machine without a requested remediation',
      { machines: [aMachine('m1', { healthy: false, failsHealthCheck: true }), m2, m3] },
      'none',
    ],
    [
      'does nothing while the Machine is being deleted',
      { machines: [aMachine('m1', { ...broken, deleting: true }), m2, m3] },
      'none',
    ],
    [
      'does nothing until the replacement of the last remediation exists',
      { inProgress: true, machines: [aMachine('m1', broken), m2, m3] },
      'none',
    ],
    ['deletes an unhealthy Machine', { machines: [aMachine('m1', broken), m2, m3] }, 'delete m1, retry 0'],
    [
      'waits until the version of the topology is propagated',
      { pendingVersion: 'v1.37.0', machines: [aMachine('m1', broken), m2, m3] },
      "m1 RemediationDeferred: LocalControlPlane can't remediate while waiting for a version upgrade to v1.37.0 to be propagated from Cluster.spec.topology",
    ],
    [
      'is not possible with one Machine',
      { machines: [aMachine('m1', broken)] },
      "m1 CannotBeRemediated: LocalControlPlane can't remediate if current replicas are less or equal to 1",
    ],
    [
      'is possible with one Machine before the control plane is initialized',
      { initialized: false, machines: [aMachine('m1', broken)] },
      'delete m1, retry 0',
    ],
    [
      'waits for a Machine that is being provisioned',
      { machines: [aMachine('m1', broken), m2, aMachine('m3', { hasNode: false, healthy: false })] },
      'm1 RemediationDeferred: LocalControlPlane waiting for control plane Machine provisioning to complete before triggering remediation',
    ],
    [
      'waits for a Machine that is being deleted',
      { machines: [aMachine('m1', broken), m2, aMachine('m3', { deleting: true })] },
      'm1 RemediationDeferred: LocalControlPlane waiting for control plane Machine deletion to complete before triggering remediation',
    ],
    [
      'is not possible when etcd could lose its quorum',
      { machines: [aMachine('m1', broken), aMachine('m2', broken), m3] },
      "m1 CannotBeRemediated: LocalControlPlane can't remediate this Machine because this could result in loosing Kubernetes control plane components or in etcd quorum loss",
    ],
    [
      'deletes a Machine without a Node, which has no etcd member',
      { machines: [aMachine('m1', { ...broken, hasNode: false }), aMachine('m2', broken), m3] },
      'delete m1, retry 0',
    ],
  ])('%s', (_, facts, expected) => {
    expect(decide(facts)).toBe(expected)
  })

  test.each<[string, ObservedMachine[], string]>([
    ['that a user has marked', [aMachine('m1', broken), aMachine('m2', { ...broken, healthy: true, marked: true })], 'm2'],
    ['without a Node', [aMachine('m1', broken), aMachine('m2', { ...broken, hasNode: false })], 'm2'],
    ['whose Node is not Ready', [aMachine('m1', { ...broken, healthy: true }), aMachine('m2', broken)], 'm2'],
    ['that is the oldest', [aMachine('m2', broken), aMachine('m1', broken)], 'm1'],
  ])('begins with the Machine %s', (_, machines, expected) => {
    const healthyMachines = ['m3', 'm4', 'm5'].map((name) => aMachine(name))
    expect(decide({ machines: [...machines, ...healthyMachines] })).toBe(`delete ${expected}, retry 0`)
  })
})

describe('retries of a remediation', () => {
  const machinesWithReplacement = (age: number, retryCount = 0) => [
    aMachine('m1', { ...broken, replaces: { machine: 'm0', timestamp: ago(age), retryCount } }),
    m2,
    m3,
  ]
  test.each<[string, number, number, RemediationFacts['limits'], string]>([
    ['are counted', 60, 1, {}, 'delete m1, retry 2'],
    [
      'are counted from zero when a replacement fails an hour after the last remediation',
      3600,
      7,
      { maxRetry: 3 },
      'delete m1, retry 0',
    ],
    [
      'are counted from zero after minHealthyPeriodSeconds',
      60,
      7,
      { maxRetry: 3, minHealthyPeriodSeconds: 60 },
      'delete m1, retry 0',
    ],
    [
      'wait for retryPeriodSeconds',
      60,
      0,
      { retryPeriodSeconds: 3600 },
      "m1 RemediationDeferred: LocalControlPlane can't remediate this machine because the operation already failed in the latest 1h0m0s (RetryPeriodSeconds)",
    ],
    [
      'are counted from zero when the clock was set back by more than minHealthyPeriodSeconds',
      -7200,
      7,
      { maxRetry: 3 },
      'delete m1, retry 0',
    ],
    [
      'do not wait for the hour by which the clock was set back',
      -3600,
      0,
      { retryPeriodSeconds: 60, minHealthyPeriodSeconds: 7200 },
      'delete m1, retry 1',
    ],
    ['continue after retryPeriodSeconds', 60, 0, { retryPeriodSeconds: 60 }, 'delete m1, retry 1'],
    [
      'end at maxRetry',
      60,
      3,
      { maxRetry: 3 },
      "m1 CannotBeRemediated: LocalControlPlane can't remediate this machine because the operation already failed 3 times (MaxRetry)",
    ],
  ])('%s', (_, age, retryCount, limits, expected) => {
    expect(decide({ machines: machinesWithReplacement(age, retryCount), limits })).toBe(expected)
  })

  test('the wait for retryPeriodSeconds ends when this period has passed since the last remediation', () => {
    const limits = { retryPeriodSeconds: 100 }
    const plan = planRemediation({ machines: machinesWithReplacement(60), initialized: true, inProgress: false, limits, now })
    expect(plan).toMatchObject({ kind: 'wait', until: now + seconds(40) })
  })

  test('parseRecord rejects an annotation value that lacks fields of a remediation record', () => {
    expect(() => parseRecord('{"machine":"m1"}')).toThrow('Cannot read a remediation from annotation value {"machine":"m1"}')
  })
})

// Cases from the comment on upstream's function targetEtcdClusterHealthy.
test.each([
  { members: 2, unhealthy: 0, keeps: true },
  { members: 2, unhealthy: 1, keeps: false },
  { members: 4, unhealthy: 1, keeps: true },
  { members: 4, unhealthy: 2, keeps: false },
  { members: 6, unhealthy: 2, keeps: true },
  { members: 6, unhealthy: 3, keeps: false },
])('etcd with $members members, $unhealthy of them unhealthy, has its quorum: $keeps', ({ members, unhealthy, keeps }) => {
  const machines = Array.from({ length: members }, (_, i) => aMachine(`m${i}`, { healthy: i >= unhealthy }))
  expect(keepsQuorum(machines)).toBe(keeps)
})

test.each([
  { members: 1, unhealthy: 0, keeps: true },
  { members: 2, unhealthy: 0, keeps: true },
  { members: 2, unhealthy: 1, keeps: false },
  { members: 4, unhealthy: 1, keeps: true },
  { members: 4, unhealthy: 2, keeps: false },
])(
  'etcd with $members members, $unhealthy of them unhealthy, keeps its quorum when another member joins: $keeps',
  ({ members, unhealthy, keeps }) => {
    const machines = Array.from({ length: members }, (_, i) => aMachine(`m${i}`, { healthy: i >= unhealthy }))
    expect(keepsQuorum(machines, true)).toBe(keeps)
  },
)
