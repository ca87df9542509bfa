import type { Volume } from '../../../kinds/schemas/types.ts'
import { type Check, plural, quoted, sorted } from '../check.ts'

/** Pods must not use hostPath volumes. */
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

/** Forbidden volume types whose names appear in error texts. Any other forbidden type appears as `unknown`. */
const namedTypes = [
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

/** Pods may use only the volume types in `allowed`. Other storage must be used through PersistentVolumeClaims. */
export const restrictedVolumes: Check = {
  id: 'restrictedVolumes',
  level: 'restricted',
  rules: [
    {
      since: 0,
      rule({ spec }) {
        const violators = (spec.volumes ?? []).filter((volume) => !allowed.some((source) => volume[source]))
        if (violators.length === 0) return undefined
        const names = violators.map(({ name }) => name)
        const sources = sorted(violators.map((volume) => namedTypes.find((source) => volume[source]) ?? 'unknown'))
        const predicate = names.length === 1 ? 'uses' : 'use'
        const detail = `${plural('volume', names)} ${quoted(names)} ${predicate} ${plural('restricted volume type', sources)} ${quoted(sources)}`
        return { reason: 'restricted volume types', detail }
      },
    },
  ],
  replaces: hostPathVolumes.id,
}
