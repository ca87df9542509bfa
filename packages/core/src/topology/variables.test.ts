import type { Cluster, ClusterClass } from '@capstan/api'
import { describe, expect, test } from 'vitest'
import { withDefaultedVariables, defaultAndValidateVariables } from './variables.ts'

const aClass = (schemas: Record<string, object>, required: readonly string[] = []): ClusterClass =>
  ({
    metadata: { name: 'quick', namespace: 'default' },
    status: {
      variables: Object.entries(schemas).map(([name, openAPIV3Schema]) => ({
        name,
        definitions: [{ from: 'inline', required: required.includes(name), schema: { openAPIV3Schema } }],
      })),
    },
  }) as unknown as ClusterClass

const aCluster = (variables: Record<string, unknown>, overrides?: Record<string, unknown>): Cluster => {
  const list = (values: Record<string, unknown>) => Object.entries(values).map(([name, value]) => ({ name, value }))
  return {
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'Cluster',
    metadata: { name: 'demo', namespace: 'default' },
    spec: {
      topology: {
        classRef: { name: 'quick' },
        version: 'v1.34.0',
        variables: list(variables),
        ...(overrides
          ? { workers: { machineDeployments: [{ class: 'w', name: 'md-0', variables: { overrides: list(overrides) } }] } }
          : {}),
      },
    },
  } as unknown as Cluster
}

const schemas = {
  replicas: { type: 'integer', default: 3, maximum: 9 },
  zone: { type: 'string', enum: ['a', 'b'] },
  net: { type: 'object', properties: { mtu: { type: 'integer', default: 1500 }, name: { type: 'string' } } },
}

describe('defaults', () => {
  test('lists values set by the user first, then defaulted values', () => {
    const { spec } = withDefaultedVariables(aCluster({ zone: 'a' }), aClass(schemas))
    expect(spec.topology!.variables).toEqual([
      { name: 'zone', value: 'a' },
      { name: 'replicas', value: 3 },
    ])
  })

  test('defaults fields inside a value', () => {
    const { spec } = withDefaultedVariables(aCluster({ net: { name: 'x' }, replicas: 1 }), aClass(schemas))
    expect(spec.topology!.variables).toEqual([
      { name: 'net', value: { name: 'x', mtu: 1500 } },
      { name: 'replicas', value: 1 },
    ])
  })

  test('defaults fields inside an override, but adds no override', () => {
    const { spec } = withDefaultedVariables(aCluster({}, { net: {} }), aClass(schemas))
    expect(spec.topology!.workers!.machineDeployments![0]!.variables!.overrides).toEqual([{ name: 'net', value: { mtu: 1500 } }])
  })
})

describe('validation', () => {
  test.each([
    ['an unknown variable', { other: 1 }, 'spec.topology.variables[other]: Invalid value: "1": variable is not defined'],
    [
      'a value of another type',
      { replicas: 'many' },
      'spec.topology.variables[replicas].value: Invalid value: "\\"many\\"": must be of type integer: "string"',
    ],
    [
      'a value above the maximum',
      { replicas: 12 },
      'spec.topology.variables[replicas].value: Invalid value: "12": should be less than or equal to 9',
    ],
    [
      'a value outside of the enum',
      { zone: 'c' },
      'spec.topology.variables[zone].value: Unsupported value: "\\"c\\"": supported values: "a", "b"',
    ],
    [
      'a member of another type',
      { net: { mtu: 'x' } },
      'spec.topology.variables[net].value.mtu: Invalid value: "{\\"mtu\\":\\"x\\"}": mtu in body must be of type integer: "string"',
    ],
    [
      'an unknown member',
      { net: { mtu: 1500, foo: 1 } },
      'spec.topology.variables[net]: Invalid value: "{\\"foo\\":1,\\"mtu\\":1500}": failed validation: "foo" field(s) are not specified in the variable schema of variable "net"',
    ],
  ])('rejects %s with the text of upstream', (_, variables, message) => {
    const errors = defaultAndValidateVariables(aCluster(variables), aClass(schemas))
    expect(errors.map(({ field, text }) => `${field}: ${text}`)).toEqual([message])
  })

  describe('rules in CEL', () => {
    const rules = (type: string, ...validations: object[]) => ({ type, 'x-kubernetes-validations': validations })
    const ruled = {
      grows: rules('integer', { rule: 'self >= oldSelf', message: 'may not shrink' }),
      small: rules('integer', { rule: 'self < 10', messageExpression: "'too big: ' + string(self)" }),
      net: {
        ...rules('object', { rule: 'self.low <= self.high', fieldPath: '.high', reason: 'FieldValueForbidden' }),
        properties: { low: { type: 'integer' }, high: { type: 'integer' } },
      },
    }
    const errorsOf = (cluster: Cluster, old?: Cluster) =>
      defaultAndValidateVariables(cluster, aClass(ruled), old).map(({ field, text }) => `${field}: ${text}`)

    test('that use oldSelf are evaluated only for a variable with an old value', () => {
      expect(errorsOf(aCluster({ grows: 1 }))).toEqual([])
      expect(errorsOf(aCluster({ grows: 1 }), aCluster({}))).toEqual([])
      expect(errorsOf(aCluster({ grows: 1 }), aCluster({ grows: 2 }))).toEqual([
        'spec.topology.variables[grows].value: Invalid value: "1": may not shrink',
      ])
    })
    test('take the old value of an override from the same override', () => {
      expect(errorsOf(aCluster({ grows: 5 }, { grows: 1 }), aCluster({ grows: 5 }))).toEqual([])
      expect(errorsOf(aCluster({ grows: 5 }, { grows: 1 }), aCluster({ grows: 1 }, { grows: 2 }))).toEqual([
        'spec.topology.workers.machineDeployments[md-0].variables.overrides[grows].value: Invalid value: "1": may not shrink',
      ])
    })
    test('apply to unchanged values', () => {
      expect(errorsOf(aCluster({ small: 12 }), aCluster({ small: 12 }))).toEqual([
        'spec.topology.variables[small].value: Invalid value: "12": too big: 12',
      ])
    })
    test('are not evaluated for values with unknown members', () => {
      expect(errorsOf(aCluster({ net: { low: 2, high: 1, middle: 1 } }))).toEqual([
        expect.stringContaining('failed validation: "middle" field(s) are not specified'),
      ])
    })
    test('determine the field and the type of their error by fieldPath and reason', () => {
      expect(errorsOf(aCluster({ net: { low: 2, high: 1 } }))).toEqual([
        'spec.topology.variables[net].value.high: Forbidden: failed rule: self.low <= self.high',
      ])
    })
  })

  test('rejects a Cluster without a required variable', () => {
    const errors = defaultAndValidateVariables(aCluster({}), aClass(schemas, ['zone']))
    expect(errors).toMatchObject([
      { field: 'spec.topology.variables', text: 'Required value: required variable "zone" must be set' },
    ])
  })

  test('reports an invalid override with the name of the MachineDeployment topology in the path', () => {
    const errors = defaultAndValidateVariables(aCluster({}, { zone: 'q' }), aClass(schemas))
    expect(errors).toMatchObject([{ field: 'spec.topology.workers.machineDeployments[md-0].variables.overrides[zone].value' }])
  })

  test('reports all errors of a Cluster in one error', () => {
    expect(() => withDefaultedVariables(aCluster({ other: 1 }), aClass(schemas, ['zone']))).toThrow(
      'Cluster.cluster.x-k8s.io "demo" is invalid: [spec.topology.variables[other]: Invalid value: "1": variable is not defined, spec.topology.variables: Required value: required variable "zone" must be set]',
    )
  })
})
