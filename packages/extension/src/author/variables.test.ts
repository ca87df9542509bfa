import { VariableError } from '@capstan/api'
import { s } from '@capstan/kube'
import { describe, expect, expectTypeOf, it, test } from 'vitest'
import { variableDefinitionErrors } from '../../../core/src/clusterclass/variable-rules.ts'
import { defineVariables, mergedVariables, Variables } from './variables.ts'

const list = (values: Record<string, unknown>) => Object.entries(values).map(([name, value]) => ({ name, value }))

describe('merged variables', () => {
  it('prefer values of the template, and merge builtin at every depth', () => {
    const merged = mergedVariables(
      list({
        region: 'eu1',
        size: { cpu: 1, disk: 2 },
        builtin: { cluster: { name: 'demo', topology: { version: 'v1', future: true } }, unheardOf: 1 },
      }),
      list({
        size: { cpu: 3 },
        builtin: {
          cluster: { topology: { version: 'v2' }, network: { pods: ['10.0.0.0/8'] } },
          machineDeployment: { replicas: 2 },
        },
      }),
    )
    expect(merged).toEqual({
      region: 'eu1',
      size: { cpu: 3 },
      builtin: {
        cluster: { name: 'demo', topology: { version: 'v2', future: true }, network: { pods: ['10.0.0.0/8'] } },
        machineDeployment: { replicas: 2 },
        unheardOf: 1,
      },
    })
  })

  it('treat names such as __proto__ as ordinary names', () => {
    const hostile = mergedVariables(JSON.parse('[{"name":"__proto__","value":{"polluted":1}}]'))
    expect([JSON.stringify(hostile), ({} as { polluted?: 1 }).polluted]).toEqual(['{"__proto__":{"polluted":1}}', undefined])
  })

  it('do not change the variables of the request', () => {
    const request = list({ builtin: { cluster: { name: 'a' } } })
    mergedVariables(request, list({ builtin: { cluster: { name: 'b' } } }))
    expect(request).toEqual(list({ builtin: { cluster: { name: 'a' } } }))
  })
})

describe('Variables', () => {
  const variables = new Variables({
    region: 'eu1',
    secure: false,
    nothing: null,
    size: { cpu: 2, share: 0.5 },
    disks: [{ gib: 10 }, { gib: 20 }],
    builtin: { cluster: { name: 'demo' } },
  })

  test.each<[string, unknown]>([
    ['region', 'eu1'],
    ['size.cpu', 2],
    ['disks[1].gib', 20],
    ['disks[0]', { gib: 10 }],
    ['disks.1.gib', 20],
    ['builtin.cluster.name', 'demo'],
    ['nothing', null],
  ])('returns for %s the value %j', (path, value) => expect(variables.value(path)).toEqual(value))

  test('reads values by type, with fallbacks and has()', () => {
    expect([
      variables.string('region'),
      variables.boolean('secure'),
      variables.integer('size.cpu'),
      variables.number('size.share'),
      variables.string('zone', 'a'),
      variables.integer('size.memory', 4),
      variables.boolean('disks[7].encrypted', true),
      variables.has('size.cpu'),
      variables.has('size.memory'),
    ]).toEqual(['eu1', false, 2, 0.5, 'a', 4, true, true, false])
  })

  test.each<[string, () => unknown, VariableError['problem'], string]>([
    ['a variable that is not set', () => variables.string('zone'), 'not-set', 'failed to get variable "zone": "zone" is not set'],
    [
      'a field that is not set',
      () => variables.value('size.memory.max'),
      'not-set',
      'failed to get variable "size.memory.max": "size.memory" is not set',
    ],
    [
      'an index past the end',
      () => variables.value('disks[2].gib'),
      'not-set',
      'failed to get variable "disks[2].gib": "disks[2]" is past the end of the list',
    ],
    [
      'a field of a string',
      () => variables.string('region.x', ''),
      'wrong-type',
      'failed to get variable "region.x": "region" is not an object',
    ],
    [
      'an index of an object',
      () => variables.value('size[0]'),
      'wrong-type',
      'failed to get variable "size[0]": "size[0]" is not in a list',
    ],
    [
      'an invalid path',
      () => variables.value('size..cpu'),
      'bad-path',
      'failed to get variable "size..cpu": invalid path segment ""',
    ],
    [
      'a number that is read as a string, with a fallback',
      () => variables.string('size.cpu', 'x'),
      'wrong-type',
      'failed to get variable "size.cpu": expected a string, but it is a number',
    ],
    [
      'a fraction that is read as an integer',
      () => variables.integer('size.share'),
      'wrong-type',
      'failed to get variable "size.share": expected an integer, but it is a number',
    ],
    [
      'null that is read as a boolean',
      () => variables.boolean('nothing'),
      'wrong-type',
      'failed to get variable "nothing": expected a boolean, but it is null',
    ],
    [
      'a value that does not match the given schema',
      () => variables.as('disks', s.list(s.object({ gib: s.string() }))),
      'wrong-type',
      'failed to get variable "disks": disks[0].gib: Invalid value: "integer": disks[0].gib in body must be of type string: "integer"',
    ],
  ])('throws a VariableError for %s', (_, read, problem, message) => {
    expect(read).toThrow(VariableError)
    expect(read).toThrow(expect.objectContaining({ problem, message }))
  })

  test('returns copies, so that changes in one template do not affect the next', () => {
    const disks = variables.value('disks') as { gib: number }[]
    disks[0]!.gib = 99
    expect(variables.value('disks[0].gib')).toBe(10)
  })

  test('as() returns a value with the type of its schema, and the fallback for a variable that is not set', () => {
    const disks = variables.as('disks', s.list(s.object({ gib: s.int32() })))
    expectTypeOf(disks).toExtend<{ gib: number }[]>()
    expect(disks).toEqual([{ gib: 10 }, { gib: 20 }])
    expect(variables.as('flags', s.list(s.string()), [])).toEqual([])
  })
})

describe('declared variables', () => {
  const declared = defineVariables({
    region: s.enum('eu1', 'us1').doc('Where machines run.'),
    disks: s.int32({ minimum: 1 }).default(2),
    proxy: s.object({ http: s.string().optional(), noProxy: s.list(s.string()) }).optional(),
    labels: s.map(s.string()).optional(),
  })

  it('become definitions of the DiscoverVariables response', () => {
    expect(declared.definitions).toEqual([
      {
        name: 'region',
        required: true,
        schema: { openAPIV3Schema: { type: 'string', enum: ['eu1', 'us1'], description: 'Where machines run.' } },
      },
      { name: 'disks', schema: { openAPIV3Schema: { type: 'integer', format: 'int32', minimum: 1, default: 2 } } },
      {
        name: 'proxy',
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: { http: { type: 'string' }, noProxy: { type: 'array', items: { type: 'string' } } },
            required: ['noProxy'],
          },
        },
      },
      { name: 'labels', schema: { openAPIV3Schema: { type: 'object', additionalProperties: { type: 'string' } } } },
    ])
  })

  it('are accepted by core', () => {
    expect(variableDefinitionErrors(declared.definitions.map((definition) => ({ required: false, ...definition })))).toEqual([])
  })

  it('are read together, with their types and defaults', () => {
    const values = new Variables({ region: 'eu1', other: 1 }).of(declared)
    expectTypeOf(values.region).toEqualTypeOf<'eu1' | 'us1'>()
    expectTypeOf(values.proxy).toExtend<{ http?: string; noProxy: string[] } | undefined>()
    expect(values).toEqual({ region: 'eu1', disks: 2 })
  })

  test.each<[string, object, string]>([
    [
      'a value that the schema does not allow',
      { region: 'mars' },
      'failed to get variable "region": region: Unsupported value: "mars": supported values: "eu1", "us1"',
    ],
    ['a missing required variable', {}, 'failed to get variable "region": "region" is not set'],
  ])('cannot be read with %s', (_, values, message) => {
    expect(() => new Variables(values as never).of(declared)).toThrow(message)
  })

  test.each([
    [
      'a name with a dot',
      'a.b',
      s.string(),
      'variable "a.b": the name must not be empty or "builtin", and must not contain a dot',
    ],
    [
      'the name builtin',
      'builtin',
      s.string(),
      'variable "builtin": the name must not be empty or "builtin", and must not contain a dot',
    ],
    ['a nullable schema', 'a', s.string().nullable(), 'variable a: schemas of variables do not support nullable'],
    [
      'a list with x-kubernetes-list-type',
      'a',
      s.object({ b: s.list(s.object({ c: s.string() })).listMap('c') }),
      'variable a: b: schemas of variables do not support x-kubernetes-list-type',
    ],
    ['a fraction as minimum', 'a', s.list(s.number({ minimum: 0.5 })), 'variable a: []: minimum must be an integer, but is 0.5'],
  ])('cannot have %s, which a ClusterClass would reject or drop', (_, name, schema, message) => {
    expect(() => defineVariables({ [name]: schema })).toThrow(message)
  })
})
