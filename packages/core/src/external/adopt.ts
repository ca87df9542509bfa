import { type Client, equal, type Kind, keyOf, type KubeObject, type OwnerReference, parseApiVersion } from '@capstan/kube'

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
  const ownerReferences = withOwner(kept, owner)
  const ownersChange = !equal(before, ownerReferences)
  if (owner.controller) {
    const other = ownerReferences.find((reference) => reference.controller && !sameOwner(reference, owner))
    if (other) {
      throw new Error(
        `Object ${object.metadata.namespace}/${object.metadata.name} is already owned by another ${other.kind} controller ${other.name}`,
      )
    }
  }
  const labelled = object.metadata.labels?.['cluster.x-k8s.io/cluster-name'] === clusterName
  if (!ownersChange && labelled) return undefined
  return {
    ...(ownersChange ? { ownerReferences, resourceVersion: object.metadata.resourceVersion } : {}),
    ...(labelled ? {} : { labels: { 'cluster.x-k8s.io/cluster-name': clusterName } }),
  }
}

/** The list with `owner` in it once: in the place of an older reference to the same object, or at the end. */
export function withOwner(owners: readonly OwnerReference[], owner: OwnerReference): OwnerReference[] {
  const at = owners.findIndex((other) => sameOwner(other, owner))
  return at < 0 ? [...owners, owner] : owners.map((other, index) => (index === at ? owner : other))
}

/** Two references to one object, whatever the version and uid: by group, kind and name, as upstream compares. */
export const sameOwner = (a: OwnerReference, b: OwnerReference): boolean =>
  a.kind === b.kind && a.name === b.name && parseApiVersion(a.apiVersion).group === parseApiVersion(b.apiVersion).group
