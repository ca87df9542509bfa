import type { Machine } from '@capstan/api'
import { legacyConditionsOf } from '@capstan/kube'
import { aCluster, aCondition, aMachine, aMachineSet } from '@capstan/testing'
import { describe, expect, test } from 'vitest'
import { unread } from '../external/observed.ts'
import { nextLegacyReport, reportLegacyStatus } from './legacy-status.ts'
import type { MachineSetScope } from './scope.ts'

const now = Date.UTC(2026, 0, 1, 0, 1)
const since = (seconds: number) => new Date(now - seconds * 1000).toISOString()
const ready = { type: 'Ready', status: 'True', lastTransitionTime: since(0) }
const waiting = {
  type: 'Ready',
  status: 'False',
  severity: 'Info',
  reason: 'WaitingForInfrastructure',
  message: '1 of 2 completed',
  lastTransitionTime: since(0),
}

interface Given {
  /** Seconds since the Node became ready; absent without a Node. */
  readyFor?: number
  /** The v1beta1 condition Ready of the Machine. Default: True. */
  legacy?: typeof ready
  labels?: Record<string, string>
}
const machine = (name: string, { readyFor, legacy = ready, labels = { set: 'ms' } }: Given = {}): Machine =>
  aMachine({
    metadata: { name, labels },
    status: {
      deprecated: { v1beta1: { conditions: [legacy] } },
      ...(readyFor === undefined
        ? {}
        : { nodeRef: { name }, conditions: [aCondition('NodeReady', 'True', { lastTransitionTime: since(readyFor) })] }),
    },
  })

const aScope = ({
  replicas,
  minReadySeconds,
  deleting,
  ...overrides
}: Partial<MachineSetScope> & { replicas?: number; minReadySeconds?: number; deleting?: true } = {}): MachineSetScope => ({
  machineSet: aMachineSet({
    metadata: deleting ? { deletionTimestamp: since(1) } : {},
    spec: {
      replicas: replicas ?? 2,
      template: {
        metadata: { labels: { set: 'ms' } },
        spec: { ...aMachine().spec, ...(minReadySeconds === undefined ? {} : { minReadySeconds }) },
      },
    },
  }),
  cluster: aCluster(),
  machineDeployment: undefined,
  bootstrapTemplate: unread,
  infrastructureTemplate: unread,
  machines: [],
  preflightProblems: [],
  ...overrides,
})

function reported(scope: MachineSetScope): string[] {
  reportLegacyStatus(scope, now)
  return legacyConditionsOf(scope.machineSet).map(
    ({ type, status, severity, reason, message }) =>
      `${type} ${status}${severity ? `/${severity}` : ''}${reason ? ` ${reason}` : ''}${message ? `: ${message}` : ''}`,
  )
}

const both = [machine('a', { readyFor: 9 }), machine('b', { readyFor: 9 })]

test.each<[string, Parameters<typeof aScope>[0], string[]]>([
  [
    'preflight checks fail',
    { preflightProblems: ['not now', 'nor later'] },
    [
      'Ready False/Error PreflightCheckFailed: not now; nor later',
      'MachinesCreated False/Error PreflightCheckFailed: not now; nor later',
      'MachinesReady True',
      'Resized False/Warning ScalingUp: Scaling up MachineSet to 2 replicas (actual 0)',
    ],
  ],
  [
    'the creation of a Machine fails',
    { machines: [both[0]!], creationFailure: { reason: 'InfrastructureTemplateCloningFailed', message: 'no quota' } },
    [
      'Ready False/Error InfrastructureTemplateCloningFailed: no quota',
      'MachinesCreated False/Error InfrastructureTemplateCloningFailed: no quota',
      'MachinesReady True',
      'Resized False/Warning ScalingUp: Scaling up MachineSet to 2 replicas (actual 1)',
    ],
  ],
  [
    'a Machine was created in this reconcile',
    { machines: [both[0]!, machine('b', { legacy: waiting })], created: 1 },
    [
      'Ready False/Warning ScalingUp: Scaling up MachineSet to 2 replicas (actual 1)',
      'MachinesReady False/Info WaitingForInfrastructure @ Machine/b: 1 of 2 completed',
      'Resized False/Warning ScalingUp: Scaling up MachineSet to 2 replicas (actual 1)',
    ],
  ],
  [
    'all Machines exist, but one has no Node',
    { machines: [both[0]!, machine('b', { legacy: waiting })] },
    [
      'Ready False/Info WaitingForInfrastructure @ Machine/b: 1 of 2 completed',
      'MachinesCreated True',
      'MachinesReady False/Info WaitingForInfrastructure @ Machine/b: 1 of 2 completed',
    ],
  ],
  [
    'all Machines have ready Nodes',
    { machines: both },
    ['Ready True', 'MachinesCreated True', 'MachinesReady True', 'Resized True'],
  ],
  [
    'there are too many Machines',
    { machines: both, replicas: 1 },
    [
      'Ready False/Warning ScalingDown: Scaling down MachineSet to 1 replicas (actual 2)',
      'MachinesCreated True',
      'MachinesReady True',
      'Resized False/Warning ScalingDown: Scaling down MachineSet to 1 replicas (actual 2)',
    ],
  ],
  [
    'the MachineSet is being deleted',
    { machines: both, deleting: true },
    [
      'Ready False/Warning ScalingDown: Scaling down MachineSet to 0 replicas (actual 2)',
      'MachinesCreated True',
      'MachinesReady True',
      'Resized False/Warning ScalingDown: Scaling down MachineSet to 0 replicas (actual 2)',
    ],
  ],
])('reports v1beta1 conditions when %s', (_, given, expected) => {
  expect(reported(aScope(given))).toEqual(expected)
})

test('reports no v1beta1 conditions when Machines could not be listed', () => {
  expect(reported(aScope({ machines: undefined }))).toEqual([])
})

test('keeps MachinesCreated False when the preflight checks pass again, until all Machines exist', () => {
  const scope = aScope({ preflightProblems: ['not now'] })
  reportLegacyStatus(scope, now)
  const later = { ...scope, preflightProblems: [], machines: [both[0]!] }
  expect(reported(later)).toContain('MachinesCreated False/Error PreflightCheckFailed: not now')
  expect(reported({ ...later, machines: both })).toContain('MachinesCreated True')
})

describe('the v1beta1 status', () => {
  const counts = (scope: MachineSetScope) => {
    reportLegacyStatus(scope, now)
    const { fullyLabeledReplicas, readyReplicas, availableReplicas } = scope.machineSet.status?.deprecated?.v1beta1 ?? {}
    return [fullyLabeledReplicas, readyReplicas, availableReplicas]
  }
  // biome-ignore format: a table
  test.each<[string, Parameters<typeof aScope>[0], (number | undefined)[], number | undefined]>([
    ['has counts of 0 without Machines',                                {},                                                        [0, 0, 0], undefined],
    ['has no counts when Machines were not listed',                   { machines: undefined },                                   [undefined, undefined, undefined], undefined],
    ['counts only Machines with a ready Node as ready and available', { machines: [both[0]!, machine('b')] },                    [2, 1, 1], undefined],
    ['does not count a Machine without the label of the template as fully labeled', { machines: [both[0]!, machine('b', { labels: {} })] },    [1, 1, 1], undefined],
    ['counts Machines as available whose Nodes have been ready for minReadySeconds', { machines: both, minReadySeconds: 9 },                    [2, 2, 2], undefined],
    ['counts a Machine as available whose condition NodeReady has a transition time in the future', { machines: [both[0]!, machine('b', { readyFor: -3600 })], minReadySeconds: 6 }, [2, 2, 2], undefined],
    ['counts a Machine as available only after minReadySeconds, when the next report is due', { machines: [both[0]!, machine('b', { readyFor: 4 })], minReadySeconds: 6 }, [2, 2, 1], now + 2000],
  ])('%s', (_, given, expected, next) => {
    expect(counts(aScope(given))).toEqual(expected)
    expect(nextLegacyReport(aScope(given), now)).toBe(next)
  })
})
