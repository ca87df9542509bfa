import type { MachineDeployment, MachineSet } from '@capstan/api'
import { aMachineSet } from '@capstan/testing'
import { expect, test } from 'vitest'
import { machineSetIntent, newMachineSet } from './desired-machine-set.ts'

test.each([
  [
    'has a template without annotations if the template of its MachineDeployment has an empty map of annotations, as upstream',
    {},
    undefined,
  ],
  ['copies the annotations of the template of its MachineDeployment', { note: 'n' }, { note: 'n' }],
])('a new MachineSet %s', (_, annotations, expected) => {
  const { spec } = aMachineSet()
  const template = { ...spec.template, metadata: { annotations } }
  const deployment = { metadata: { namespace: 'default', name: 'md' }, spec: { ...spec, template } } as MachineDeployment
  const role = { isCurrent: true, replicas: 1, revision: { current: '1' } }
  expect(newMachineSet(deployment, 'md-abcde', role).spec.template.metadata?.annotations).toEqual(expected)
})

test.each([
  [
    'gets the MachineSet finalizer and the topology finalizer if its MachineDeployment has the topology finalizer',
    ['machinedeployment.topology.cluster.x-k8s.io'],
    2,
  ],
  [
    'gets only the MachineSet finalizer if its MachineDeployment lacks the topology finalizer',
    ['cluster.x-k8s.io/machinedeployment'],
    1,
  ],
])('a new MachineSet %s', (_, finalizers, count) => {
  const { spec } = aMachineSet()
  const deployment = { metadata: { namespace: 'default', name: 'md', finalizers }, spec } as unknown as MachineDeployment
  const role = { isCurrent: true, replicas: 1, revision: { current: '1' } }
  const expected = ['cluster.x-k8s.io/machineset', 'machineset.topology.cluster.x-k8s.io'].slice(0, count)
  expect(newMachineSet(deployment, 'md-abcde', role).metadata.finalizers).toEqual(expected)
})

test('an existing MachineSet gets the selector of its MachineDeployment, with the name of the Cluster and the template hash', () => {
  const { spec } = aMachineSet()
  const deployment = {
    metadata: { namespace: 'default', name: 'md', uid: 'u' },
    spec: { ...spec, selector: { matchLabels: { more: 'x' } } },
  } as unknown as MachineDeployment
  const labels = { 'machine-template-hash': '1-abcde' }
  const set = { metadata: { namespace: 'default', name: 'md-abcde', labels }, spec } as unknown as MachineSet
  const role = { isCurrent: true, replicas: 1, revision: { current: '1' } }
  expect(machineSetIntent(deployment, set, role).spec.selector).toEqual({
    matchLabels: { more: 'x', 'cluster.x-k8s.io/cluster-name': spec.clusterName, 'machine-template-hash': '1-abcde' },
  })
})
