import {
  conflict,
  draft,
  equal,
  freeze,
  invalidObject,
  isNumeric,
  isRecord,
  type KubeObject,
  notSupported,
  seconds,
  type Status,
  StatusError,
  timestamp,
  type UnknownObject,
} from '@capstan/kube'
import type { Definition } from '../registry/definition.ts'
import { StoreConflict } from '../store/store.ts'
import { validateAdmission } from './admit.ts'
import { announceDeletion } from './ask-webhooks.ts'
import { isDone } from './modify.ts'
import { type Call, keyFor, type Plane, stored } from './plane.ts'

/** What a client asks of a deletion, from its body or its query. */
export interface Deletion {
  readonly preconditions?: { uid?: string; resourceVersion?: string }
  readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan'
  readonly gracePeriodSeconds?: number
}

export type Deleted =
  /** No longer stored; what was stored last. */
  | { readonly state: 'gone'; readonly object: KubeObject }
  /** Still there until whoever holds it lets go. */
  | { readonly state: 'pending'; readonly object: KubeObject }

export async function remove(plane: Plane, call: Call): Promise<KubeObject | Status> {
  const deleted = await removeNamed(plane, call, call.request.namespace, call.request.name!, requestedDeletion(call))
  const { definition } = call
  if (deleted.state === 'pending' || definition.returnsDeleted) return deleted.object
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    details: {
      name: call.request.name!,
      ...(definition.group === '' ? {} : { group: definition.group }),
      kind: definition.plural,
      uid: deleted.object.metadata.uid,
    },
  }
}

/** What the body of a DELETE asks for, or what the kind does when it says nothing. */
export function requestedDeletion({ definition, request, warnings }: Call): Deletion {
  const deletion = deletionOf(request.body)
  if (definition.orphans === undefined || deletion.propagationPolicy !== undefined) return deletion
  warnings.push(definition.orphans)
  return { ...deletion, propagationPolicy: 'Orphan' }
}

/** @throws StatusError Invalid for a policy that does not exist */
export function deletionOf(body: unknown): Deletion {
  if (!isRecord(body)) return {}
  const { preconditions, propagationPolicy, gracePeriodSeconds, orphanDependents } = body
  const policies = ['Foreground', 'Background', 'Orphan']
  if (propagationPolicy !== undefined && propagationPolicy !== null && !policies.includes(propagationPolicy as string)) {
    throw invalidObject({ group: 'meta.k8s.io', kind: 'DeleteOptions' }, '', [
      notSupported('propagationPolicy', propagationPolicy, [...policies, 'nil']),
    ])
  }
  const orphan = orphanDependents === true ? 'Orphan' : orphanDependents === false ? 'Background' : undefined
  const policy = (propagationPolicy ?? orphan) as Deletion['propagationPolicy']
  return {
    ...(isRecord(preconditions) ? { preconditions } : {}),
    ...(policy ? { propagationPolicy: policy } : {}),
    ...(isNumeric(gracePeriodSeconds) ? { gracePeriodSeconds: Number(gracePeriodSeconds) } : {}),
  }
}

/** Deletes one object, or marks it as being deleted while finalizers hold it. */
export async function removeNamed(
  plane: Plane,
  call: Call,
  namespace: string | undefined,
  name: string,
  deletion: Deletion,
): Promise<Deleted> {
  const { definition, options } = call
  if (plane.enabled.has('NamespaceLifecycle')) refuseProtected(definition, name)
  const key = keyFor(definition, namespace, name)
  for (;;) {
    const current = stored(plane, definition, key)
    const old = await plane.converter.show(definition, current as UnknownObject)
    checkPreconditions(definition, old, deletion)
    await validateAdmission(plane, call, old, old, 'DELETE')
    // An eviction has been announced as such.
    if (call.request.subresource === undefined) await announceDeletion(plane, call, old)

    // What is stored is marked, whichever version was asked for: a conversion there and back might lose something.
    const marked = markedForDeletion(plane, definition, current as UnknownObject, deletion)
    if (equal(marked, current)) return { state: 'pending', object: old }
    const gone = isDone(marked)
    if (gone && options.dryRun) return { state: 'gone', object: old }
    if (options.dryRun) return { state: 'pending', object: await plane.converter.show(definition, freeze(marked)) }
    try {
      const { object } = await plane.store.commit({ key, previous: current, object: gone ? undefined : marked })
      // Upstream: who may be given time to end is shown as being deleted, even if it is given none.
      if (gone) return { state: 'gone', object: definition.gracePeriod ? freeze(marked) : old }
      return { state: 'pending', object: await plane.converter.show(definition, object!) }
    } catch (err) {
      if (!(err instanceof StoreConflict)) throw err
    }
  }
}

/** A draft of the object as its deletion leaves it. Upstream: BeforeDelete and deletionFinalizersForGarbageCollection. */
function markedForDeletion(plane: Plane, definition: Definition, old: UnknownObject, deletion: Deletion): UnknownObject {
  const object = draft(old)
  const { metadata } = object
  const finalizers = collectionFinalizers(metadata.finalizers ?? [], deletion.propagationPolicy)
  if (finalizers.length > 0) metadata.finalizers = finalizers
  else delete metadata.finalizers
  if (metadata.deletionTimestamp === undefined) {
    const grace = plane.gracefulDeletion ? (definition.gracePeriod?.(object, deletion.gracePeriodSeconds) ?? 0) : 0
    metadata.deletionTimestamp = timestamp(plane.clock.now() + seconds(grace))
    // Upstream: kinds that mark their objects in a way of their own do so without the rest.
    if (definition.markDeleted) definition.markDeleted(object, metadata.deletionTimestamp)
    else {
      metadata.deletionGracePeriodSeconds = grace
      if (definition.generation) metadata.generation = (metadata.generation ?? 1) + 1
    }
  } else shortenGrace(metadata, deletion.gracePeriodSeconds)
  return object
}

/** What is on its way out may be hurried, and not be given more time. */
function shortenGrace(metadata: UnknownObject['metadata'], requested: number | undefined): void {
  const { deletionGracePeriodSeconds: grace = 0, deletionTimestamp = '' } = metadata
  if (requested === undefined || requested >= grace) return
  metadata.deletionTimestamp = timestamp(Date.parse(deletionTimestamp) - seconds(grace - Math.max(requested, 0)))
  metadata.deletionGracePeriodSeconds = Math.max(requested, 0)
}

function collectionFinalizers(finalizers: readonly string[], policy: Deletion['propagationPolicy']): string[] {
  // Without a policy, a finalizer that asks for one is one.
  if (policy === undefined) return [...finalizers]
  const others = finalizers.filter((finalizer) => finalizer !== 'orphan' && finalizer !== 'foregroundDeletion')
  if (policy === 'Orphan') others.push('orphan')
  if (policy === 'Foreground') others.push('foregroundDeletion')
  return others.length === finalizers.length && others.every((one) => finalizers.includes(one)) ? [...finalizers] : others
}

export function checkPreconditions(definition: Definition, { metadata }: KubeObject, { preconditions = {} }: Deletion): void {
  const { uid, resourceVersion } = preconditions
  // Upstream names the kind here where all other texts name the resource.
  const kind = { group: definition.group, plural: definition.kind }
  if (uid !== undefined && uid !== metadata.uid) {
    throw conflict(
      kind,
      metadata.name,
      `the UID in the precondition (${uid}) does not match the UID in record (${metadata.uid}). The object might have been deleted and then recreated`,
    )
  }
  if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion) {
    throw conflict(
      kind,
      metadata.name,
      `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${metadata.resourceVersion}). The object might have been modified`,
    )
  }
}

const protectedNamespaces = new Set(['default', 'kube-system', 'kube-public'])

function refuseProtected({ group, plural }: Definition, name: string): void {
  if (group !== '' || plural !== 'namespaces' || !protectedNamespaces.has(name)) return
  throw new StatusError('Forbidden', `namespaces ${JSON.stringify(name)} is forbidden: this namespace may not be deleted`, {
    details: { name, kind: 'namespaces' },
  })
}
