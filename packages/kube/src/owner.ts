/** Owner references. At most one owner of an object is its controller. */
import type { GroupKind, Kind } from './kind.ts'
import { typeMeta } from './kind.ts'
import type { KubeObject, OwnerReference } from './object.ts'
import { parseApiVersion } from './object.ts'

type Owned = { readonly metadata: { readonly ownerReferences?: readonly OwnerReference[] } }

/** Returns a reference to `owner`, which must exist, because references contain its uid. */
export const ownerReference = (
  owner: { metadata: { name: string; uid: string } },
  kind: Kind,
  flags: Pick<OwnerReference, 'controller' | 'blockOwnerDeletion'> = {},
): OwnerReference => ({ ...typeMeta(kind), name: owner.metadata.name, uid: owner.metadata.uid, ...flags })

/** Returns a reference that makes `owner` the controller of an object. */
export const controllerReference = (owner: { metadata: { name: string; uid: string } }, kind: Kind): OwnerReference =>
  ownerReference(owner, kind, { controller: true, blockOwnerDeletion: true })

/** Returns the reference to the controller of the object, if it has one. */
export const controllerOf = (object: Owned): OwnerReference | undefined =>
  object.metadata.ownerReferences?.find((reference) => reference.controller === true)

/**
 * Reports whether two references refer to the same owner. Upstream: group, kind and name identify an owner, because its version may change,
 * and its uid changes when it is restored from a backup.
 */
export const sameOwner = (a: OwnerReference, b: OwnerReference): boolean =>
  a.kind === b.kind && a.name === b.name && parseApiVersion(a.apiVersion).group === parseApiVersion(b.apiVersion).group

/** Reports whether `owner` owns the object, as its controller or as another owner. */
export const isOwnedBy = (object: Owned, owner: { metadata: { name: string } }, kind: GroupKind): boolean =>
  (object.metadata.ownerReferences ?? []).some((reference) => refersTo(reference, owner, kind))

/** Reports whether `owner` is the controller of the object. */
export function isControlledBy(object: Owned, owner: { metadata: { name: string } }, kind: GroupKind): boolean {
  const reference = controllerOf(object)
  return reference !== undefined && refersTo(reference, owner, kind)
}

/**
 * Reports whether `owner` is the controller of the object. Compares uids, so an earlier object with the name of `owner` does not count.
 * Upstream: metav1.IsControlledBy, by which MachineSets find their Machines, and MachineDeployments their MachineSets.
 */
export const isControlledByUid = (object: Owned, owner: { metadata: { uid: string } }): boolean =>
  controllerOf(object)?.uid === owner.metadata.uid

/** Returns the first reference to an owner of this kind, in any version. */
export const ownerOfKind = (object: Owned, { group, kind }: GroupKind): OwnerReference | undefined =>
  object.metadata.ownerReferences?.find(
    (reference) => reference.kind === kind && parseApiVersion(reference.apiVersion).group === group,
  )

const refersTo = (reference: OwnerReference, owner: { metadata: { name: string } }, { group, kind }: GroupKind): boolean =>
  reference.kind === kind && reference.name === owner.metadata.name && parseApiVersion(reference.apiVersion).group === group

/** Adds the reference to a draft, or replaces the existing reference to the same owner. Returns whether the draft changed. */
export function ensureOwnerReference(object: KubeObject, reference: OwnerReference): boolean {
  const references = object.metadata.ownerReferences ?? []
  const index = references.findIndex((existing) => sameOwner(existing, reference))
  const existing = references[index]
  if (existing && sameReference(existing, reference)) return false
  object.metadata.ownerReferences = existing ? references.with(index, reference) : [...references, reference]
  return true
}

/**
 * Reports whether the object has this reference. Ignores blockOwnerDeletion, which users and other programs may set. Upstream:
 * util.HasExactOwnerRef.
 */
export const hasExactOwnerReference = (object: Owned, reference: OwnerReference): boolean =>
  (object.metadata.ownerReferences ?? []).some(
    (existing) => sameOwner(existing, reference) && equalExceptBlockOwnerDeletion(existing, reference),
  )

/** Removes the reference to the same owner from a draft. Returns whether such a reference existed. */
export function removeOwnerReference(object: KubeObject, reference: OwnerReference): boolean {
  const references = object.metadata.ownerReferences ?? []
  const remaining = references.filter((existing) => !sameOwner(existing, reference))
  if (remaining.length === references.length) return false
  if (remaining.length > 0) object.metadata.ownerReferences = remaining
  else delete object.metadata.ownerReferences
  return true
}

/**
 * Makes `owner` the controller of a draft. Returns whether the draft changed.
 *
 * @throws Error when the object has another controller, or when the owner's namespace does not allow the reference
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

/** Compares references to the same owner. */
const equalExceptBlockOwnerDeletion = (a: OwnerReference, b: OwnerReference): boolean =>
  a.apiVersion === b.apiVersion && a.uid === b.uid && (a.controller ?? false) === (b.controller ?? false)

const sameReference = (a: OwnerReference, b: OwnerReference): boolean =>
  equalExceptBlockOwnerDeletion(a, b) && (a.blockOwnerDeletion ?? false) === (b.blockOwnerDeletion ?? false)
