import type { KubeObject, OwnerReference } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { adoptionPatch } from './adopt.ts'

const anOwner = (kind: string, name: string, overrides: Partial<OwnerReference> = {}): OwnerReference => ({
  apiVersion: 'cluster.x-k8s.io/v1beta2',
  kind,
  name,
  uid: `${name}-uid`,
  ...overrides,
})
const anObject = (ownerReferences: OwnerReference[] | undefined, clusterName?: string): KubeObject => ({
  apiVersion: 'infra.example.com/v1',
  kind: 'DevMachine',
  metadata: {
    name: 'm1',
    namespace: 'default',
    uid: 'u',
    resourceVersion: '7',
    creationTimestamp: '',
    ...(ownerReferences ? { ownerReferences } : {}),
    ...(clusterName ? { labels: { 'cluster.x-k8s.io/cluster-name': clusterName } } : {}),
  },
})

describe('adoption', () => {
  const machine = anOwner('Machine', 'm1', { controller: true, blockOwnerDeletion: true })
  const set = anOwner('MachineSet', 'ms', { controller: true })
  const user = anOwner('Backup', 'b', { apiVersion: 'example.com/v1' })
  const release = ({ kind }: OwnerReference) => kind === 'MachineSet'

  test('patches nothing when owner and label are set', () => {
    expect(adoptionPatch(anObject([user, machine], 'demo'), { owner: machine, clusterName: 'demo', release })).toBeUndefined()
  })

  // Upstream: util.HasExactOwnerRef does not compare blockOwnerDeletion; SetControllerReference for MachinePools sets it.
  test.each([
    ['keeps', {}, undefined],
    ['replaces, if required,', { replacesBlockOwnerDeletion: true }, { ownerReferences: [machine], resourceVersion: '7' }],
  ])('%s a different blockOwnerDeletion in the reference to the owner', (_, options, expected) => {
    const { blockOwnerDeletion: _block, ...changed } = machine
    expect(adoptionPatch(anObject([changed], 'demo'), { owner: machine, clusterName: 'demo', ...options })).toEqual(expected)
  })

  test('replaces the MachineSet as controller, keeps other owners, and patches the list with the resourceVersion', () => {
    expect(adoptionPatch(anObject([set, user], 'demo'), { owner: machine, clusterName: 'demo', release })).toEqual({
      ownerReferences: [user, machine],
      resourceVersion: '7',
    })
  })

  test('sets the label without changing the owners', () => {
    expect(adoptionPatch(anObject([machine], 'other'), { owner: machine, clusterName: 'demo' })).toEqual({
      labels: { 'cluster.x-k8s.io/cluster-name': 'demo' },
    })
  })

  test('replaces a reference to the same owner that has an older API version and another uid', () => {
    const old = anOwner('Machine', 'm1', { apiVersion: 'cluster.x-k8s.io/v1beta1', uid: 'before' })
    expect(adoptionPatch(anObject([old], 'demo'), { owner: machine, clusterName: 'demo' })).toMatchObject({
      ownerReferences: [machine],
    })
  })

  test('rejects an object that another controller owns', () => {
    const other = anOwner('Machine', 'm2', { controller: true })
    expect(() => adoptionPatch(anObject([other]), { owner: machine, clusterName: 'demo' })).toThrow(
      'Object default/m1 is already owned by another Machine controller m2',
    )
  })
})
