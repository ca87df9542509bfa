import type { KubeObject } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { changes, hasExactly, comparedFields, replaced } from './compared-fields.ts'

const machine = (metadata: object = {}, rest: object = {}): KubeObject =>
  ({
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'Machine',
    metadata: {
      name: 'm',
      uid: 'first',
      resourceVersion: '1',
      labels: { keep: 'ours' },
      managedFields: [
        {
          manager: 'capi-machineset',
          operation: 'Apply',
          time: '1',
          fieldsV1: { 'f:metadata': { 'f:labels': { 'f:keep': {} } } },
        },
        { manager: 'manager', operation: 'Update', subresource: 'status', time: '1', fieldsV1: { 'f:status': {} } },
      ],
      ...metadata,
    },
    spec: { version: 'v1.34.0', taints: [{ key: 'a' }] },
    status: { phase: 'Running' },
    ...rest,
  }) as unknown as KubeObject

const compared = (before: KubeObject, after: KubeObject) =>
  changes(new Map([['Machine m', comparedFields(before)]]), new Map([['Machine m', comparedFields(after)]]))

describe('changes', () => {
  test.each<[string, KubeObject]>([
    ['the status', machine({}, { status: { phase: 'Deleting' } })],
    ['the resourceVersion', machine({ resourceVersion: '2' })],
    [
      'the times of managedFields entries, and the entries of the status subresource',
      machine({
        managedFields: [
          {
            manager: 'capi-machineset',
            operation: 'Apply',
            time: '2',
            fieldsV1: { 'f:metadata': { 'f:labels': { 'f:keep': {} } } },
          },
          { manager: 'capstan', operation: 'Update', subresource: 'status', time: '2', fieldsV1: { 'f:status': {} } },
        ],
      }),
    ],
  ])('ignores %s', (_, after) => {
    expect(compared(machine(), after)).toEqual([])
  })

  test.each<[string, KubeObject, string]>([
    ['another Machine of the same name', machine({ uid: 'second' }), 'metadata.uid: "first" -> "second"'],
    ['a label that is left over', machine({ labels: { keep: 'ours', go: 'before' } }), 'metadata.labels.go: absent -> "before"'],
    ['a label that is lost', machine({ labels: {} }), 'metadata.labels.keep: "ours" -> absent, metadata.labels: absent -> {}'],
    [
      'a duplicate of an existing taint',
      machine({}, { spec: { version: 'v1.34.0', taints: [{ key: 'a' }, { key: 'a' }] } }),
      'spec.taints.1.key: absent -> "a"',
    ],
    [
      'a field that has another manager',
      machine({
        managedFields: [
          { manager: 'capstan', operation: 'Apply', time: '1', fieldsV1: { 'f:metadata': { 'f:labels': { 'f:keep': {} } } } },
        ],
      }),
      'metadata.managedFields.capi-machineset Apply.f:metadata.f:labels.f:keep: {} -> absent, metadata.managedFields.capstan Apply.f:metadata.f:labels.f:keep: absent -> {}',
    ],
  ])('reports %s', (_, after, text) => {
    expect(compared(machine(), after)).toEqual([`Machine m: ${text}`])
  })

  test('reports deleted and new objects', () => {
    const reported = changes(
      new Map([['Machine m', comparedFields(machine())]]),
      new Map([['Machine n', comparedFields(machine({ name: 'n' }))]]),
    )
    expect(reported.map((text) => text.split(':')[0])).toEqual(['Machine m', 'Machine n'])
  })
})

describe('replaced', () => {
  test('is empty for the same Machines in a different order', () => {
    const other = machine({ name: 'n', uid: 'other' })
    expect(replaced([machine(), other], [other, machine()])).toEqual([])
  })

  test('reports a Machine that was replaced by a new Machine of the same name', () => {
    expect(replaced([machine()], [machine({ uid: 'second' })])).toEqual(['- m first', '+ m second'])
  })

  test('reports a Machine that is added', () => {
    expect(replaced([], [machine()])).toEqual(['+ m first'])
  })
})

describe('hasExactly', () => {
  test.each<[string, object, boolean]>([
    ['is true for the desired labels and an unrelated label', { keep: 'ours', other: 'x' }, true],
    ['is false for a label that is left over', { keep: 'ours', go: 'before' }, false],
    ['is false for a label with another value', { keep: 'before' }, false],
    ['is false without labels', {}, false],
  ])('%s', (_, labels, expected) => {
    expect(hasExactly({ keep: 'ours' }, machine({ labels }))).toBe(expected)
  })
})
