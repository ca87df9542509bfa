import type { Machine } from '@capstan/api'
import { aMachine } from '@capstan/testing'
import { expect, test } from 'vitest'
import { planRemediation } from './remediate.ts'

const timeOf = (minute: number) => `2026-01-01T00:${String(minute).padStart(2, '0')}:00Z`
const machine = (name: string, minute: number, annotations: { [name: string]: string } = {}): Machine =>
  aMachine({ metadata: { name, creationTimestamp: timeOf(minute), annotations } })
const marked = { 'cluster.x-k8s.io/remediate-machine': '' }
const deleting = (name: string, reason: string): Machine =>
  aMachine({
    metadata: { name, deletionTimestamp: timeOf(1), deletionGracePeriodSeconds: 0 },
    status: { conditions: [{ type: 'OwnerRemediated', status: 'False', reason, message: '', lastTransitionTime: timeOf(0) }] },
  })
const plan = (machines: readonly Machine[], requested: readonly Machine[], maxInFlight: number) => {
  const { now, later } = planRemediation(machines, requested, maxInFlight)
  return [now, later].map((list) => list.map(({ metadata }) => metadata.name).join(' '))
}

// The order is that of upstream's sortMachinesToRemediate, v1.14.
const [old, young, twin, chosen] = [machine('old', 1), machine('young', 5), machine('a-twin', 5), machine('chosen', 0, marked)]
const candidates = [old, young, twin, chosen] as readonly Machine[]

test.each<[string, readonly Machine[], number, string[]]>([
  [
    'all at once without a limit: marked Machines first, then the newest, then by name',
    candidates,
    Infinity,
    ['chosen a-twin young old', ''],
  ],
  ['as many as the limit', candidates, 2, ['chosen a-twin', 'young old']],
  [
    'none while as many Machines as the limit are being remediated',
    [...candidates, deleting('terminating', 'MachineDeleting')],
    1,
    ['', 'chosen a-twin young old'],
  ],
  [
    'as many as the limit, which does not count Machines deleted for another reason',
    [...candidates, deleting('terminating', 'RemediationDeferred')],
    1,
    ['chosen', 'a-twin young old'],
  ],
  ['none with a limit of zero', candidates, 0, ['', 'chosen a-twin young old']],
])('remediates %s', (_, machines, maxInFlight, expected) => expect(plan(machines, candidates, maxInFlight)).toEqual(expected))
