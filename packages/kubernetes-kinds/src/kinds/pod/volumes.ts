/** Validates the volumes of a pod. Upstream: ValidateVolumes, v1.36. */
import {
  appendAll,
  duplicate,
  eachInPieces,
  type FieldError,
  forbidden,
  invalid,
  labelKeyProblems,
  notSupported,
  required,
  type Work,
} from '@capstan/kube'
import { compareAmounts, descendingPath, dnsLabel, localPath, noBacksteps, oneOf, problems, qualifiedName } from '../checks.ts'
import type { DownwardAPIVolumeFile, KeyToPath, ObjectFieldSelector, ResourceFieldSelector, Volume } from '../schemas/types.ts'

export type Volumes = ReadonlyMap<string, Volume>

/** Returns the valid volumes by name, and the errors of all volumes. */
export function* validateVolumes(
  field: string,
  volumes: readonly Volume[],
  podName: string | undefined,
): Work<[Volumes, FieldError[]]> {
  const volumesByName = new Map<string, Volume>()
  const errors: FieldError[] = []
  const createdClaims = new Set(volumes.filter(({ ephemeral }) => ephemeral).map(({ name }) => `${podName}-${name}`))
  yield* eachInPieces(volumes.entries(), ([index, volume]) => {
    const at = `${field}[${index}]`
    const sourceAndNameErrors = sourceErrors(at, volume)
    if (!volume.name) sourceAndNameErrors.push(required(`${at}.name`))
    else appendAll(sourceAndNameErrors, dnsLabel(`${at}.name`, volume.name))
    if (volumesByName.has(volume.name)) sourceAndNameErrors.push(duplicate(`${at}.name`, volume.name))
    if (sourceAndNameErrors.length === 0) volumesByName.set(volume.name, volume)
    appendAll(errors, sourceAndNameErrors)
    const claim = volume.persistentVolumeClaim?.claimName
    if (podName && claim !== undefined && createdClaims.has(claim)) {
      const text = 'must not reference a PVC that gets created for an ephemeral volume'
      errors.push(invalid(`${at}.persistentVolumeClaim.claimName`, claim, text))
    }
  })
  return [volumesByName, errors]
}

/** Checks of volume sources, in upstream's order. Only the first source of a volume is checked; each further source is an error. */
const sources: { readonly [source: string]: (at: string, volume: Required<Volume>) => FieldError[] } = {
  emptyDir: (at, { emptyDir: { sizeLimit } }) =>
    sizeLimit !== undefined && compareAmounts(sizeLimit, 0) < 0
      ? [forbidden(`${at}.sizeLimit`, 'SizeLimit field must be a valid resource quantity')]
      : [],
  hostPath: (at, { hostPath: { path, type } }) =>
    path
      ? [...noBacksteps(`${at}.path`, path), ...(type ? oneOf(`${at}.type`, type, HostPathTypes) : [])]
      : [required(`${at}.path`)],
  gitRepo: (at, { gitRepo: { repository, directory } }) => [
    ...requiredErrors(`${at}.repository`, repository),
    ...descendingPath(`${at}.directory`, directory ?? ''),
  ],
  gcePersistentDisk: (at, { gcePersistentDisk }) =>
    requiredErrors(at.replace('gcePersistentDisk', 'persistentDisk.pdName'), gcePersistentDisk.pdName),
  awsElasticBlockStore: (at, { awsElasticBlockStore }) => requiredErrors(`${at}.volumeID`, awsElasticBlockStore.volumeID),
  secret: (at, { secret }) => [...requiredErrors(`${at}.secretName`, secret.secretName), ...keyedVolumeErrors(at, secret)],
  nfs: (at, { nfs: { server, path } }) => [
    ...requiredErrors(`${at}.server`, server),
    ...requiredErrors(`${at}.path`, path),
    ...(!path.startsWith('/') ? [invalid(`${at}.path`, path, 'must be an absolute path')] : []),
  ],
  iscsi: (at, { iscsi: { targetPortal, iqn } }) => [
    ...requiredErrors(`${at}.targetPortal`, targetPortal),
    ...requiredErrors(`${at}.iqn`, iqn),
  ],
  glusterfs: (at, { glusterfs: { endpoints, path } }) => [
    ...requiredErrors(`${at}.endpoints`, endpoints),
    ...requiredErrors(`${at}.path`, path),
  ],
  flocker: () => [],
  persistentVolumeClaim: (at, { persistentVolumeClaim }) => requiredErrors(`${at}.claimName`, persistentVolumeClaim.claimName),
  rbd: (at, { rbd: { monitors, image } }) => [
    ...requiredListErrors(`${at}.monitors`, monitors),
    ...requiredErrors(`${at}.image`, image),
  ],
  cinder: (at, { cinder }) => requiredErrors(`${at}.volumeID`, cinder.volumeID),
  cephfs: (at, { cephfs }) => requiredListErrors(`${at}.monitors`, cephfs.monitors),
  quobyte: (at, { quobyte: { registry, volume } }) => [
    ...requiredErrors(`${at}.registry`, registry),
    ...requiredErrors(`${at}.volume`, volume),
  ],
  downwardAPI: (at, { downwardAPI }) => [
    ...fileMode(`${at}.defaultMode`, downwardAPI.defaultMode),
    ...(downwardAPI.items ?? []).flatMap((file) => downwardFile(at, file)),
  ],
  fc: () => [],
  flexVolume: (at, { flexVolume }) => requiredErrors(`${at}.driver`, flexVolume.driver),
  configMap: (at, { configMap }) => [...requiredErrors(`${at}.name`, configMap.name), ...keyedVolumeErrors(at, configMap)],
  azureFile: (at, { azureFile: { secretName, shareName } }) => [
    ...requiredErrors(`${at}.secretName`, secretName),
    ...requiredErrors(`${at}.shareName`, shareName),
  ],
  vsphereVolume: (at, { vsphereVolume }) => requiredErrors(`${at}.volumePath`, vsphereVolume.volumePath),
  photonPersistentDisk: (at, { photonPersistentDisk }) => requiredErrors(`${at}.pdID`, photonPersistentDisk.pdID),
  portworxVolume: (at, { portworxVolume }) => requiredErrors(`${at}.volumeID`, portworxVolume.volumeID),
  azureDisk: (at, { azureDisk: { diskName, diskURI } }) => [
    ...requiredErrors(`${at}.diskName`, diskName),
    ...requiredErrors(`${at}.diskURI`, diskURI),
  ],
  storageos: () => [],
  projected: projectedErrors,
  scaleIO: (at, { scaleIO: { gateway, system, volumeName } }) => [
    ...requiredErrors(`${at}.gateway`, gateway),
    ...requiredErrors(`${at}.system`, system),
    ...requiredErrors(`${at}.volumeName`, volumeName),
  ],
  csi: (at, { csi }) => requiredErrors(`${at}.driver`, csi.driver),
  ephemeral: (at, { ephemeral }) => (ephemeral.volumeClaimTemplate ? [] : [required(`${at}.volumeClaimTemplate`)]),
  image: (at, { image }) => requiredErrors(`${at}.reference`, image.reference),
}

const sourceChecks = Object.entries(sources)

function sourceErrors(at: string, volume: Volume): FieldError[] {
  const errors: FieldError[] = []
  let hasSource = false
  for (const [source, check] of sourceChecks) {
    if (volume[source as keyof Volume] === undefined) continue
    if (hasSource) errors.push(forbidden(`${at}.${source}`, 'may not specify more than 1 volume type'))
    else appendAll(errors, check(`${at}.${source}`, volume as Required<Volume>))
    hasSource = true
  }
  if (!hasSource) errors.push(required(at, 'must specify a volume type'))
  return errors
}

const HostPathTypes = ['', 'BlockDevice', 'CharDevice', 'Directory', 'DirectoryOrCreate', 'File', 'FileOrCreate', 'Socket']

const requiredErrors = (field: string, value: string | undefined): FieldError[] => (value ? [] : [required(field)])
const requiredListErrors = (field: string, value: readonly unknown[] | undefined): FieldError[] =>
  value?.length ? [] : [required(field)]
const fileMode = (field: string, mode: number | undefined): FieldError[] =>
  mode !== undefined && (mode < 0 || mode > 0o777)
    ? [invalid(field, mode, 'must be a number between 0 and 0777 (octal), both inclusive')]
    : []

const keyedVolumeErrors = (
  at: string,
  { defaultMode, items = [] }: { defaultMode?: number; items?: KeyToPath[] },
): FieldError[] => [
  ...fileMode(`${at}.defaultMode`, defaultMode),
  ...items.flatMap((item, index) => keyToPath(`${at}.items[${index}]`, item)),
]

const keyToPath = (at: string, { key, path, mode }: KeyToPath): FieldError[] => [
  ...requiredErrors(`${at}.key`, key),
  ...requiredErrors(`${at}.path`, path),
  ...localPath(`${at}.path`, path),
  ...fileMode(`${at}.mode`, mode),
]

function projectedErrors(at: string, { projected: { sources: projections = [], defaultMode } }: Required<Volume>): FieldError[] {
  const errors = fileMode(`${at}.defaultMode`, defaultMode)
  const paths = new Set<string>()
  const checkPath = (path: string | undefined, owner: string): void => {
    if (!path) return
    if (paths.has(path)) errors.push(invalid(at, owner, 'conflicting duplicate paths'))
    paths.add(path)
  }
  for (const [index, source] of (projections ?? []).entries()) {
    const sourcePath = `${at}.sources[${index}]`
    for (const kind of ['secret', 'configMap'] as const) {
      const projection = source[kind]
      if (!projection) continue
      appendAll(errors, requiredErrors(`${sourcePath}.${kind}.name`, projection.name))
      for (const [itemIndex, item] of (projection.items ?? []).entries()) {
        appendAll(errors, keyToPath(`${sourcePath}.${kind}.items[${itemIndex}]`, item))
        checkPath(item.path, projection.name ?? '')
      }
    }
    for (const file of source.downwardAPI?.items ?? []) {
      appendAll(errors, downwardFile(`${sourcePath}.downwardAPI`, file))
      checkPath(file.path, file.path)
    }
    if (source.serviceAccountToken) {
      const { expirationSeconds = 3600, path } = source.serviceAccountToken
      const field = `${sourcePath}.serviceAccountToken.expirationSeconds`
      if (expirationSeconds < 600) {
        errors.push(invalid(field, expirationSeconds, 'may not specify a duration less than 10 minutes'))
      }
      if (expirationSeconds > 2 ** 32) {
        errors.push(invalid(field, expirationSeconds, 'may not specify a duration larger than 2^32 seconds'))
      }
      appendAll(errors, path ? localPath(`${at}.path`, path) : [required(`${at}.path`)])
    }
    if (Object.keys(source).length > 1) {
      errors.push(forbidden(sourcePath, 'may not specify more than 1 volume type per source'))
    }
  }
  return errors
}

function downwardFile(at: string, { path, fieldRef, resourceFieldRef, mode }: DownwardAPIVolumeFile): FieldError[] {
  const errors = [...requiredErrors(`${at}.path`, path), ...localPath(`${at}.path`, path)]
  if (fieldRef) {
    appendAll(errors, fieldSelector(`${at}.fieldRef`, fieldRef, VolumeFields))
    if (resourceFieldRef) {
      errors.push(invalid(at, 'resource', 'fieldRef and resourceFieldRef can not be specified simultaneously'))
    }
  } else if (resourceFieldRef) appendAll(errors, resourceFieldSelector(`${at}.resourceFieldRef`, resourceFieldRef, true))
  else errors.push(required(at, 'one of fieldRef and resourceFieldRef is required'))
  return [...errors, ...fileMode(`${at}.mode`, mode)]
}

const VolumeFields = ['metadata.annotations', 'metadata.labels', 'metadata.name', 'metadata.namespace', 'metadata.uid']
export const EnvFields = [
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
]
/** Fields of pods that the downward API supports. */
const Convertible = new Set([...VolumeFields, ...EnvFields, 'spec.restartPolicy', 'spec.schedulerName', 'status.phase'])

/** Upstream: validateObjectFieldSelector. */
export function fieldSelector(
  at: string,
  { apiVersion, fieldPath }: ObjectFieldSelector,
  fields: readonly string[],
): FieldError[] {
  if (!apiVersion) return [required(`${at}.apiVersion`)]
  if (!fieldPath) return [required(`${at}.fieldPath`)]
  const [, path = fieldPath, key] = /^(.+)\['(.*)'\]$/.exec(fieldPath) ?? []
  if (apiVersion !== 'v1') {
    const text = `error converting fieldPath: unsupported pod version: ${apiVersion}`
    return [invalid(`${at}.fieldPath`, fieldPath, text)]
  }
  if (key !== undefined) {
    if (path === 'metadata.annotations') return qualifiedName(at, key.toLowerCase())
    if (path === 'metadata.labels') return qualifiedName(at, key)
    return [
      invalid(`${at}.fieldPath`, fieldPath, `error converting fieldPath: field label does not support subscript: ${fieldPath}`),
    ]
  }
  if (!Convertible.has(path)) {
    return [invalid(`${at}.fieldPath`, fieldPath, `error converting fieldPath: field label not supported: ${fieldPath}`)]
  }
  return fields.includes(path) ? [] : [notSupported(`${at}.fieldPath`, path, [...fields].sort())]
}

const ContainerAmounts = [
  'limits.cpu',
  'limits.ephemeral-storage',
  'limits.memory',
  'requests.cpu',
  'requests.ephemeral-storage',
  'requests.memory',
]

/** Upstream: validateContainerResourceFieldSelector. */
export function resourceFieldSelector(
  at: string,
  { containerName, resource }: ResourceFieldSelector,
  isVolume: boolean,
): FieldError[] {
  if (isVolume && !containerName) return [required(`${at}.containerName`)]
  if (!resource) return [required(`${at}.resource`)]
  if (ContainerAmounts.includes(resource) || /^(requests|limits)\.hugepages-/.test(resource)) return []
  return [notSupported(`${at}.resource`, resource, ContainerAmounts)]
}

/** Validates a topology key, which is a label name. */
export const labelName = (field: string, key: string): FieldError[] => problems(field, key, labelKeyProblems(key))
