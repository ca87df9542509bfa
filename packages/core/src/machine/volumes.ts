/** Volumes that are attached to a Node: they are detached before its machine goes, or their data is in danger. */
import { type Client, isReason, isRecord, type Node, type UnknownObject, unknownKind } from '@capstan/kube'

const PersistentVolume = unknownKind({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  plural: 'persistentvolumes',
  scope: 'Cluster',
})

/** What is still attached, as lines of the Deleting condition; none when nothing is. */
export async function attachedVolumes(client: Client, node: Node, signal: AbortSignal): Promise<string[]> {
  const attached = (node.status as { volumesAttached?: { name: string }[] } | undefined)?.volumesAttached ?? []
  if (attached.length === 0) return []
  return describeVolumes(
    attached.map(({ name }) => name),
    await persistentVolumes(client, signal),
  )
}

/** Pure: tells attached volumes by the claims that people know them by. */
export function describeVolumes(attached: readonly string[], volumes: readonly UnknownObject[]): string[] {
  const claims: string[] = []
  const unclaimed: string[] = []
  const unknown: string[] = []
  for (const name of attached) {
    const volume = volumes.find((one) => handleOf(one) === name || one.metadata.name === name)
    const claim = volume && claimOf(volume)
    if (claim) claims.push(claim)
    else if (volume) unclaimed.push(volume.metadata.name)
    else unknown.push(name)
  }
  return [
    ...line('PersistentVolumeClaims', claims),
    ...line('PersistentVolumes without a .spec.claimRef to a PersistentVolumeClaim', unclaimed),
    ...line('Node with .status.volumesAttached entries not matching a PersistentVolume', unknown),
  ]
}

async function persistentVolumes(client: Client, signal: AbortSignal): Promise<UnknownObject[]> {
  try {
    return (await client.list(PersistentVolume, { signal })).items
  } catch (err) {
    // A simulated cluster may not serve the resource at all.
    if (isReason(err, 'NotFound')) return []
    throw err
  }
}

/** The name under which a Node reports a CSI volume. */
function handleOf({ spec }: UnknownObject): string | undefined {
  const csi = isRecord(spec) && isRecord(spec['csi']) ? spec['csi'] : undefined
  return csi && `kubernetes.io/csi/${String(csi['driver'])}^${String(csi['volumeHandle'])}`
}

function claimOf({ spec }: UnknownObject): string | undefined {
  const claim = isRecord(spec) && isRecord(spec['claimRef']) ? spec['claimRef'] : undefined
  return claim && `${String(claim['namespace'])}/${String(claim['name'])}`
}

const MaxNames = 5

const line = (what: string, names: readonly string[]): string[] => {
  if (names.length === 0) return []
  const more = names.length - MaxNames
  return [`* ${what}: ${[...names].sort().slice(0, MaxNames).join(', ')}${more > 0 ? `, ... (${more} more)` : ''}`]
}
