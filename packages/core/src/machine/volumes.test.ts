import type { UnknownObject } from '@capstan/kube'
import { expect, test } from 'vitest'
import { describeVolumes } from './volumes.ts'

const aVolume = (name: string, spec: object): UnknownObject => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name, uid: name, resourceVersion: '1', creationTimestamp: '' },
  spec,
})

test('volumes are told by their claims, else by their names, else as the Node tells them', () => {
  const volumes = [
    aVolume('pv-1', { csi: { driver: 'csi.example.com', volumeHandle: 'h1' }, claimRef: { namespace: 'default', name: 'data' } }),
    aVolume('pv-2', { csi: { driver: 'csi.example.com', volumeHandle: 'h2' } }),
  ]
  const attached = ['kubernetes.io/csi/csi.example.com^h1', 'kubernetes.io/csi/csi.example.com^h2', 'unheard-of']
  expect(describeVolumes(attached, volumes)).toEqual([
    '* PersistentVolumeClaims: default/data',
    '* PersistentVolumes without a .spec.claimRef to a PersistentVolumeClaim: pv-2',
    '* Node with .status.volumesAttached entries not matching a PersistentVolume: unheard-of',
  ])
  expect(describeVolumes([], volumes)).toEqual([])
})
