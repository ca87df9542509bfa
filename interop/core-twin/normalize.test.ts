import { Event, type KubeObject } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { explanationOf, explanationOfResponses } from './explained.ts'
import { differencesOf, normalized, normalizedResponse, textOf } from './normalize.ts'

const observed = (kind: string, objects: readonly KubeObject[], updated: readonly string[] = []) => ({
  objects: new Map(objects.map((object) => [object.metadata.name, { kind, object }])),
  updated: new Set(updated),
  changed: 0,
})

/** Returns the differences that no entry of `explained.ts` explains. */
const unexplained = (theirs: ReturnType<typeof observed>, ours: ReturnType<typeof observed>) =>
  differencesOf(normalized(theirs), normalized(ours))
    .filter((difference) => !explanationOf(difference, 'a-case', { count: 1, isOfCreation: true }))
    .map(textOf)

const withFields = (manager: string, fields: object, kind = 'Machine'): KubeObject =>
  ({
    kind,
    metadata: { name: 'm', managedFields: [{ manager, operation: 'Update', fieldsV1: fields }] },
  }) as unknown as KubeObject

describe('field managers of updates', () => {
  const fields = { 'f:spec': { 'f:providerID': {} } }

  test('may be named manager in upstream and capstan in Capstan', () => {
    expect(
      unexplained(observed('Machine', [withFields('manager', fields)]), observed('Machine', [withFields('capstan', fields)])),
    ).toEqual([])
  })

  test('must own the same fields', () => {
    const ours = withFields('capstan', { 'f:spec': { 'f:paused': {} } })
    expect(unexplained(observed('Machine', [withFields('manager', fields)]), observed('Machine', [ours]))).toEqual([
      'Machine m metadata.managedFields[core Update] .spec.providerID\n  - manager',
      'Machine m metadata.managedFields[core Update] .spec.paused\n  + capstan',
    ])
  })

  test('must not have any other name', () => {
    expect(
      unexplained(observed('Machine', [withFields('manager', fields)]), observed('Machine', [withFields('other', fields)])),
    ).toHaveLength(2)
  })

  test('may own a finalizer on only one side, for MachineSets only', () => {
    const finalizer = { 'f:metadata': { 'f:finalizers': { '.': {}, 'v:"cluster.x-k8s.io/machineset"': {} } } }
    const differences = (kind: string) =>
      unexplained(observed(kind, [withFields('manager', finalizer, kind)]), observed(kind, [withFields('capstan', {}, kind)]))
    expect(differences('MachineSet')).toEqual([])
    expect(differences('Machine')).toHaveLength(2)
    const sides = (kind: string) =>
      [observed(kind, [withFields('manager', {}, kind)]), observed(kind, [withFields('capstan', finalizer, kind)])] as const
    expect(unexplained(...sides('MachineSet'))).toEqual([])
    expect(unexplained(...sides('Machine'))).toHaveLength(2)
  })
})

describe('an Event that only upstream records, about an update of a MachineDeployment', () => {
  const event = (message: string) =>
    ({
      kind: Event.kind,
      metadata: { name: 'e' },
      involvedObject: { kind: 'Cluster', name: 'c' },
      type: 'Normal',
      reason: 'TopologyUpdate',
      source: { component: 'topology/cluster-controller' },
      message,
    }) as unknown as KubeObject
  const withoutVersion = event('Updated MachineDeployment "team/c-a"')

  test('is explained when no write has changed the MachineDeployment', () => {
    expect(unexplained(observed('Event', [withoutVersion]), observed('Event', []))).toEqual([])
  })

  test('is reported when a write has changed the MachineDeployment', () => {
    expect(unexplained(observed('Event', [withoutVersion], ['c-a']), observed('Event', [], ['c-a']))).toHaveLength(1)
  })

  test('is reported when its message names a change of version', () => {
    const upgrade = event('Updated MachineDeployment "team/c-a" with version change from v1.34.0 to v1.35.0')
    expect(unexplained(observed('Event', [upgrade]), observed('Event', []))).toHaveLength(1)
  })
})

describe('different error messages of upstream and Capstan for a rejected value', () => {
  const theirs = (text: string) => `admission webhook "default.machine.cluster.x-k8s.io" denied the request: ${text}`
  const unmarshal = theirs('json: cannot unmarshal string into Go struct field MachineSpec.spec.minReadySeconds of type int32')
  const ours = (field: string, text: string) => `Machine.cluster.x-k8s.io "m" is invalid: ${field}: ${text}`

  test.each<[string, string, string, boolean]>([
    [
      'are explained if Go cannot decode the field whose type our schema rejects',
      unmarshal,
      ours('spec.minReadySeconds', 'spec.minReadySeconds in body must be of type integer: "string"'),
      true,
    ],
    [
      'are not explained if Go cannot decode another field',
      unmarshal,
      ours('spec.replicas', 'spec.replicas in body must be of type integer: "string"'),
      false,
    ],
    [
      'are not explained if our error is not about the type of the field',
      unmarshal,
      ours('spec.minReadySeconds', 'Invalid value: -1: must not be negative'),
      false,
    ],
    [
      'are not explained if our webhook rejects the value',
      unmarshal,
      theirs('spec.minReadySeconds in body must be of type integer'),
      false,
    ],
    [
      'are explained if both reject the same field, and our schema rejects its empty value',
      theirs('Machine.cluster.x-k8s.io "m" is invalid: spec.version: Invalid value: "v": must be a valid semantic version'),
      ours('spec.version', 'Invalid value: "": spec.version in body should be at least 1 chars long'),
      true,
    ],
    [
      'are not explained if both reject the same field, and our error is not about an empty value',
      theirs('Machine.cluster.x-k8s.io "m" is invalid: spec.version: Invalid value: "x": must be a valid semantic version'),
      ours('spec.version', 'Invalid value: "x": must be a version'),
      false,
    ],
  ])('%s', (_, their, our, expected) => {
    expect(explanationOfResponses(their, our, 'a-case') !== undefined).toBe(expected)
  })
})

describe('causes of a rejection', () => {
  const cause = (field: string, text: string) => ({ field, message: text })
  const host = cause('spec.host', 'Invalid value: "": spec.host in body should be at least 1 chars long')
  const port = cause('spec.port', 'Invalid value: 0: spec.port in body should be greater than or equal to 1')
  const required = [cause('spec.a', 'Required value'), cause('spec.b', 'Required value')]
  const rejected = (...causes: { field: string; message: string }[]) => {
    const list = causes.map(({ field, message }) => `${field}: ${message}`).join(', ')
    return normalizedResponse('create', {
      code: 422,
      warnings: [],
      body: { message: `"c" is invalid: [${list}]`, details: { causes } },
    })
  }

  test('may be in any order if they are errors of schema validation', () => {
    expect(differencesOf(rejected(host, required[0]!, port), rejected(port, required[0]!, host))).toEqual([])
  })

  test('must be in the same order if they are other errors', () => {
    expect(differencesOf(rejected(...required), rejected(...required.toReversed()))).not.toEqual([])
  })
})
