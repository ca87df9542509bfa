import { ClusterNameLabel } from '@capstan/api'
import {
  type Client,
  controllerOf,
  ensureOwnerReference,
  equal,
  type Kind,
  keyOf,
  type KubeObject,
  type OwnerReference,
  sameOwner,
} from '@capstan/kube'

/** What the metadata of a referenced object should say about its place in the cluster. */
export interface Adoption {
  readonly owner: OwnerReference
  readonly clusterName: string
  /** Owners that give the object up to the new one. */
  readonly release?: (owner: OwnerReference) => boolean
}

/**
 * Puts a referenced object under its owner and labels it for the cluster. Writes only what differs, and gives back the object
 * as it then is.
 *
 * @throws StatusError Conflict when the object changed since it was read: owner references are a list that several write
 * @throws Error when another controller owns the object already
 */
export async function adopt<T extends KubeObject>(client: Client, kind: Kind<T>, object: T, adoption: Adoption): Promise<T> {
  const metadata = adopted(object, adoption)
  return metadata ? client.patch(kind, keyOf(object), { type: 'merge', body: { metadata } }) : object
}

/** The metadata to patch in, or `undefined` when the object is as it should be. Pure. */
export function adopted(object: KubeObject, { owner, clusterName, release }: Adoption): object | undefined {
  const before = object.metadata.ownerReferences ?? []
  const kept = release ? before.filter((other) => !release(other)) : before
  const after = { ...object, metadata: { ...object.metadata, ownerReferences: kept } }
  const other = controllerOf(after)
  if (owner.controller && other && !sameOwner(other, owner)) {
    const { namespace, name } = object.metadata
    throw new Error(`Object ${namespace}/${name} is already owned by another ${other.kind} controller ${other.name}`)
  }
  ensureOwnerReference(after, owner)
  const { ownerReferences } = after.metadata
  const ownersChange = !equal(before, ownerReferences)
  const labelled = object.metadata.labels?.[ClusterNameLabel] === clusterName
  if (!ownersChange && labelled) return undefined
  return {
    ...(ownersChange ? { ownerReferences, resourceVersion: object.metadata.resourceVersion } : {}),
    ...(labelled ? {} : { labels: { [ClusterNameLabel]: clusterName } }),
  }
}
