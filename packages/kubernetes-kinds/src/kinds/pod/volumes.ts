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

/** Volumes of a pod by name. */
export type Volumes = ReadonlyMap<string, Volume>

/** Returns the volumes with a valid name and source, by name, and the errors of all volumes. */
export function* validateVolumes(
  field: string,
  volumes: readonly Volume[],
  podName: string | undefined,
): Work<[Volumes, FieldError[]]> {
  const volumesByName = new Map<string, Volume>()
  const errors: FieldError[] = []
  const createdClaims = new Set(volumes.filter(({ ephemeral }) => ephemeral).map(({ name }) => `${podName}-${name}`))
  yield* eachInPieces(volumes.entries(), ([index, volume]) => {
    const valuePath = `${field}[${index}]`
    const sourceAndNameErrors = sourceErrors(valuePath, volume)
    if (!volume.name) sourceAndNameErrors.push(required(`${valuePath}.name`))
    else appendAll(sourceAndNameErrors, dnsLabel(`${valuePath}.name`, volume.name))
    if (volumesByName.has(volume.name)) sourceAndNameErrors.push(duplicate(`${valuePath}.name`, volume.name))
    if (sourceAndNameErrors.length === 0) volumesByName.set(volume.name, volume)
    appendAll(errors, sourceAndNameErrors)
    const claim = volume.persistentVolumeClaim?.claimName
    if (podName && claim !== undefined && createdClaims.has(claim)) {
      const text = 'must not reference a PVC that gets created for an ephemeral volume'
      errors.push(invalid(`${valuePath}.persistentVolumeClaim.claimName`, claim, text))
    }
  })
  return [volumesByName, errors]
}

/**
 * Checks of volume sources, in upstream's order. Only the first source of a volume is checked; each further source is an error. Upstream
 * checks more fields of some sources, such as the format of iSCSI names.
 */
const sources: { readonly [source: string]: (valuePath: string, volume: Required<Volume>) => FieldError[] } = {
  emptyDir: (valuePath, { emptyDir: { sizeLimit } }) =>
    sizeLimit !== undefined && compareAmounts(sizeLimit, 0) < 0
      ? [forbidden(`${valuePath}.sizeLimit`, 'SizeLimit field must be a valid resource quantity')]
      : [],
  hostPath: (valuePath, { hostPath: { path, type } }) =>
    path
      ? [...noBacksteps(`${valuePath}.path`, path), ...(type ? oneOf(`${valuePath}.type`, type, HostPathTypes) : [])]
      : [required(`${valuePath}.path`)],
  gitRepo: (valuePath, { gitRepo: { repository, directory } }) => [
    ...requiredErrors(`${valuePath}.repository`, repository),
    ...descendingPath(`${valuePath}.directory`, directory ?? ''),
  ],
  // As upstream, the error names the field `persistentDisk`.
  gcePersistentDisk: (valuePath, { gcePersistentDisk }) =>
    requiredErrors(valuePath.replace('gcePersistentDisk', 'persistentDisk.pdName'), gcePersistentDisk.pdName),
  awsElasticBlockStore: (valuePath, { awsElasticBlockStore }) =>
    requiredErrors(`${valuePath}.volumeID`, awsElasticBlockStore.volumeID),
  secret: (valuePath, { secret }) => [
    ...requiredErrors(`${valuePath}.secretName`, secret.secretName),
    ...keyedVolumeErrors(valuePath, secret),
  ],
  nfs: (valuePath, { nfs: { server, path } }) => [
    ...requiredErrors(`${valuePath}.server`, server),
    ...requiredErrors(`${valuePath}.path`, path),
    ...(!path.startsWith('/') ? [invalid(`${valuePath}.path`, path, 'must be an absolute path')] : []),
  ],
  iscsi: (valuePath, { iscsi: { targetPortal, iqn } }) => [
    ...requiredErrors(`${valuePath}.targetPortal`, targetPortal),
    ...requiredErrors(`${valuePath}.iqn`, iqn),
  ],
  glusterfs: (valuePath, { glusterfs: { endpoints, path } }) => [
    ...requiredErrors(`${valuePath}.endpoints`, endpoints),
    ...requiredErrors(`${valuePath}.path`, path),
  ],
  flocker: () => [],
  persistentVolumeClaim: (valuePath, { persistentVolumeClaim }) =>
    requiredErrors(`${valuePath}.claimName`, persistentVolumeClaim.claimName),
  rbd: (valuePath, { rbd: { monitors, image } }) => [
    ...requiredListErrors(`${valuePath}.monitors`, monitors),
    ...requiredErrors(`${valuePath}.image`, image),
  ],
  cinder: (valuePath, { cinder }) => requiredErrors(`${valuePath}.volumeID`, cinder.volumeID),
  cephfs: (valuePath, { cephfs }) => requiredListErrors(`${valuePath}.monitors`, cephfs.monitors),
  quobyte: (valuePath, { quobyte: { registry, volume } }) => [
    ...requiredErrors(`${valuePath}.registry`, registry),
    ...requiredErrors(`${valuePath}.volume`, volume),
  ],
  downwardAPI: (valuePath, { downwardAPI }) => [
    ...fileMode(`${valuePath}.defaultMode`, downwardAPI.defaultMode),
    ...(downwardAPI.items ?? []).flatMap((file) => downwardFile(valuePath, file)),
  ],
  fc: () => [],
  flexVolume: (valuePath, { flexVolume }) => requiredErrors(`${valuePath}.driver`, flexVolume.driver),
  configMap: (valuePath, { configMap }) => [
    ...requiredErrors(`${valuePath}.name`, configMap.name),
    ...keyedVolumeErrors(valuePath, configMap),
  ],
  azureFile: (valuePath, { azureFile: { secretName, shareName } }) => [
    ...requiredErrors(`${valuePath}.secretName`, secretName),
    ...requiredErrors(`${valuePath}.shareName`, shareName),
  ],
  vsphereVolume: (valuePath, { vsphereVolume }) => requiredErrors(`${valuePath}.volumePath`, vsphereVolume.volumePath),
  photonPersistentDisk: (valuePath, { photonPersistentDisk }) => requiredErrors(`${valuePath}.pdID`, photonPersistentDisk.pdID),
  portworxVolume: (valuePath, { portworxVolume }) => requiredErrors(`${valuePath}.volumeID`, portworxVolume.volumeID),
  azureDisk: (valuePath, { azureDisk: { diskName, diskURI } }) => [
    ...requiredErrors(`${valuePath}.diskName`, diskName),
    ...requiredErrors(`${valuePath}.diskURI`, diskURI),
  ],
  storageos: () => [],
  projected: projectedErrors,
  scaleIO: (valuePath, { scaleIO: { gateway, system, volumeName } }) => [
    ...requiredErrors(`${valuePath}.gateway`, gateway),
    ...requiredErrors(`${valuePath}.system`, system),
    ...requiredErrors(`${valuePath}.volumeName`, volumeName),
  ],
  csi: (valuePath, { csi }) => requiredErrors(`${valuePath}.driver`, csi.driver),
  ephemeral: (valuePath, { ephemeral }) => (ephemeral.volumeClaimTemplate ? [] : [required(`${valuePath}.volumeClaimTemplate`)]),
  image: (valuePath, { image }) => requiredErrors(`${valuePath}.reference`, image.reference),
}

const sourceChecks = Object.entries(sources)

function sourceErrors(valuePath: string, volume: Volume): FieldError[] {
  const errors: FieldError[] = []
  let hasSource = false
  for (const [source, check] of sourceChecks) {
    if (volume[source as keyof Volume] === undefined) continue
    if (hasSource) errors.push(forbidden(`${valuePath}.${source}`, 'may not specify more than 1 volume type'))
    else appendAll(errors, check(`${valuePath}.${source}`, volume as Required<Volume>))
    hasSource = true
  }
  if (!hasSource) errors.push(required(valuePath, 'must specify a volume type'))
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
  valuePath: string,
  { defaultMode, items = [] }: { defaultMode?: number; items?: KeyToPath[] },
): FieldError[] => [
  ...fileMode(`${valuePath}.defaultMode`, defaultMode),
  ...items.flatMap((item, index) => keyToPath(`${valuePath}.items[${index}]`, item)),
]

const keyToPath = (valuePath: string, { key, path, mode }: KeyToPath): FieldError[] => [
  ...requiredErrors(`${valuePath}.key`, key),
  ...requiredErrors(`${valuePath}.path`, path),
  ...localPath(`${valuePath}.path`, path),
  ...fileMode(`${valuePath}.mode`, mode),
]

function projectedErrors(
  valuePath: string,
  { projected: { sources: projections = [], defaultMode } }: Required<Volume>,
): FieldError[] {
  const errors = fileMode(`${valuePath}.defaultMode`, defaultMode)
  const paths = new Set<string>()
  const checkPath = (path: string | undefined, owner: string): void => {
    if (!path) return
    if (paths.has(path)) errors.push(invalid(valuePath, owner, 'conflicting duplicate paths'))
    paths.add(path)
  }
  for (const [index, source] of (projections ?? []).entries()) {
    const sourcePath = `${valuePath}.sources[${index}]`
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
      // As upstream, the error names the field `path` of the volume, not of the source.
      appendAll(errors, path ? localPath(`${valuePath}.path`, path) : [required(`${valuePath}.path`)])
    }
    if (Object.keys(source).length > 1) {
      errors.push(forbidden(sourcePath, 'may not specify more than 1 volume type per source'))
    }
  }
  return errors
}

function downwardFile(valuePath: string, { path, fieldRef, resourceFieldRef, mode }: DownwardAPIVolumeFile): FieldError[] {
  const errors = [...requiredErrors(`${valuePath}.path`, path), ...localPath(`${valuePath}.path`, path)]
  if (fieldRef) {
    appendAll(errors, fieldSelector(`${valuePath}.fieldRef`, fieldRef, VolumeFields))
    if (resourceFieldRef) {
      errors.push(invalid(valuePath, 'resource', 'fieldRef and resourceFieldRef can not be specified simultaneously'))
    }
  } else if (resourceFieldRef) appendAll(errors, resourceFieldSelector(`${valuePath}.resourceFieldRef`, resourceFieldRef, true))
  else errors.push(required(valuePath, 'one of fieldRef and resourceFieldRef is required'))
  return [...errors, ...fileMode(`${valuePath}.mode`, mode)]
}

/** Fields of a pod that a downward API volume can refer to, besides single labels and annotations. */
const VolumeFields = ['metadata.annotations', 'metadata.labels', 'metadata.name', 'metadata.namespace', 'metadata.uid']
/** Fields of a pod that an environment variable can refer to, besides single labels and annotations. */
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
/**
 * Fields of a pod that upstream's conversion accepts, except the legacy name `spec.host`. Of these, volumes accept only `VolumeFields`, and
 * variables only `EnvFields`.
 */
const Convertible = new Set([...VolumeFields, ...EnvFields, 'spec.restartPolicy', 'spec.schedulerName', 'status.phase'])

/** Splits a path that ends with a subscript, such as `metadata.labels['app']`, into path and key. */
function subscriptIn(fieldPath: string): { path: string; key?: string } {
  const start = fieldPath.lastIndexOf("['", fieldPath.length - 4)
  if (start < 1 || !fieldPath.endsWith("']")) return { path: fieldPath }
  return { path: fieldPath.slice(0, start), key: fieldPath.slice(start + 2, -2) }
}

/** Validates a reference to one of the pod fields `fields`, or to a single label or annotation. Upstream: validateObjectFieldSelector. */
export function fieldSelector(
  valuePath: string,
  { apiVersion, fieldPath }: ObjectFieldSelector,
  fields: readonly string[],
): FieldError[] {
  if (!apiVersion) return [required(`${valuePath}.apiVersion`)]
  if (!fieldPath) return [required(`${valuePath}.fieldPath`)]
  const { path, key } = subscriptIn(fieldPath)
  if (apiVersion !== 'v1') {
    const text = `error converting fieldPath: unsupported pod version: ${apiVersion}`
    return [invalid(`${valuePath}.fieldPath`, fieldPath, text)]
  }
  if (key !== undefined) {
    if (path === 'metadata.annotations') return qualifiedName(valuePath, key.toLowerCase())
    if (path === 'metadata.labels') return qualifiedName(valuePath, key)
    return [
      invalid(
        `${valuePath}.fieldPath`,
        fieldPath,
        `error converting fieldPath: field label does not support subscript: ${fieldPath}`,
      ),
    ]
  }
  if (!Convertible.has(path)) {
    return [invalid(`${valuePath}.fieldPath`, fieldPath, `error converting fieldPath: field label not supported: ${fieldPath}`)]
  }
  return fields.includes(path) ? [] : [notSupported(`${valuePath}.fieldPath`, path, [...fields].sort())]
}

const ContainerAmounts = [
  'limits.cpu',
  'limits.ephemeral-storage',
  'limits.memory',
  'requests.cpu',
  'requests.ephemeral-storage',
  'requests.memory',
]

/** Validates a reference to a resource request or limit of a container. Upstream: validateContainerResourceFieldSelector. */
export function resourceFieldSelector(
  valuePath: string,
  { containerName, resource }: ResourceFieldSelector,
  isVolume: boolean,
): FieldError[] {
  if (isVolume && !containerName) return [required(`${valuePath}.containerName`)]
  if (!resource) return [required(`${valuePath}.resource`)]
  if (ContainerAmounts.includes(resource) || /^(requests|limits)\.hugepages-/.test(resource)) return []
  return [notSupported(`${valuePath}.resource`, resource, ContainerAmounts)]
}

/** Validates a label key, such as a topology key or the key of a toleration. */
export const labelName = (field: string, key: string): FieldError[] => problems(field, key, labelKeyProblems(key))
