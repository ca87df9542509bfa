/**
 * Deletes a dependent when each of its owners is absent or in foreground deletion. Removes the finalizer `foregroundDeletion` of an owner
 * when no dependent blocks the owner. For the finalizer `orphan`, removes the references of the dependents to the owner, then the finalizer.
 * Upstream: pkg/controller/garbagecollector, v1.36. Upstream's graph has virtual nodes for owners that it has not observed; this collector
 * looks each owner up in the store instead.
 */
import {
  draft,
  isReason,
  type KubeObject,
  type ObjectKey,
  type OwnerReference,
  parseApiVersion,
  unknownKind,
} from '@capstan/kube'
import type { ResourceInfo } from '../registry/resource-info.ts'
import type { Change, StoreKey } from '../store/store.ts'
import type { ControllerOptions } from './options.ts'
import { WorkQueue } from './work-queue.ts'

/** Starts the collector; returns a function that stops it. */
export function runGarbageCollector(options: ControllerOptions): () => void {
  const collector = new GarbageCollector(options)
  return () => collector.close()
}

class GarbageCollector {
  readonly #store: ControllerOptions['store']
  readonly #registry: ControllerOptions['registry']
  readonly #client: ControllerOptions['client']
  readonly #queue: WorkQueue
  readonly #stopWatching: () => void
  /** Store keys of the dependents of each owner, as texts, by the uid of the owner. */
  readonly #dependents = new Map<string, Set<string>>()
  /** Store keys, as texts, of dependents with an owner that `#findOwner` reports as `unknown`. They are checked again when CRDs change. */
  readonly #withUnknownOwner = new Set<string>()

  constructor({ store, registry, clock, log, client }: ControllerOptions) {
    this.#store = store
    this.#registry = registry
    this.#client = client
    this.#queue = new WorkQueue({ name: 'garbage collector', clock, log, run: (id) => this.#collect(parse(id)) })
    this.#stopWatching = store.subscribe(undefined, (change) => this.#onChange(change))
    for (const storage of new Set(registry.list().map((info) => info.storage))) {
      for (const object of store.list(storage)) {
        const { namespace = '', name } = object.metadata
        this.#onChange({ revision: 0, key: { resource: storage, namespace, name }, previous: undefined, object })
      }
    }
  }

  close(): void {
    this.#stopWatching()
    this.#queue.close()
  }

  #onChange({ key, previous, object }: Change): void {
    const id = textOf(key)
    const byUid = new Map(owners(object).map((owner) => [owner.uid, owner]))
    for (const { uid } of owners(previous)) if (!byUid.has(uid)) this.#forget(uid, id)
    for (const { uid } of owners(object)) this.#remember(uid, id)
    if (object && needsCollection(object)) this.#queue.add(id)
    if (key.resource === 'customresourcedefinitions.apiextensions.k8s.io') {
      for (const dependent of this.#withUnknownOwner) this.#queue.add(dependent)
      this.#withUnknownOwner.clear()
    }
    // A deleted object no longer blocks its owners.
    const ownersOfDeleted = object ? [] : owners(previous)
    for (const owner of ownersOfDeleted) {
      const foundOwner = this.#findOwner(owner, previous!.metadata.namespace)
      if (foundOwner.state === 'present' && foundOwner.object.metadata.deletionTimestamp !== undefined)
        this.#queue.add(textOf(foundOwner.key))
    }
    // An object that is deleted, replaced or in foreground deletion may have dependents to delete.
    if (previous && (!object || object.metadata.uid !== previous.metadata.uid)) {
      for (const dependent of this.#dependents.get(previous.metadata.uid) ?? []) this.#queue.add(dependent)
    } else if (object && isForeground(object))
      for (const dependent of this.#dependents.get(object.metadata.uid) ?? []) this.#queue.add(dependent)
    // A dependent whose reference was removed, or no longer blocks, may have been the last dependent that blocked its owner.
    if (object && previous) {
      for (const owner of owners(previous)) {
        const current = byUid.get(owner.uid)
        if (current && (current.blockOwnerDeletion === true) === (owner.blockOwnerDeletion === true)) continue
        const foundOwner = this.#findOwner(owner, object.metadata.namespace)
        if (foundOwner.state === 'present' && foundOwner.object.metadata.deletionTimestamp !== undefined)
          this.#queue.add(textOf(foundOwner.key))
      }
    }
  }

  #remember(uid: string, id: string): void {
    let dependents = this.#dependents.get(uid)
    if (!dependents) this.#dependents.set(uid, (dependents = new Set()))
    dependents.add(id)
  }

  #forget(uid: string, id: string): void {
    const dependents = this.#dependents.get(uid)
    if (dependents?.delete(id) && dependents.size === 0) this.#dependents.delete(uid)
  }

  async #collect(key: StoreKey): Promise<void> {
    const object = this.#store.get(key)
    if (!object) return
    if (object.metadata.deletionTimestamp !== undefined) {
      const { finalizers = [] } = object.metadata
      if (finalizers.includes('orphan')) await this.#orphanDependents(key, object)
      else if (finalizers.includes('foregroundDeletion')) await this.#deleteInForeground(key, object)
      return
    }
    await this.#collectDependent(key, object)
  }

  /**
   * Deletes an object when each of its owners is absent or in foreground deletion; otherwise removes the references to such owners. Does
   * neither while `#findOwner` reports an owner as `unknown`. Upstream: attemptToDeleteItem.
   */
  async #collectDependent(key: StoreKey, object: KubeObject): Promise<void> {
    const references = owners(object)
    if (references.length === 0) return
    const foundOwners = references.map((reference) => ({ reference, ...this.#findOwner(reference, object.metadata.namespace) }))
    // An owner whose kind is not served may still exist. The dependent is checked again when CRDs change.
    if (foundOwners.some(({ state }) => state === 'unknown')) {
      this.#withUnknownOwner.add(textOf(key))
      return
    }
    const inForegroundDeletion = foundOwners.filter((owner) => owner.state === 'present' && isForeground(owner.object))
    const absent = foundOwners.filter(({ state }) => state === 'absent')
    const remainingOwners = foundOwners.length - inForegroundDeletion.length - absent.length
    if (remainingOwners > 0) {
      if (absent.length + inForegroundDeletion.length === 0) return
      const deleted = new Set([...absent, ...inForegroundDeletion].map(({ reference }) => reference.uid))
      await this.#patchMetadata(key, object, {
        ownerReferences: references.filter(({ uid }) => !deleted.has(uid)),
      })
      return
    }
    const ownDependents = inForegroundDeletion.length > 0 ? this.#dependentsOf(object) : []
    // A dependent in foreground deletion may also be an owner of this object: they would wait for each other, so this object stops blocking
    // its owners.
    if (ownDependents.some((dependent) => isForeground(dependent.object))) await this.#unblockOwners(key, object)
    await this.#deleteObject(key, object, ownDependents.length > 0 ? 'Foreground' : ownPolicy(object))
  }

  async #unblockOwners(key: StoreKey, object: KubeObject): Promise<void> {
    const references = owners(object)
    if (!references.some(({ blockOwnerDeletion }) => blockOwnerDeletion)) return
    const unblocked = references.map((reference) =>
      reference.blockOwnerDeletion ? { ...reference, blockOwnerDeletion: false } : reference,
    )
    await this.#patchMetadata(key, object, { ownerReferences: unblocked })
  }

  /**
   * Removes the references to the owner from its dependents, then removes the finalizer of the owner. If a dependent has changed at the same
   * time, the finalizer remains, and the owner is enqueued again: a dependent that still has the reference would be deleted after the owner.
   */
  async #orphanDependents(key: StoreKey, owner: KubeObject): Promise<void> {
    let areOrphaned = true
    for (const dependent of this.#dependentsOf(owner)) {
      const remainingOwners = owners(dependent.object).filter(({ uid }) => uid !== owner.metadata.uid)
      const isConflict = !(await this.#patchMetadata(dependent.key, dependent.object, { ownerReferences: remainingOwners }))
      if (isConflict) areOrphaned = false
    }
    if (areOrphaned) await this.#dropFinalizer(key, owner, 'orphan')
    else this.#queue.add(textOf(key))
  }

  /**
   * Enqueues the dependents that block the owner and are not being deleted yet, so that they are deleted. Removes the finalizer of the owner
   * once no dependent blocks it.
   */
  async #deleteInForeground(key: StoreKey, owner: KubeObject): Promise<void> {
    const blocking = this.#dependentsOf(owner).filter(({ object }) =>
      owners(object).some(({ uid, blockOwnerDeletion }) => uid === owner.metadata.uid && blockOwnerDeletion === true),
    )
    if (blocking.length === 0) await this.#dropFinalizer(key, owner, 'foregroundDeletion')
    else
      for (const dependent of blocking)
        if (dependent.object.metadata.deletionTimestamp === undefined) this.#queue.add(textOf(dependent.key))
  }

  #dependentsOf({ metadata: { uid } }: KubeObject): { key: StoreKey; object: KubeObject }[] {
    const dependents: { key: StoreKey; object: KubeObject }[] = []
    for (const id of this.#dependents.get(uid) ?? []) {
      const key = parse(id)
      const object = this.#store.get(key)
      if (object && owners(object).some((owner) => owner.uid === uid)) dependents.push({ key, object })
    }
    return dependents
  }

  /**
   * Looks an owner up in the namespace of its dependent, or among cluster-scoped objects. `unknown`: the kind of the owner is not
   * served, or the owner would be namespaced and its dependent is cluster-scoped.
   */
  #findOwner(
    { apiVersion, kind, name, uid }: OwnerReference,
    namespace: string | undefined,
  ): { state: 'absent' | 'unknown' } | { state: 'present'; key: StoreKey; object: KubeObject } {
    const info = this.#registry.ofKind(parseApiVersion(apiVersion).group, kind)
    if (!info) return { state: 'unknown' }
    if (info.namespaced && namespace === undefined) return { state: 'unknown' }
    const key: StoreKey = { resource: info.storage, namespace: info.namespaced ? namespace! : '', name }
    const object = this.#store.get(key)
    return object?.metadata.uid === uid ? { state: 'present', key, object } : { state: 'absent' }
  }

  async #deleteObject(key: StoreKey, { metadata }: KubeObject, propagationPolicy: 'Background' | 'Foreground' | 'Orphan') {
    const kind = this.#kindOf(key)
    if (!kind) return
    await this.#enqueueAfterConflict(
      key,
      this.#client.delete(kind, objectKeyOf(key), { propagationPolicy, preconditions: { uid: metadata.uid } }),
    )
  }

  async #dropFinalizer(key: StoreKey, object: KubeObject, finalizer: string): Promise<void> {
    await this.#patchMetadata(key, object, {
      finalizers: (object.metadata.finalizers ?? []).filter((existing) => existing !== finalizer),
    })
  }

  /**
   * Patches metadata, unless the object has changed since it was read: the patch contains its uid and resourceVersion. Returns false if it
   * has changed.
   */
  async #patchMetadata(key: StoreKey, { metadata: { uid, resourceVersion } }: KubeObject, change: object): Promise<boolean> {
    const kind = this.#kindOf(key)
    if (!kind) return true
    const body = { metadata: { ...draft(change), uid, resourceVersion } }
    return this.#enqueueAfterConflict(key, this.#client.patch(kind, objectKeyOf(key), { type: 'merge', body }))
  }

  /** Awaits a write. After a conflict, enqueues the object again and returns false. Ignores a NotFound error. */
  async #enqueueAfterConflict(key: StoreKey, write: Promise<unknown>): Promise<boolean> {
    try {
      await write
    } catch (err) {
      if (isReason(err, 'Conflict')) {
        this.#queue.add(textOf(key))
        return false
      }
      if (!isReason(err, 'NotFound')) throw err
    }
    return true
  }

  #kindOf({ resource }: StoreKey) {
    const info: ResourceInfo | undefined = this.#registry.stored(resource)
    return info && unknownKind({ ...info, scope: info.namespaced ? 'Namespaced' : 'Cluster' })
  }
}

const owners = (object: KubeObject | undefined): readonly OwnerReference[] => object?.metadata.ownerReferences ?? []

const isForeground = ({ metadata }: KubeObject): boolean =>
  metadata.deletionTimestamp !== undefined && metadata.finalizers?.includes('foregroundDeletion') === true

/**
 * Reports whether the collector must process the object: an object that is being deleted if it has a finalizer of the collector, any other
 * object if it has owners.
 */
const needsCollection = (object: KubeObject): boolean =>
  object.metadata.deletionTimestamp === undefined
    ? owners(object).length > 0
    : (object.metadata.finalizers ?? []).some((finalizer) => finalizer === 'orphan' || finalizer === 'foregroundDeletion')

/** Returns the propagation policy for the deletion of a dependent, which depends on its finalizers. */
function ownPolicy({ metadata: { finalizers = [] } }: KubeObject): 'Background' | 'Foreground' | 'Orphan' {
  if (finalizers.includes('orphan')) return 'Orphan'
  return finalizers.includes('foregroundDeletion') ? 'Foreground' : 'Background'
}

const textOf = ({ resource, namespace, name }: StoreKey): string => `${resource}/${namespace}/${name}`

function parse(text: string): StoreKey {
  const [resource, namespace, name] = text.split('/') as [string, string, string]
  return { resource, namespace, name }
}

const objectKeyOf = ({ namespace, name }: StoreKey): ObjectKey => (namespace === '' ? { name } : { namespace, name })
