import type { MachineHealthCheck } from '@capstan/api'
import { expect, test } from 'vitest'
import { type MachineTotals, remediationLimit } from './remediation-limit.ts'

type TriggerIf = NonNullable<NonNullable<MachineHealthCheck['spec']['remediation']>['triggerIf']>

const limitFor = (triggerIf: TriggerIf | undefined, totals: MachineTotals) =>
  remediationLimit(
    { spec: { clusterName: 'demo', selector: {}, ...(triggerIf ? { remediation: { triggerIf } } : {}) } } as MachineHealthCheck,
    totals,
  )
const text = (triggerIf: TriggerIf | undefined, totals: MachineTotals) => {
  const limit = limitFor(triggerIf, totals)
  return limit.allowed ? limit.remaining : limit.message
}
const machines = (expected: number, unhealthy: number, unknown = 0): MachineTotals => ({
  expected,
  healthy: expected - unhealthy - unknown,
  unhealthy,
})
const denied = (details: string) => `Remediation is not allowed, the number of not started or unhealthy machines ${details}`

// The expected messages are those of upstream's machinehealthcheck_controller.go, v1.14.
test.each<[string, TriggerIf | undefined, MachineTotals, number | string]>([
  ['allows remediation of all Machines without a limit', undefined, machines(3, 3), 0],
  [
    'allows remediation while the number of unhealthy Machines equals the limit',
    { unhealthyLessThanOrEqualTo: 2 },
    machines(5, 2),
    0,
  ],
  [
    'denies remediation while more Machines are unhealthy than the limit',
    { unhealthyLessThanOrEqualTo: 1 },
    machines(5, 2),
    denied('exceeds maxUnhealthy (total: 5, unhealthy: 2, maxUnhealthy: 1)'),
  ],
  ['rounds a percentage down', { unhealthyLessThanOrEqualTo: '49%' }, machines(5, 2), 0],
  [
    'denies remediation while more Machines are unhealthy than the percentage allows',
    { unhealthyLessThanOrEqualTo: '39%' },
    machines(5, 2),
    denied('exceeds maxUnhealthy (total: 5, unhealthy: 2, maxUnhealthy: 39%)'),
  ],
  [
    'counts Machines of unknown health against the limit, but not as unhealthy in the message',
    { unhealthyLessThanOrEqualTo: 1 },
    machines(5, 1, 1),
    denied('exceeds maxUnhealthy (total: 5, unhealthy: 1, maxUnhealthy: 1)'),
  ],
  ['returns how many more Machines may become unhealthy', { unhealthyLessThanOrEqualTo: '40%' }, machines(10, 1), 3],
  ['allows remediation within the range', { unhealthyInRange: '[2-4]' }, machines(10, 3), 1],
  [
    'denies remediation below the range',
    { unhealthyInRange: '[2-4]' },
    machines(10, 1),
    denied('does not fall within the range (total: 10, unhealthy: 1, unhealthyRange: [2-4])'),
  ],
  [
    'denies remediation above the range, which overrides the limit',
    { unhealthyInRange: '[2-4]', unhealthyLessThanOrEqualTo: '100%' },
    machines(10, 5),
    denied('does not fall within the range (total: 10, unhealthy: 5, unhealthyRange: [2-4])'),
  ],
])('remediationLimit %s', (_, triggerIf, totals, expected) => expect(text(triggerIf, totals)).toBe(expected))

test.each<[string, TriggerIf, string]>([
  [
    'a range that ends before it begins',
    { unhealthyInRange: '[6-2]' },
    'max value 2 cannot be less than min value 6 for unhealthyRange',
  ],
  ['a number that is too large', { unhealthyInRange: '[1-4294967296]' }, 'has a number above 4294967295'],
  ['text that is not a percentage', { unhealthyLessThanOrEqualTo: '5' }, '"5" is neither a number nor a percentage'],
])('rejects %s', (_, triggerIf, message) => expect(() => limitFor(triggerIf, machines(5, 1))).toThrow(message))
