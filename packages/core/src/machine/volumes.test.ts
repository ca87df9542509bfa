import type { UnknownObject } from '@capstan/kube'
import { expect, test } from 'vitest'
import { describeVolumes } from './volumes.ts'

const aVolume = (name: string, spec: object): UnknownObject => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name, uid: name, resourceVersion: '1', creationTimestamp: '' },
  spec,
})
const csi = (volumeHandle: string) => ({ csi: { driver: 'dummy', volumeHandle } })
const claimRef = (name: string, kind = 'PersistentVolumeClaim') => ({ claimRef: { kind, namespace: 'default', name } })

const volumes = [
  aVolume('pv-1', { ...csi('h1'), ...claimRef('data') }),
  aVolume('pv-2', csi('h2')),
  aVolume('pv-3', { ...csi('h3'), ...claimRef('other', 'NotAPVC') }),
  aVolume('pv-4', { nfs: {}, ...claimRef('logs') }),
]
const handles = (...names: string[]) => names.map((name) => `kubernetes.io/csi/dummy^${name}`)

test('describes a volume of a Node by its claim, a volume without a claim by its own name, and an unknown volume as the Node reports it', () => {
  const attached = { onNode: [...handles('h3', 'h1', 'h2'), 'unknown'], persistentVolumes: [] }
  expect(describeVolumes(attached, volumes, new Set())).toEqual([
    '* PersistentVolumeClaims: default/data',
    '* PersistentVolumes without a .spec.claimRef to a PersistentVolumeClaim: pv-2, pv-3',
    '* Node with .status.volumesAttached entries not matching a PersistentVolume: unknown',
  ])
})

test('lists volumes of VolumeAttachments as well, and each volume once', () => {
  const attached = { onNode: handles('h1'), persistentVolumes: ['pv-1', 'pv-4', 'lost'] }
  expect(describeVolumes(attached, volumes, new Set())).toEqual([
    '* PersistentVolumeClaims: default/data, default/logs',
    '* VolumeAttachment with .spec.source.persistentVolumeName not matching a PersistentVolume: lost',
  ])
})

test('leaves out volumes of Pods that are not drained', () => {
  const attached = { onNode: handles('h1'), persistentVolumes: ['pv-4'] }
  expect(describeVolumes(attached, volumes, new Set(['default/data', 'default/logs']))).toEqual([])
})

test('lists five volumes by name, and counts the other volumes', () => {
  const onNode = ['7', '6', '5', '4', '3', '2', '1']
  expect(describeVolumes({ onNode, persistentVolumes: [] }, [], new Set())).toEqual([
    '* Node with .status.volumesAttached entries not matching a PersistentVolume: 1, 2, 3, 4, 5, ... (2 more)',
  ])
})
