import { ClusterNameLabel } from '@capstan/api'
import { patchMetadata, type ReconcileContext } from '@capstan/controller'
import {
  controllerOf,
  ensureOwnerReference,
  equal,
  hasExactOwnerReference,
  type Kind,
  type KubeObject,
  type OwnerReference,
  sameOwner,
} from '@capstan/kube'

/** The owner and the cluster label that a referenced object should have. */
export interface Adoption {
  readonly owner: OwnerReference
  readonly clusterName: string
  /** Returns whether the adoption removes an existing owner. By default, all existing owners stay. */
  readonly release?: (existing: OwnerReference) => boolean
  /** Whether a difference only in blockOwnerDeletion of the existing reference to the owner leads to a write. Default false. */
  readonly replacesBlockOwnerDeletion?: boolean
}

/**
 * Sets the owner and the cluster label of a referenced object. Writes only differences, and returns the updated object.
 * @throws Error when `owner` is a controller reference, and another controller owns the object and is not released; StatusError when the
 * write fails
 */
export function adopt<T extends KubeObject>(
  io: Pick<ReconcileContext, 'client' | 'cache' | 'signal'>,
  kind: Kind<T>,
  object: T,
  adoption: Adoption,
): Promise<T> {
  return patchMetadata(io, kind, object, (newest) => adoptionPatch(newest, adoption))
}

/** Returns the metadata to patch; `undefined` when there is no difference. Pure. @throws Error for another controller, as `adopt` does */
export function adoptionPatch(object: KubeObject, adoption: Adoption): object | undefined {
  const { owner, clusterName, release, replacesBlockOwnerDeletion = false } = adoption
  const currentOwners = object.metadata.ownerReferences ?? []
  const isLabelled = object.metadata.labels?.[ClusterNameLabel] === clusterName
  const isAdopted = isLabelled && !(release && currentOwners.some(release)) && hasExactOwnerReference(object, owner)
  if (isAdopted && !replacesBlockOwnerDeletion) return undefined
  const retainedOwners = release ? currentOwners.filter((reference) => !release(reference)) : currentOwners
  const adopted = { ...object, metadata: { ...object.metadata, ownerReferences: retainedOwners } }
  const controller = controllerOf(adopted)
  if (owner.controller && controller && !sameOwner(controller, owner)) {
    const { namespace, name } = object.metadata
    throw new Error(`Object ${namespace}/${name} is already owned by another ${controller.kind} controller ${controller.name}`)
  }
  ensureOwnerReference(adopted, owner)
  const { ownerReferences } = adopted.metadata
  const ownersChange = !equal(currentOwners, ownerReferences)
  if (!ownersChange && isLabelled) return undefined
  return {
    ...(ownersChange ? { ownerReferences, resourceVersion: object.metadata.resourceVersion } : {}),
    ...(isLabelled ? {} : { labels: { [ClusterNameLabel]: clusterName } }),
  }
}
