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

test('volumes of a Node are described by their claims, else by their names, else as the Node reports them', () => {
  const attached = { onNode: [...handles('h3', 'h1', 'h2'), 'unknown'], persistentVolumes: [] }
  expect(describeVolumes(attached, volumes, new Set())).toEqual([
    '* PersistentVolumeClaims: default/data',
    '* PersistentVolumes without a .spec.claimRef to a PersistentVolumeClaim: pv-2, pv-3',
    '* Node with .status.volumesAttached entries not matching a PersistentVolume: unknown',
  ])
})

test('volumes of VolumeAttachments are awaited as well, each once', () => {
  const attached = { onNode: handles('h1'), persistentVolumes: ['pv-1', 'pv-4', 'lost'] }
  expect(describeVolumes(attached, volumes, new Set())).toEqual([
    '* PersistentVolumeClaims: default/data, default/logs',
    '* VolumeAttachment with .spec.source.persistentVolumeName not matching a PersistentVolume: lost',
  ])
})

test('volumes of Pods that are not drained are not awaited', () => {
  const attached = { onNode: handles('h1'), persistentVolumes: ['pv-4'] }
  expect(describeVolumes(attached, volumes, new Set(['default/data', 'default/logs']))).toEqual([])
})

test('lists five volumes by name, and counts the other volumes', () => {
  const onNode = ['7', '6', '5', '4', '3', '2', '1']
  expect(describeVolumes({ onNode, persistentVolumes: [] }, [], new Set())).toEqual([
    '* Node with .status.volumesAttached entries not matching a PersistentVolume: 1, 2, 3, 4, 5, ... (2 more)',
  ])
})
