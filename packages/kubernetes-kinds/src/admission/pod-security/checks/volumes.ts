import type { Volume } from '../../../kinds/schemas/types.ts'
import { type Check, plural, quoted, sorted } from '../check.ts'

/** Pods do not see the files of the host. */
export const hostPathVolumes: Check = {
  id: 'hostPathVolumes',
  level: 'baseline',
  rules: [
    {
      since: 0,
      rule({ spec }) {
        const names = (spec.volumes ?? []).flatMap(({ name, hostPath }) => (hostPath ? [name] : []))
        if (names.length === 0) return undefined
        return { reason: 'hostPath volumes', detail: `${plural('volume', names)} ${quoted(names)}` }
      },
    },
  ],
}

type Source = Exclude<keyof Volume, 'name'>

const allowed = [
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'image',
  'persistentVolumeClaim',
  'projected',
  'secret',
] as const satisfies readonly Source[]

const restricted = [
  'hostPath',
  'gcePersistentDisk',
  'awsElasticBlockStore',
  'gitRepo',
  'nfs',
  'iscsi',
  'glusterfs',
  'rbd',
  'flexVolume',
  'cinder',
  'cephfs',
  'flocker',
  'fc',
  'azureFile',
  'vsphereVolume',
  'quobyte',
  'azureDisk',
  'photonPersistentDisk',
  'portworxVolume',
  'scaleIO',
  'storageos',
] as const satisfies readonly Source[]

/** Volumes are what the cluster gives to pods; storage from elsewhere comes by way of claims. */
export const restrictedVolumes: Check = {
  id: 'restrictedVolumes',
  level: 'restricted',
  rules: [
    {
      since: 0,
      rule({ spec }) {
        const bad = (spec.volumes ?? []).filter((volume) => !allowed.some((source) => volume[source]))
        if (bad.length === 0) return undefined
        const names = bad.map(({ name }) => name)
        const sources = sorted(bad.map((volume) => restricted.find((source) => volume[source]) ?? 'unknown'))
        const use = names.length === 1 ? 'uses' : 'use'
        const detail = `${plural('volume', names)} ${quoted(names)} ${use} ${plural('restricted volume type', sources)} ${quoted(sources)}`
        return { reason: 'restricted volume types', detail }
      },
    },
  ],
  replaces: hostPathVolumes.id,
}
