import type { AdmissionContext } from '@capstan/kube'
import { draft } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { MachineHealthCheck, type MachineHealthCheckSpec } from '../machine-health-check.ts'

const contextOf = (oldObject?: MachineHealthCheck): AdmissionContext<MachineHealthCheck> => ({
  operation: oldObject ? 'UPDATE' : 'CREATE',
  oldObject,
  dryRun: false,
})
const check = (spec: Partial<MachineHealthCheckSpec> = {}): MachineHealthCheck => ({
  apiVersion: 'cluster.x-k8s.io/v1beta2',
  kind: 'MachineHealthCheck',
  metadata: { name: 'demo', namespace: 'default', uid: '', resourceVersion: '', creationTimestamp: '' },
  spec: { clusterName: 'demo', selector: { matchLabels: { foo: 'bar' } }, ...spec },
})
const errorsOf = (object: MachineHealthCheck, old?: MachineHealthCheck): string[] =>
  MachineHealthCheck.validate!(object, contextOf(old)).map(({ field, text }) => `${field}: ${text}`)

describe('defaults', () => {
  const defaulted = (spec: Partial<MachineHealthCheckSpec>): MachineHealthCheck => {
    const object = draft(check(spec))
    MachineHealthCheck.default!(object, contextOf())
    return object
  }

  test('are the label of the Cluster and a Node startup timeout of ten minutes', () => {
    const { metadata, spec } = defaulted({})
    expect(metadata.labels).toEqual({ 'cluster.x-k8s.io/cluster-name': 'demo' })
    expect(spec.checks).toEqual({ nodeStartupTimeoutSeconds: 600 })
  })

  test('keep a disabled startup timeout and other checks', () => {
    const unhealthyNodeConditions = [{ type: 'Ready', status: 'False', timeoutSeconds: 5 }]
    const checks = { nodeStartupTimeoutSeconds: 0, unhealthyNodeConditions }
    expect(defaulted({ checks }).spec.checks).toEqual(checks)
  })
})

// Most inputs and results are from upstream's machinehealthcheck_test.go, v1.14; the texts are those of upstream's webhook.
describe('validation', () => {
  test.each<[string, Partial<MachineHealthCheckSpec>, string[]]>([
    ['accepts a selector', {}, []],
    ['rejects an empty selector', { selector: {} }, ['spec.selector: Required value: selector must not be empty']],
    [
      'rejects a selector of another Cluster',
      { selector: { matchLabels: { 'cluster.x-k8s.io/cluster-name': 'other' } } },
      [
        'spec.selector: Invalid value: {"matchLabels":{"cluster.x-k8s.io/cluster-name":"other"}}: cannot specify a cluster selector other than the one specified by ClusterName',
      ],
    ],
    [
      'rejects a selector of another Cluster, printed with sorted labels',
      { selector: { matchLabels: { z: '1', 'cluster.x-k8s.io/cluster-name': 'other' } } },
      [
        'spec.selector: Invalid value: {"matchLabels":{"cluster.x-k8s.io/cluster-name":"other","z":"1"}}: cannot specify a cluster selector other than the one specified by ClusterName',
      ],
    ],
    ['accepts a selector of its own Cluster', { selector: { matchLabels: { 'cluster.x-k8s.io/cluster-name': 'demo' } } }, []],
    [
      'rejects a startup timeout under 30 s',
      { checks: { nodeStartupTimeoutSeconds: 29 } },
      ['spec.checks.nodeStartupTimeoutSeconds: Invalid value: 29: must be at least 30s'],
    ],
    ['accepts a startup timeout of 30 s', { checks: { nodeStartupTimeoutSeconds: 30 } }, []],
    ['accepts a disabled startup timeout', { checks: { nodeStartupTimeoutSeconds: 0 } }, []],
    ['accepts an unhealthy limit as a number', { remediation: { triggerIf: { unhealthyLessThanOrEqualTo: 3 } } }, []],
    ['accepts an unhealthy limit as a percentage', { remediation: { triggerIf: { unhealthyLessThanOrEqualTo: '1%' } } }, []],
    [
      'rejects an unhealthy limit that is a number in quotes',
      { remediation: { triggerIf: { unhealthyLessThanOrEqualTo: '99' } } },
      [
        'spec.remediation.triggerIf.unhealthyLessThanOrEqualTo: Invalid value: "99": must be either an int or a percentage: invalid value for IntOrString: invalid type: string is not a percentage',
      ],
    ],
  ])('%s', (_, spec, errors) => {
    expect(errorsOf(check(spec))).toEqual(errors)
    expect(errorsOf(check(spec), check(spec))).toEqual(errors)
  })

  test('rejects an invalid selector', () => {
    expect(errorsOf(check({ selector: { matchLabels: { '-123-foo': 'bar' } } }))).toHaveLength(1)
  })

  test('rejects a change of the Cluster', () => {
    expect(errorsOf(check({ clusterName: 'other' }), check())).toEqual(['spec.clusterName: Forbidden: field is immutable'])
  })
})
