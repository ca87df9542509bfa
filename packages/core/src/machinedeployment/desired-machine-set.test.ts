import type { MachineDeployment } from '@capstan/api'
import { aMachineSet } from '@capstan/testing'
import { expect, test } from 'vitest'
import { newMachineSet } from './desired-machine-set.ts'

test.each([
  ['leaves out an empty map of annotations, as upstream does', {}, undefined],
  ['copies the annotations of the template', { note: 'n' }, { note: 'n' }],
])('a MachineSet %s', (_, annotations, expected) => {
  const { spec } = aMachineSet()
  const template = { ...spec.template, metadata: { annotations } }
  const deployment = { metadata: { namespace: 'default', name: 'md' }, spec: { ...spec, template } } as MachineDeployment
  const role = { isCurrent: true, replicas: 1, revision: { number: 1, history: '' } }
  expect(newMachineSet(deployment, 'md-abcde', role).spec.template.metadata?.annotations).toEqual(expected)
})
