/**
 * Serves the resources of CustomResourceDefinitions: accepts or rejects the names of CRDs, writes their conditions, and deletes the
 * instances of a CRD before the CRD itself. A CRD is served as soon as its creation is visible, unless its names conflict with those of
 * another CRD; its status is written later. Upstream: apiextensions-apiserver pkg/controller/{status,establish,finalizer}, v0.36.
 */
import {
  type Clock,
  type Condition,
  type CustomResourceDefinition,
  type CustomResourceNames,
  draft,
  equal,
  isReason,
  type KubeObject,
  type Logger,
  resetFields,
  updateManagedFields,
} from '@capstan/kube'
import { customResourceInfos } from '../registry/custom.ts'
import { CleanupFinalizer } from '../registry/crd-strategy.ts'
import type { Registry } from '../registry/registry.ts'
import { type Store, StoreConflict, type StoreKey } from '../store/store.ts'
import { setCondition } from './set-condition.ts'
import { WorkQueue } from './work-queue.ts'

const CRDStorage = 'customresourcedefinitions.apiextensions.k8s.io'

/** Field manager of the status. Upstream: the server itself writes the status through its subresource. */
const statusManager = {
  manager: 'kube-apiserver',
  subresource: 'status',
  ignored: resetFields({ subresource: 'status', hasStatusSubresource: true }),
} as const

const keyOfCRD = (name: string): StoreKey => ({ resource: CRDStorage, namespace: '', name })

export interface CustomResourcesOptions {
  readonly store: Store
  readonly registry: Registry
  readonly clock: Clock
  readonly log: Logger
  /** Deletes one custom resource, as a client would. `storage` is the name of its CRD. */
  readonly deleteInstance: (storage: string, object: KubeObject) => Promise<void>
}

/** Starts the controller; returns a function that stops it. */
export function runCustomResources({ store, registry, clock, log, deleteInstance }: CustomResourcesOptions): () => void {
  /** Served CRDs by name. `serve` compares a changed CRD with them, to ignore changes of the status. */
  const served = new Map<string, { spec: CustomResourceDefinition['spec']; terminating: boolean }>()
  const queue = new WorkQueue({ name: 'custom resources', clock, log, run: reconcile })

  const unsubscribeCRDs = store.subscribe(CRDStorage, (change) => {
    serve(change.key.name, change.object as CustomResourceDefinition | undefined, change.revision)
    queue.add(change.key.name)
    // Other CRDs may now get the names of the deleted CRD.
    if (!change.object) {
      for (const other of store.list(CRDStorage) as readonly CustomResourceDefinition[]) {
        if (!isTrue(other, 'NamesAccepted')) {
          serve(other.metadata.name, other, change.revision)
          queue.add(other.metadata.name)
        }
      }
    }
  })
  // A CRD that waits for the deletion of its instances is reconciled after each of these deletions.
  const unsubscribeInstances = store.subscribe(undefined, (change) => {
    if (!change.object && served.get(change.key.resource)?.terminating) queue.add(change.key.resource)
  })
  // CRDs that were accepted before a restart come first, so that they keep their names.
  const existing = [...store.list(CRDStorage)] as CustomResourceDefinition[]
  existing.sort((a, b) => Number(isTrue(b, 'NamesAccepted')) - Number(isTrue(a, 'NamesAccepted')))
  for (const crd of existing) {
    serve(crd.metadata.name, crd)
    queue.add(crd.metadata.name)
  }
  return () => {
    unsubscribeCRDs()
    unsubscribeInstances()
    queue.close()
  }

  /**
   * Serves a CRD unless its names conflict with those of another CRD; stops serving a deleted CRD, for which `crd` is undefined. When an
   * update causes a conflict, a served CRD is still served with its previous spec, until the server restarts. `revision` is the revision of
   * the change, and is absent for CRDs that existed at start.
   */
  function serve(name: string, crd: CustomResourceDefinition | undefined, revision?: number): void {
    const before = served.get(name)
    if (!crd) {
      if (before) {
        served.delete(name)
        registry.serve(name, [])
      }
      return
    }
    if (nameConflict(crd, otherCRDs(name)) !== undefined) return
    const current = {
      spec: crd.spec,
      terminating: crd.metadata.deletionTimestamp !== undefined,
    }
    if (before && before.terminating === current.terminating && equal(before.spec, current.spec)) return
    served.set(name, current)
    registry.serve(name, customResourceInfos(crd), before ? undefined : revision)
  }

  /** Returns the other CRDs whose names are in use: those that are served, or whose names are accepted. */
  function otherCRDs(name: string): CustomResourceDefinition[] {
    return (store.list(CRDStorage) as readonly CustomResourceDefinition[]).filter(
      (other) => other.metadata.name !== name && (isTrue(other, 'NamesAccepted') || served.has(other.metadata.name)),
    )
  }

  /** Writes the status of one CRD. If the CRD is being deleted, deletes its instances, then removes its finalizer. */
  async function reconcile(name: string): Promise<void> {
    const current = store.get(keyOfCRD(name)) as CustomResourceDefinition | undefined
    if (!current) return
    const next = draftOfStatus(current)
    if (current.metadata.deletionTimestamp === undefined) {
      setNameConditions(next)
      await write(current, next)
    } else if (current.metadata.finalizers?.includes(CleanupFinalizer)) await cleanUp(current)
  }

  function setNameConditions(crd: CustomResourceDefinition): void {
    const problem = nameConflict(crd, otherCRDs(crd.metadata.name))
    const status = (crd.status ??= {})
    status.conditions ??= []
    if (problem) {
      status.acceptedNames = acceptableNames(crd.spec.names, otherCRDs(crd.metadata.name), crd.spec.group)
      set(crd, 'NamesAccepted', 'False', problem.reason, problem.message)
      if (!isTrue(crd, 'Established')) set(crd, 'Established', 'False', 'NotAccepted', 'not all names are accepted')
    } else {
      status.acceptedNames = draft(crd.spec.names)
      set(crd, 'NamesAccepted', 'True', 'NoConflicts', 'no conflicts found')
      if (!isTrue(crd, 'Established')) {
        set(crd, 'Established', 'True', 'InitialNamesAccepted', 'the initial names have been accepted')
      }
    }
  }

  async function cleanUp(current: CustomResourceDefinition): Promise<void> {
    const { name } = current.metadata
    const next = draftOfStatus(current)
    const instances = store.list(name)
    if (instances.length === 0) {
      next.metadata.finalizers = (next.metadata.finalizers ?? []).filter((finalizer) => finalizer !== CleanupFinalizer)
      await write(current, next)
      return
    }
    set(next, 'Terminating', 'True', 'InstanceDeletionInProgress', 'CustomResource deletion is in progress')
    await write(current, next)
    for (const instance of instances) {
      if (instance.metadata.deletionTimestamp !== undefined) continue
      try {
        await deleteInstance(name, instance)
      } catch (err) {
        if (!isReason(err, 'NotFound')) throw err
      }
    }
    if (store.count(name) === 0) queue.add(name)
  }

  async function write(current: CustomResourceDefinition, next: CustomResourceDefinition): Promise<void> {
    if (equal(current, next)) return
    const { name, deletionTimestamp, finalizers = [] } = next.metadata
    const isDeleted = deletionTimestamp !== undefined && finalizers.length === 0
    if (finalizers.length === 0) delete next.metadata.finalizers
    const { apiVersion, schema } = registry.find('apiextensions.k8s.io', 'v1', 'customresourcedefinitions')!
    updateManagedFields(current, next, { ...statusManager, apiVersion, schema, now: clock.now() })
    try {
      await store.commit({ key: keyOfCRD(name), previous: current, object: isDeleted ? undefined : next })
    } catch (err) {
      // No retry is needed: the subscription adds the name to the queue for the concurrent change.
      if (!(err instanceof StoreConflict)) throw err
    }
  }

  function set(crd: CustomResourceDefinition, type: string, status: Condition['status'], reason: string, message: string): void {
    setCondition(crd.status!.conditions!, { type, status, reason, message }, clock.now())
  }
}

/** Copies a CRD except for its spec, which stays the same object: schemas are large, and compiled schemas are cached by identity. */
const draftOfStatus = (crd: CustomResourceDefinition): CustomResourceDefinition => ({
  ...crd,
  metadata: draft(crd.metadata),
  ...(crd.status ? { status: draft(crd.status) } : {}),
})

const isTrue = ({ status }: CustomResourceDefinition, type: string): boolean =>
  status?.conditions?.some((condition) => condition.type === type && condition.status === 'True') === true

/** Returns the conflict of names that keeps a CRD from being served, if any. */
function nameConflict(
  { spec }: CustomResourceDefinition,
  otherCRDs: readonly CustomResourceDefinition[],
): { reason: string; message: string } | undefined {
  const taken = takenNames(spec.group, otherCRDs)
  const { plural, singular, shortNames = [], kind, listKind } = spec.names
  const requested: [reason: string, name: string | undefined, taken: ReadonlySet<string>][] = [
    ['PluralConflict', plural, taken.resources],
    ['SingularConflict', singular, taken.resources],
    ...shortNames.map((name): [string, string, ReadonlySet<string>] => ['ShortNamesConflict', name, taken.resources]),
    ['KindConflict', kind, taken.kinds],
    ['ListKindConflict', listKind, taken.kinds],
  ]
  // As upstream, the last of several conflicts is reported. Upstream lists all short names that conflict, here only the last is listed.
  const conflict = requested.findLast(([, name, names]) => name !== undefined && names.has(name))
  return conflict && { reason: conflict[0], message: `"${conflict[1]}" is already in use` }
}

/** Returns the requested names, for the status. A name that another CRD has is empty or omitted. If it is a short name, all short names are. */
function acceptableNames(
  names: CustomResourceNames,
  otherCRDs: readonly CustomResourceDefinition[],
  group: string,
): CustomResourceNames {
  const taken = takenNames(group, otherCRDs)
  const ifFree = (name: string | undefined, set: ReadonlySet<string>) => (name && !set.has(name) ? name : '')
  const singular = ifFree(names.singular, taken.resources)
  const listKind = ifFree(names.listKind, taken.kinds)
  // As upstream, the requested short names are accepted together or not at all.
  const { shortNames = [] } = names
  const areFree = shortNames.length > 0 && !shortNames.some((name) => taken.resources.has(name))
  return {
    plural: ifFree(names.plural, taken.resources),
    ...(singular ? { singular } : {}),
    ...(areFree ? { shortNames: [...shortNames] } : {}),
    kind: ifFree(names.kind, taken.kinds),
    ...(listKind ? { listKind } : {}),
    ...(names.categories ? { categories: [...names.categories] } : {}),
  }
}

function takenNames(group: string, otherCRDs: readonly CustomResourceDefinition[]) {
  const resources = new Set<string>()
  const kinds = new Set<string>()
  for (const { spec, status } of otherCRDs) {
    if (spec.group !== group) continue
    const isDecided = status?.conditions?.some(({ type }) => type === 'NamesAccepted') === true
    const names = (isDecided ? status?.acceptedNames : undefined) ?? spec.names
    const { plural, singular, shortNames = [], kind, listKind } = names
    for (const name of [plural, singular, ...shortNames]) if (name) resources.add(name)
    for (const name of [kind, listKind]) if (name) kinds.add(name)
  }
  return { resources, kinds }
}
