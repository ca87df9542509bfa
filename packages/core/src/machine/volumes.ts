/**
 * Finds the volumes that are still attached to the Node of a Machine. The deletion of the Machine waits until they are detached, because
 * some providers delete the attached disks together with the machine.
 * Upstream: core/reconcilers/machine/machine_controller.go, shouldWaitForNodeVolumes, v1.14.
 */
import {
  type Client,
  isRecord,
  type Node,
  type Pod,
  shortList,
  type UnknownObject,
  unknownKind,
  withErrorContext,
} from '@capstan/kube'
import { type DrainTarget, podsToDrain } from './drain/drain.ts'
import { listPages } from './list-pages.ts'

const PersistentVolume = unknownKind({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  plural: 'persistentvolumes',
  scope: 'Cluster',
})

const VolumeAttachment = unknownKind({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'VolumeAttachment',
  plural: 'volumeattachments',
  scope: 'Cluster',
})

/** Returns the volumes still to be detached, as lines for the message of the Deleting condition. */
export async function volumesToDetach(target: DrainTarget): Promise<string[]> {
  const { client, node, signal } = target
  const attached: AttachedVolumes = {
    onNode: volumesInStatus(node),
    persistentVolumes: await attachedVolumes(client, node, signal),
  }
  if (attached.onNode.length === 0 && attached.persistentVolumes.length === 0) return []
  const pods = await withErrorContext('failed to find PersistentVolumeClaims from Pods ignored during drain', () =>
    podsToDrain(target, { isNodeUnreachable: false }),
  )
  const skipped = pods.flatMap(({ pod, behavior }) => (behavior === 'Skip' ? claimsOfPod(pod) : []))
  const volumes = await withErrorContext('failed to list PersistentVolumes', () =>
    listPages(client, PersistentVolume, { signal }),
  )
  return describeVolumes(attached, volumes, new Set(skipped))
}

/** Volumes attached to a Node, from the status of the Node and from VolumeAttachments. */
export interface AttachedVolumes {
  /** Names in status.volumesAttached of the Node. */
  readonly onNode: readonly string[]
  /** Names of the PersistentVolumes of VolumeAttachments. */
  readonly persistentVolumes: readonly string[]
}

/**
 * Returns the attached volumes as lines of text, with the names of their claims or, without a claim, of the volumes. Further lines name
 * attached volumes that match no PersistentVolume. Pure.
 * @param skippedClaims claims, `namespace/name`, of Pods that are not drained. The result omits these claims, because their volumes stay
 *   attached while the Node runs.
 */
export function describeVolumes(
  attached: AttachedVolumes,
  volumes: readonly UnknownObject[],
  skippedClaims: ReadonlySet<string>,
): string[] {
  const onNode = new Set(attached.onNode)
  const byAttachment = new Set(attached.persistentVolumes)
  const claims = new Set<string>()
  const unclaimed: string[] = []
  const knownHandles = new Set<string>()
  for (const volume of volumes) {
    const { name } = volume.metadata
    const handle = handleOf(volume)
    const isOnNode = handle !== undefined && onNode.has(handle)
    if (isOnNode) knownHandles.add(handle)
    if (!isOnNode && !byAttachment.has(name)) continue
    const claim = claimOf(volume)
    if (claim === undefined) unclaimed.push(name)
    else if (!skippedClaims.has(claim)) claims.add(claim)
  }
  const names = new Set(volumes.map(({ metadata }) => metadata.name))
  return [
    ...line('PersistentVolumeClaims', claims),
    ...line('PersistentVolumes without a .spec.claimRef to a PersistentVolumeClaim', unclaimed),
    ...line('Node with .status.volumesAttached entries not matching a PersistentVolume', without(onNode, knownHandles)),
    ...line(
      'VolumeAttachment with .spec.source.persistentVolumeName not matching a PersistentVolume',
      without(byAttachment, names),
    ),
  ]
}

const volumesInStatus = ({ status }: Node): string[] =>
  ((status as { volumesAttached?: { name: string }[] } | undefined)?.volumesAttached ?? []).map(({ name }) => name)

/**
 * Returns the names of the PersistentVolumes that VolumeAttachments report as attached to the Node.
 * @throws Error when such a VolumeAttachment names no PersistentVolume
 */
async function attachedVolumes(client: Client, node: Node, signal: AbortSignal): Promise<string[]> {
  const attachments = await withErrorContext('failed to list VolumeAttachments: failed to list VolumeAttachments', () =>
    listPages(client, VolumeAttachment, { signal }),
  )
  return attachments.flatMap(({ metadata, spec, status }) => {
    if (!isRecord(spec) || spec['nodeName'] !== node.metadata.name || !isRecord(status) || status['attached'] !== true) return []
    const source = isRecord(spec['source']) ? spec['source'] : {}
    const name = source['persistentVolumeName']
    if (typeof name === 'string') return [name]
    throw new Error(`spec.source.persistentVolumeName for VolumeAttachment ${metadata.name} is not set`)
  })
}

function claimsOfPod({ metadata, spec }: Pod): string[] {
  const { volumes = [] } = (spec ?? {}) as { volumes?: { persistentVolumeClaim?: { claimName: string } }[] }
  return volumes.flatMap(({ persistentVolumeClaim: claim }) => (claim ? [`${metadata.namespace}/${claim.claimName}`] : []))
}

/** Returns the name under which a Node reports a CSI volume; `undefined` for other volumes. */
function handleOf({ spec }: UnknownObject): string | undefined {
  const csi = isRecord(spec) && isRecord(spec['csi']) ? spec['csi'] : undefined
  return csi && `kubernetes.io/csi/${String(csi['driver'])}^${String(csi['volumeHandle'])}`
}

function claimOf({ spec }: UnknownObject): string | undefined {
  const claim = isRecord(spec) && isRecord(spec['claimRef']) ? spec['claimRef'] : undefined
  return claim?.['kind'] === 'PersistentVolumeClaim' ? `${String(claim['namespace'])}/${String(claim['name'])}` : undefined
}

const without = (names: ReadonlySet<string>, excluded: ReadonlySet<string>): string[] =>
  [...names].filter((name) => !excluded.has(name))

const MaxNames = 5

const line = (title: string, names: Iterable<string>): string[] => {
  const sorted = [...names].sort()
  return sorted.length === 0 ? [] : [`* ${title}: ${shortList(sorted, MaxNames)}`]
}
