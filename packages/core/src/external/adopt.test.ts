import type { KubeObject, OwnerReference } from '@capstan/kube'
import { describe, expect, test } from 'vitest'
import { adopted } from './adopt.ts'

const anOwner = (kind: string, name: string, more: Partial<OwnerReference> = {}): OwnerReference => ({
  apiVersion: 'cluster.x-k8s.io/v1beta2',
  kind,
  name,
  uid: `${name}-uid`,
  ...more,
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

  test('patches nothing when all is in place', () => {
    expect(adopted(anObject([user, machine], 'demo'), { owner: machine, clusterName: 'demo', release })).toBeUndefined()
  })

  test('takes over from the MachineSet, keeps other owners, and guards the list by resourceVersion', () => {
    expect(adopted(anObject([set, user], 'demo'), { owner: machine, clusterName: 'demo', release })).toEqual({
      ownerReferences: [user, machine],
      resourceVersion: '7',
    })
  })

  test('labels without touching owners', () => {
    expect(adopted(anObject([machine], 'other'), { owner: machine, clusterName: 'demo' })).toEqual({
      labels: { 'cluster.x-k8s.io/cluster-name': 'demo' },
    })
  })

  test('replaces a reference to an older version or incarnation of the same owner', () => {
    const old = anOwner('Machine', 'm1', { apiVersion: 'cluster.x-k8s.io/v1beta1', uid: 'before' })
    expect(adopted(anObject([old], 'demo'), { owner: machine, clusterName: 'demo' })).toMatchObject({
      ownerReferences: [machine],
    })
  })

  test('rejects an object that another controller owns', () => {
    const other = anOwner('Machine', 'm2', { controller: true })
    expect(() => adopted(anObject([other]), { owner: machine, clusterName: 'demo' })).toThrow(
      'Object default/m1 is already owned by another Machine controller m2',
    )
  })
})
