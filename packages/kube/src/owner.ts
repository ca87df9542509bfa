/** Owner references: who owns an object, and which one of them controls it. */
import type { GroupKind, Kind } from './kind.ts'
import { typeMeta } from './kind.ts'
import type { KubeObject, OwnerReference } from './object.ts'
import { parseApiVersion } from './object.ts'

type Owned = { readonly metadata: { readonly ownerReferences?: readonly OwnerReference[] } }

/** A reference to `owner`, which must exist: references are held by uid. */
export const ownerReference = (
  owner: { metadata: { name: string; uid: string } },
  kind: Kind,
  more: Pick<OwnerReference, 'controller' | 'blockOwnerDeletion'> = {},
): OwnerReference => ({ ...typeMeta(kind), name: owner.metadata.name, uid: owner.metadata.uid, ...more })

/** A reference that makes `owner` the one controller of an object. */
export const controllerReference = (owner: { metadata: { name: string; uid: string } }, kind: Kind): OwnerReference =>
  ownerReference(owner, kind, { controller: true, blockOwnerDeletion: true })

/** The reference to the owner that controls the object, if there is one. */
export const controllerOf = (object: Owned): OwnerReference | undefined =>
  object.metadata.ownerReferences?.find((reference) => reference.controller === true)

/** Upstream: owners are identified by group, kind and name; the version may change, and so may the uid after a restore. */
export const sameOwner = (a: OwnerReference, b: OwnerReference): boolean =>
  a.kind === b.kind && a.name === b.name && parseApiVersion(a.apiVersion).group === parseApiVersion(b.apiVersion).group

/** The object is owned by `owner`, as controller or beside one. */
export const isOwnedBy = (object: Owned, owner: { metadata: { name: string } }, kind: GroupKind): boolean =>
  (object.metadata.ownerReferences ?? []).some((reference) => refersTo(reference, owner, kind))

/** The object is controlled by `owner`. */
export function isControlledBy(object: Owned, owner: { metadata: { name: string } }, kind: GroupKind): boolean {
  const reference = controllerOf(object)
  return reference !== undefined && refersTo(reference, owner, kind)
}

/** The first owner of this kind, whatever its version. */
export const ownerOfKind = (object: Owned, { group, kind }: GroupKind): OwnerReference | undefined =>
  object.metadata.ownerReferences?.find(
    (reference) => reference.kind === kind && parseApiVersion(reference.apiVersion).group === group,
  )

const refersTo = (reference: OwnerReference, owner: { metadata: { name: string } }, { group, kind }: GroupKind): boolean =>
  reference.kind === kind && reference.name === owner.metadata.name && parseApiVersion(reference.apiVersion).group === group

/** Adds the reference to a draft, or replaces the one to the same owner. True when that changed anything. */
export function ensureOwnerReference(object: KubeObject, reference: OwnerReference): boolean {
  const references = object.metadata.ownerReferences ?? []
  const index = references.findIndex((existing) => sameOwner(existing, reference))
  const existing = references[index]
  if (existing && sameReference(existing, reference)) return false
  object.metadata.ownerReferences = existing ? references.with(index, reference) : [...references, reference]
  return true
}

/** Takes the reference to this owner out of a draft. True when it was there. */
export function removeOwnerReference(object: KubeObject, reference: OwnerReference): boolean {
  const references = object.metadata.ownerReferences ?? []
  const left = references.filter((existing) => !sameOwner(existing, reference))
  if (left.length === references.length) return false
  if (left.length > 0) object.metadata.ownerReferences = left
  else delete object.metadata.ownerReferences
  return true
}

/**
 * Makes `owner` the controller of a draft. True when that changed anything.
 *
 * @throws Error when another object controls it, or when the owner cannot be seen from the object's namespace
 */
export function setControllerReference(object: KubeObject, owner: KubeObject, kind: Kind): boolean {
  const { namespace, name } = object.metadata
  const ownerNamespace = owner.metadata.namespace
  if (ownerNamespace && !namespace) {
    throw new Error(`cluster-scoped resource must not have a namespace-scoped owner, owner's namespace ${ownerNamespace}`)
  }
  if (ownerNamespace && ownerNamespace !== namespace) {
    throw new Error(
      `cross-namespace owner references are disallowed, owner's namespace ${ownerNamespace}, obj's namespace ${namespace}`,
    )
  }
  const reference = controllerReference(owner, kind)
  const controller = controllerOf(object)
  if (controller && !sameOwner(controller, reference)) {
    throw new Error(
      `Object ${namespace ?? ''}/${name} is already owned by another ${controller.kind} controller ${controller.name}`,
    )
  }
  return ensureOwnerReference(object, reference)
}

const sameReference = (a: OwnerReference, b: OwnerReference): boolean =>
  a.apiVersion === b.apiVersion &&
  a.uid === b.uid &&
  (a.controller ?? false) === (b.controller ?? false) &&
  (a.blockOwnerDeletion ?? false) === (b.blockOwnerDeletion ?? false)
