/** PersistentVolume and PersistentVolumeClaim. */
import {
  appendAll,
  draft,
  equal,
  type FieldError,
  forbidden,
  invalid,
  notSupported,
  required,
  type UnknownObject,
} from '@capstan/kube'
import type { BuiltinKind } from '../builtin-kind.ts'
import { compareAmounts, labelSelector, oneOf, subdomain, unchanged } from '../checks.ts'
import { inOrder } from '../same.ts'
import { ageColumn, at, column, list, nameColumn, text, wide } from '../columns.ts'
import { resourceAmount } from '../pod/resources.ts'
import { validateNodeSelector } from '../pod/spec.ts'
import { fractionWarnings } from '../pod/warnings.ts'
import type {
  PersistentVolume,
  PersistentVolumeClaim,
  PersistentVolumeClaimSpec,
  PersistentVolumeSpec,
} from '../schemas/types.ts'

const AccessModes = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']
const VolumeModes = ['Block', 'Filesystem']

/** Returns the short names of access modes, such as `RWO,ROX`. Upstream: GetAccessModesAsString. */
const accessModes = (o: UnknownObject, ...path: string[]): string => {
  const short = { ReadWriteOnce: 'RWO', ReadOnlyMany: 'ROX', ReadWriteMany: 'RWX', ReadWriteOncePod: 'RWOP' }
  const modes = new Set(list<string>(o, ...path))
  return Object.entries(short)
    .filter(([mode]) => modes.has(mode))
    .map(([, letters]) => letters)
    .join(',')
}
const BetaClass = 'volume.beta.kubernetes.io/storage-class'
const storageClass = (o: UnknownObject): string => o.metadata.annotations?.[BetaClass] ?? text(o, 'spec', 'storageClassName')
const orUnset = (value: string): string => (value === '' ? '<unset>' : value)
const phaseOf = (o: UnknownObject): string =>
  o.metadata.deletionTimestamp === undefined ? text(o, 'status', 'phase') : 'Terminating'

export const persistentvolumes: BuiltinKind<PersistentVolume> = {
  returnsDeleted: true,
  columns: [
    nameColumn,
    column('Capacity', (o) => text(o, 'spec', 'capacity', 'storage')),
    column('Access Modes', (o) => accessModes(o, 'spec', 'accessModes')),
    column('Reclaim Policy', (o) => text(o, 'spec', 'persistentVolumeReclaimPolicy')),
    column('Status', phaseOf),
    column('Claim', (o) =>
      at(o, 'spec', 'claimRef') ? `${text(o, 'spec', 'claimRef', 'namespace')}/${text(o, 'spec', 'claimRef', 'name')}` : '',
    ),
    column('StorageClass', storageClass),
    column('VolumeAttributesClass', (o) => orUnset(text(o, 'spec', 'volumeAttributesClassName'))),
    column('Reason', (o) => text(o, 'status', 'reason')),
    ageColumn,
    wide('VolumeMode', (o) => orUnset(text(o, 'spec', 'volumeMode'))),
  ],
  default({ spec, status }) {
    status.phase ??= 'Pending'
    spec.persistentVolumeReclaimPolicy ??= 'Retain'
    spec.volumeMode ??= 'Filesystem'
    if (spec.hostPath) spec.hostPath.type ??= ''
  },
  prepare(volume, old, { subresource, server }) {
    const now = new Date(server.clock.now()).toISOString().replace(/\.\d+Z$/, 'Z')
    if (!old) volume.status = { phase: 'Pending', lastPhaseTransitionTime: now }
    else if (subresource === 'status' && volume.status.phase !== old.status.phase) {
      if (volume.status.lastPhaseTransitionTime === old.status.lastPhaseTransitionTime)
        volume.status.lastPhaseTransitionTime = now
    }
  },
  validate(volume, old, { subresource }) {
    if (subresource === 'status') return []
    const errors = volumeErrors(volume.spec)
    if (!old) return errors
    if (!equal(sourceOf(volume.spec), sourceOf(old.spec))) {
      errors.push(forbidden('spec.persistentvolumesource', 'spec.persistentvolumesource is immutable after creation\n'))
    }
    appendAll(errors, unchanged('volumeMode', volume.spec.volumeMode, old.spec.volumeMode))
    return errors
  },
}

/** Members of the spec that are not volume sources. */
const NonSourceMembers = new Set([
  'accessModes',
  'capacity',
  'claimRef',
  'mountOptions',
  'nodeAffinity',
  'persistentVolumeReclaimPolicy',
  'storageClassName',
  'volumeAttributesClassName',
  'volumeMode',
])
const sourceOf = (spec: PersistentVolumeSpec): object =>
  Object.fromEntries(Object.entries(spec).filter(([member]) => !NonSourceMembers.has(member)))

/** Volume sources in upstream's order. Only the first source of a volume is validated; each further source is an error. */
const VolumeSources = [
  'hostPath',
  'gcePersistentDisk',
  'awsElasticBlockStore',
  'glusterfs',
  'flocker',
  'nfs',
  'rbd',
  'quobyte',
  'cephfs',
  'iscsi',
  'cinder',
  'fc',
  'flexVolume',
  'azureFile',
  'vsphereVolume',
  'photonPersistentDisk',
  'portworxVolume',
  'azureDisk',
  'scaleIO',
  'local',
  'storageos',
  'csi',
]
/** Required fields by source. The fields of a source without an entry are not checked. */
const requiredMembers: { readonly [source: string]: readonly string[] } = {
  hostPath: ['path'],
  gcePersistentDisk: ['pdName'],
  awsElasticBlockStore: ['volumeID'],
  glusterfs: ['endpoints', 'path'],
  nfs: ['server', 'path'],
  rbd: ['monitors', 'image'],
  quobyte: ['registry', 'volume'],
  cephfs: ['monitors'],
  iscsi: ['targetPortal', 'iqn'],
  cinder: ['volumeID'],
  flexVolume: ['driver'],
  azureFile: ['secretName', 'shareName'],
  vsphereVolume: ['volumePath'],
  photonPersistentDisk: ['pdID'],
  portworxVolume: ['volumeID'],
  azureDisk: ['diskName', 'diskURI'],
  scaleIO: ['gateway', 'system', 'volumeName'],
  local: ['path'],
  csi: ['driver', 'volumeHandle'],
}

function accessModeErrors(modes: readonly string[] | undefined, detail = ''): FieldError[] {
  if (!modes?.length) return [required('spec.accessModes', detail)]
  const errors = modes.flatMap((mode) => oneOf('spec.accessModes', mode, AccessModes))
  if (modes.includes('ReadWriteOncePod') && modes.some((mode) => mode !== 'ReadWriteOncePod' && AccessModes.includes(mode))) {
    errors.push(forbidden('spec.accessModes', 'may not use ReadWriteOncePod with other access modes'))
  }
  return errors
}

function volumeErrors(spec: PersistentVolumeSpec): FieldError[] {
  const { capacity = {}, persistentVolumeReclaimPolicy: policy, nodeAffinity, hostPath, storageClassName, volumeMode } = spec
  const errors = accessModeErrors(spec.accessModes)
  const names = Object.keys(capacity)
  if (names.length === 0) errors.push(required('spec.capacity'))
  if (capacity.storage === undefined || names.length > 1)
    errors.push(notSupported('spec.capacity', inOrder(spec.capacity) ?? null, ['storage']))
  for (const [name, amount] of Object.entries(capacity)) {
    if (compareAmounts(amount, 0) <= 0)
      errors.push(invalid(`spec.capacity[${name}]`, String(amount), 'must be greater than zero'))
  }
  if (policy) appendAll(errors, oneOf('spec.persistentVolumeReclaimPolicy', policy, ['Delete', 'Recycle', 'Retain']))
  if (nodeAffinity) {
    if (nodeAffinity.required) appendAll(errors, validateNodeSelector('spec.nodeAffinity.required', nodeAffinity.required))
    else errors.push(required('spec.nodeAffinity.required', 'must specify required node constraints'))
  }
  const sources = sourceOf(spec) as { readonly [source: string]: object }
  const [source, ...others] = VolumeSources.filter((candidate) => sources[candidate] !== undefined)
  if (source === undefined) errors.push(required('spec', 'must specify a volume type'))
  else {
    const members = sources[source] as { readonly [member: string]: unknown }
    for (const member of requiredMembers[source] ?? []) if (!members[member]) errors.push(required(`spec.${source}.${member}`))
    if (source === 'local' && !nodeAffinity?.required) {
      errors.push(required('spec.nodeAffinity', 'Local volume requires node affinity'))
    }
  }
  for (const other of others) errors.push(forbidden(`spec.${other}`, 'may not specify more than 1 volume type'))
  if (hostPath?.path === '/' && policy === 'Recycle') {
    errors.push(forbidden('spec.persistentVolumeReclaimPolicy', "may not be 'recycle' for a hostPath mount of '/'"))
  }
  if (storageClassName) appendAll(errors, subdomain('spec.storageClassName', storageClassName))
  if (volumeMode !== undefined) appendAll(errors, oneOf('spec.volumeMode', volumeMode, VolumeModes))
  return errors
}

export const persistentvolumeclaims: BuiltinKind<PersistentVolumeClaim> = {
  returnsDeleted: true,
  columns: [
    nameColumn,
    column('Status', phaseOf),
    column('Volume', (o) => text(o, 'spec', 'volumeName')),
    column('Capacity', (o) => (text(o, 'spec', 'volumeName') === '' ? '' : text(o, 'status', 'capacity', 'storage'))),
    column('Access Modes', (o) => (text(o, 'spec', 'volumeName') === '' ? '' : accessModes(o, 'status', 'accessModes'))),
    column('StorageClass', storageClass),
    column('VolumeAttributesClass', (o) => orUnset(text(o, 'spec', 'volumeAttributesClassName'))),
    ageColumn,
    wide('VolumeMode', (o) => orUnset(text(o, 'spec', 'volumeMode'))),
  ],
  default: ({ spec, status }) => {
    status.phase ??= 'Pending'
    spec.volumeMode ??= 'Filesystem'
  },
  warnings: ({ spec }) => fractionWarnings('spec', spec, ['storage']),
  prepare(claim, old, { subresource }) {
    if (!old) claim.status = { phase: 'Pending' }
    if (subresource !== undefined) return
    const { dataSourceRef } = claim.spec
    // Upstream drops a dataSource that is neither a claim nor a snapshot, unless dataSourceRef is set.
    if (claim.spec.dataSource && !dataSourceRef && !isKnownSource(claim.spec.dataSource)) delete claim.spec.dataSource
    const { dataSource } = claim.spec
    // Each of dataSource and dataSourceRef defaults to the other, unless dataSourceRef has a namespace.
    if (dataSource && !dataSourceRef) claim.spec.dataSourceRef = { ...dataSource }
    else if (dataSourceRef && !dataSource && !dataSourceRef.namespace) {
      const { namespace: _, ...reference } = dataSourceRef
      claim.spec.dataSource = reference
    }
  },
  validate(claim, old, { subresource }) {
    if (subresource === 'status') return []
    const errors = claimErrors(claim.spec)
    if (!old) return errors
    // Allowed changes are excluded from the comparison: setting an unset volumeName or storageClassName and, for a bound claim, changing
    // the size and volumeAttributesClassName.
    const [now, before] = [draft(claim.spec), draft(old.spec)]
    if (!before.volumeName && now.volumeName !== undefined) before.volumeName = now.volumeName
    if (before.storageClassName === undefined && now.storageClassName !== undefined)
      before.storageClassName = now.storageClassName
    const [size, oldSize] = [storageOf(claim.spec), storageOf(old.spec)]
    if (claim.status.phase === 'Bound') {
      if (oldSize !== undefined && now.resources.requests) now.resources.requests.storage = oldSize
      if (before.volumeAttributesClassName === undefined) delete now.volumeAttributesClassName
      else now.volumeAttributesClassName = before.volumeAttributesClassName
    }
    if (!equal(now, before)) {
      const text = 'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n'
      errors.push(forbidden('spec', text))
    }
    if (size !== undefined && oldSize !== undefined && compareAmounts(size, oldSize) < 0) {
      if (compareAmounts(size, old.status.capacity?.storage ?? 0) <= 0) {
        errors.push(forbidden('spec.resources.requests.storage', 'field can not be less than status.capacity'))
      }
    }
    return [...errors, ...unchanged('volumeMode', claim.spec.volumeMode, old.spec.volumeMode)]
  },
}

/** Whether a data source is a claim or a snapshot. Upstream: dataSourceIsPvcOrSnapshot. */
const isKnownSource = ({ apiGroup, kind }: { apiGroup?: string | null; kind: string }): boolean =>
  apiGroup ? kind === 'VolumeSnapshot' && apiGroup === 'snapshot.storage.k8s.io' : kind === 'PersistentVolumeClaim'

const storageOf = ({ resources: { requests = {} } }: PersistentVolumeClaimSpec): string | number | undefined => requests.storage

/** Upstream: ValidatePersistentVolumeClaimSpec. */
function claimErrors(spec: PersistentVolumeClaimSpec): FieldError[] {
  const errors = [
    ...labelSelector('spec.selector', spec.selector),
    ...accessModeErrors(spec.accessModes, 'at least 1 access mode is required'),
  ]
  const size = storageOf(spec)
  const storagePath = 'spec.resources[storage]'
  if (size === undefined) errors.push(required(storagePath))
  else if (compareAmounts(size, 0) <= 0) errors.push(invalid(storagePath, String(size), 'must be greater than zero'))
  else appendAll(errors, resourceAmount(storagePath, 'storage', size))
  if (spec.storageClassName) appendAll(errors, subdomain('spec.storageClassName', spec.storageClassName))
  if (spec.volumeMode !== undefined) appendAll(errors, oneOf('spec.volumeMode', spec.volumeMode, VolumeModes))
  for (const member of ['dataSource', 'dataSourceRef'] as const) {
    const source = spec[member]
    if (!source) continue
    if (!source.name) errors.push(required(`spec.${member}.name`))
    if (!source.kind) errors.push(required(`spec.${member}.kind`))
    if (!source.apiGroup && source.kind !== 'PersistentVolumeClaim') {
      const text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
      errors.push(invalid(`spec.${member}`, source.kind, text))
    }
  }
  return errors
}
