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
import type { ResourceInfo } from '../registry/resource-info.ts'
import { StoreConflict } from '../store/store.ts'
import { validateAdmission } from './steps/admit.ts'
import { callDeletionWebhooks } from './steps/call-webhooks.ts'
import { isDeletionComplete } from './steps/system-fields.ts'
import { type RequestContext, keyFor, type ServerContext, stored } from './context.ts'

/**
 * The DeleteOptions that a deletion uses. `dryRun` is not one of them: it is an option of the request. `orphanDependents` is decoded as a
 * propagation policy.
 */
export interface Deletion {
  readonly preconditions?: { uid?: string; resourceVersion?: string }
  readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan'
  readonly gracePeriodSeconds?: number
}

export type DeletionResult =
  /**
   * The object was removed, or would be without `dryRun`. `object` is its last stored state. For kinds with a grace period, it is also marked
   * as deleted, except with `dryRun`.
   */
  | { readonly state: 'removed'; readonly object: KubeObject }
  /**
   * The object is marked as deleted, or would be without `dryRun`. A later request that leaves it no finalizers and a grace period of 0
   * removes it. The end of the grace period alone does not.
   */
  | { readonly state: 'pending'; readonly object: KubeObject }

/**
 * Executes a DELETE of one object. Returns a Status if the object was removed, or the object if the strategy has `returnsDeleted`. Returns the
 * object if it is only marked as deleted.
 */
export async function remove(server: ServerContext, context: RequestContext): Promise<KubeObject | Status> {
  const deleted = await removeNamed(server, context, context.request.namespace, context.request.name!, requestedDeletion(context))
  const { info } = context
  if (deleted.state === 'pending' || info.strategy.returnsDeleted) return deleted.object
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    details: {
      name: context.request.name!,
      ...(info.group === '' ? {} : { group: info.group }),
      kind: info.plural,
      uid: deleted.object.metadata.uid,
    },
  }
}

/**
 * Returns the options of a DELETE. If they have no propagation policy, and the kind orphans dependents by default, adds the policy `Orphan`
 * and a warning.
 */
export function requestedDeletion({ info, request, warnings }: RequestContext): Deletion {
  const deletion = deletionOf(request.body)
  if (info.strategy.orphanWarning === undefined || deletion.propagationPolicy !== undefined) return deletion
  warnings.push(info.strategy.orphanWarning)
  return { ...deletion, propagationPolicy: 'Orphan' }
}

/** Decodes DeleteOptions. @throws StatusError Invalid for an unknown propagation policy */
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

/** Deletes one object, or marks it as deleted while it has finalizers or a grace period. Repeats the deletion after a concurrent write. */
export async function removeNamed(
  server: ServerContext,
  context: RequestContext,
  namespace: string | undefined,
  name: string,
  deletion: Deletion,
): Promise<DeletionResult> {
  const { info, options } = context
  if (server.enabled.has('NamespaceLifecycle')) rejectProtectedNamespace(info, name)
  const key = keyFor(info, namespace, name)
  for (;;) {
    const current = stored(server, info, key)
    const old = await server.converter.convert(info, current as UnknownObject)
    checkPreconditions(info, old, deletion)
    await validateAdmission(server, context, old, old, 'DELETE')
    // A deletion with a subresource is an eviction, for which webhooks have already been called with the Eviction.
    if (context.request.subresource === undefined) await callDeletionWebhooks(server, context, old)

    // Marks the object as it is stored: converting it to another version and back could lose fields.
    const marked = markedForDeletion(server, info, current as UnknownObject, deletion)
    if (equal(marked, current)) return { state: 'pending', object: old }
    const isRemoved = isDeletionComplete(info, marked)
    if (isRemoved && options.dryRun) return { state: 'removed', object: old }
    if (options.dryRun) return { state: 'pending', object: await server.converter.convert(info, freeze(marked)) }
    try {
      const { object } = await server.store.commit({ key, previous: current, object: isRemoved ? undefined : marked })
      // Upstream: kinds with a grace period return the object marked as deleted, even with a grace period of 0.
      if (isRemoved) return { state: 'removed', object: info.strategy.gracePeriod ? freeze(marked) : old }
      return { state: 'pending', object: await server.converter.convert(info, object!) }
    } catch (err) {
      if (!(err instanceof StoreConflict)) throw err
    }
  }
}

/** The last second of the year 9999: a year in RFC 3339 has four digits. */
const LatestTime = Date.parse('9999-12-31T23:59:59Z')

/** Returns a draft of the object marked as deleted. Upstream: BeforeDelete and deletionFinalizersForGarbageCollection. */
function markedForDeletion(server: ServerContext, info: ResourceInfo, old: UnknownObject, deletion: Deletion): UnknownObject {
  const object = draft(old)
  const { metadata } = object
  const finalizers = finalizersByPolicy(metadata.finalizers ?? [], deletion.propagationPolicy)
  if (finalizers.length > 0) metadata.finalizers = finalizers
  else delete metadata.finalizers
  if (metadata.deletionTimestamp === undefined) {
    const now = server.clock.now()
    const requested = server.gracefulDeletion ? (info.strategy.gracePeriod?.(object, deletion.gracePeriodSeconds) ?? 0) : 0
    const grace = Math.min(requested, Math.floor((LatestTime - now) / 1000))
    metadata.deletionTimestamp = timestamp(now + seconds(grace))
    // Upstream: kinds that record a deletion in their status get neither a grace period nor a new generation.
    if (info.strategy.markDeleted) info.strategy.markDeleted(object, metadata.deletionTimestamp)
    else {
      metadata.deletionGracePeriodSeconds = grace
      if (info.strategy.generation) metadata.generation = (metadata.generation ?? 1) + 1
    }
  } else shortenGrace(metadata, deletion.gracePeriodSeconds)
  return object
}

/** Shortens the grace period if a second deletion requests a shorter one. A longer one is ignored. */
function shortenGrace(metadata: UnknownObject['metadata'], requested: number | undefined): void {
  const { deletionGracePeriodSeconds: grace = 0, deletionTimestamp = '' } = metadata
  if (requested === undefined || requested >= grace) return
  metadata.deletionTimestamp = timestamp(Date.parse(deletionTimestamp) - seconds(grace - Math.max(requested, 0)))
  metadata.deletionGracePeriodSeconds = Math.max(requested, 0)
}

function finalizersByPolicy(finalizers: readonly string[], policy: Deletion['propagationPolicy']): string[] {
  // Without a policy, an existing finalizer for orphaning or foreground deletion is kept.
  if (policy === undefined) return [...finalizers]
  const desired = finalizers.filter((finalizer) => finalizer !== 'orphan' && finalizer !== 'foregroundDeletion')
  if (policy === 'Orphan') desired.push('orphan')
  if (policy === 'Foreground') desired.push('foregroundDeletion')
  // If only the order would change, the finalizers stay as they are.
  const existing = new Set(finalizers)
  const isUnchanged = desired.length === finalizers.length && desired.every((finalizer) => existing.has(finalizer))
  return isUnchanged ? [...finalizers] : desired
}

/** Checks the preconditions of a deletion. @throws StatusError Conflict when the object does not meet them */
export function checkPreconditions(info: ResourceInfo, { metadata }: KubeObject, { preconditions = {} }: Deletion): void {
  const { uid, resourceVersion } = preconditions
  // Upstream names the kind here, where other conflicts name the resource.
  const kind = { group: info.group, plural: info.kind }
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

function rejectProtectedNamespace({ group, plural }: ResourceInfo, name: string): void {
  if (group !== '' || plural !== 'namespaces' || !protectedNamespaces.has(name)) return
  throw new StatusError('Forbidden', `namespaces ${JSON.stringify(name)} is forbidden: this namespace may not be deleted`, {
    details: { name, kind: 'namespaces' },
  })
}
