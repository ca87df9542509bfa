/**
 * Stages of every change of a stored object: `change` makes a draft from the current object; the other stages are the same for PUT, patches
 * and subresources. After a concurrent write, all stages run again on the new object, so that no update is lost. A client that must not
 * build upon other writes sends a resourceVersion.
 */
import {
  appendAll,
  conflict,
  equal,
  freeze,
  invalid,
  invalidObject,
  keepTimes,
  type KubeObject,
  StatusError,
  type UnknownObject,
} from '@capstan/kube'
import { type ResourceInfo, storageApiVersion } from '../registry/resource-info.ts'
import { StoreConflict, type StoreKey } from '../store/store.ts'
import { mutate, validate } from './steps/admit.ts'
import type { AdmissionView } from './steps/call-webhooks.ts'
import { trackFields } from './steps/managed-fields.ts'
import { dropDuplicateOwners } from './steps/metadata.ts'
import { type RequestContext, keyFor, type ServerContext, stored, writeContext } from './context.ts'
import { toStore } from './steps/to-store.ts'

export interface Change {
  /** Returns the object that the client wants, decoded: a draft that is not shared. */
  apply(current: UnknownObject): UnknownObject | Promise<UnknownObject>
  /** True for PUT, which replaces the object; false for patches. */
  readonly replaces: boolean
  /** Updates managedFields. Default: as for an update. */
  track?(object: UnknownObject, current: UnknownObject): UnknownObject
  /** The object that webhooks see, where it differs from the stored object. */
  readonly view?: AdmissionView
}

export async function modify(server: ServerContext, context: RequestContext, change: Change): Promise<KubeObject> {
  const { info, request } = context
  const key = keyFor(info, request.namespace, request.name!)
  for (;;) {
    const current = stored(server, info, key)
    const warned = context.warnings.length
    try {
      return await attempt(server, context, change, key, current)
    } catch (err) {
      if (!(err instanceof StoreConflict)) throw err
      context.warnings.length = warned
    }
  }
}

async function attempt(
  server: ServerContext,
  context: RequestContext,
  change: Change,
  key: StoreKey,
  current: KubeObject,
): Promise<KubeObject> {
  const { info, options, request, warnings } = context
  const old = await server.converter.show(info, current as UnknownObject)
  const sent = await change.apply(old)
  checkRevision(context, sent, old, change.replaces)
  keepSystemFields(sent, old)
  keepOtherParts(info, request.subresource, sent, old)
  appendAll(warnings, dropDuplicateOwners(sent))

  const tracked = change.track ? change.track(sent, old) : await trackFields(server, context, sent, old)
  const object = await mutate(server, context, tracked, old, change.view)
  if (object !== tracked) {
    // Webhooks cannot change system fields either.
    keepSystemFields(object, old)
    keepOtherParts(info, request.subresource, object, old)
  }
  info.strategy.authorize?.(object, old, writeContext(server, context))
  try {
    info.strategy.prepare?.(object, old, writeContext(server, context))
    countGeneration(info, request.subresource, object, old)
    await validate(server, context, object, old, change.view)

    // A write without changes is still stored when it migrates the object to the current storage version.
    if (keepTimes(old, object) && current.apiVersion === storageApiVersion(info)) return old
    const gone = isDone(object)
    if (options.dryRun) return freeze(object)
    const next = gone ? undefined : await toStore(server, context, object)
    const { object: written } = await server.store.commit({ key, previous: current, object: next })
    return gone ? freeze(object) : server.converter.show(info, written!)
  } finally {
    server.pending.delete(object)
  }
}

function checkRevision(context: RequestContext, sent: UnknownObject, old: UnknownObject, replaces: boolean): void {
  const { info, request } = context
  const { resourceVersion, uid } = sent.metadata
  const { name } = old.metadata
  if (replaces && uid !== undefined && uid !== old.metadata.uid) throw otherUid(context, old.metadata, uid)
  if (resourceVersion === undefined || resourceVersion === '0') {
    // Upstream requires a resourceVersion in updates of custom resources, also when a patch removes it.
    const isWhole = replaces || (request.patchType !== undefined && request.patchType !== 'application/apply-patch+yaml')
    if (info.builtin || !isWhole) return
    const resource = { group: info.group, kind: info.plural }
    throw invalidObject(resource, name, [invalid('metadata.resourceVersion', 0, 'must be specified for an update')])
  }
  if (!/^\d+$/.test(resourceVersion)) {
    throw new StatusError('', `strconv.ParseUint: parsing ${JSON.stringify(resourceVersion)}: invalid syntax`)
  }
  if (resourceVersion !== old.metadata.resourceVersion) throw conflict(info, name)
}

/** Error for a uid that differs from the object's. */
export function otherUid(
  { info, options }: RequestContext,
  { name, namespace = '', uid: found = '' }: Partial<KubeObject['metadata']> & { name: string },
  uid: string,
): StatusError {
  // Upstream: the key of a dry run has no prefix of the store; keys of built-in kinds have no group.
  const place = [options.dryRun ? '' : '/registry', ...(info.builtin ? [] : [info.group])]
  place.push(info.storagePath ?? info.plural)
  if (info.namespaced) place.push(namespace)
  const text = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${found}`
  const key = [...place, name].join('/')
  return conflict(
    info,
    name,
    `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: ${text}`,
  )
}

/** Carries over the fields that only the server sets; validation refuses changes of the immutable ones. */
function keepSystemFields({ metadata }: UnknownObject, { metadata: old }: UnknownObject): void {
  metadata.resourceVersion = old.resourceVersion
  metadata.creationTimestamp = old.creationTimestamp
  metadata.uid ??= old.uid
  for (const field of ['generation', 'selfLink'] as const) copyField(metadata, old, field)
  for (const field of ['deletionTimestamp', 'deletionGracePeriodSeconds'] as const) {
    if (metadata[field] === undefined) copyField(metadata, old, field)
  }
}

function copyField<T extends object, K extends keyof T>(to: T, from: T, field: K): void {
  if (from[field] === undefined) delete to[field]
  else to[field] = from[field]
}

/** Carries over the part that a request cannot write: the status on the main path, all but the status on `/status`. */
function keepOtherParts(info: ResourceInfo, subresource: string | undefined, object: UnknownObject, old: UnknownObject): void {
  const writes = subresource === undefined ? undefined : info.strategy.subresourceWrites?.[subresource]
  if (writes) return writes(object, old)
  if (!info.statusSubresource) return
  if (subresource === 'status') {
    for (const part of new Set([...Object.keys(object), ...Object.keys(old)])) {
      if (part !== 'status' && part !== 'metadata') copyField(object, old, part)
    }
    // Upstream: built-in kinds accept labels and annotations on /status, custom resources do not.
    if (!info.builtin) {
      const { managedFields } = object.metadata
      object.metadata = { ...old.metadata, ...(managedFields ? { managedFields } : {}) }
    }
  } else copyField(object, old, 'status')
}

function countGeneration(info: ResourceInfo, subresource: string | undefined, object: UnknownObject, old: UnknownObject): void {
  if (!info.strategy.generation) return
  const parts = new Set([...Object.keys(object), ...Object.keys(old)])
  parts.delete('metadata')
  if (info.statusSubresource) parts.delete('status')
  const changed =
    [...parts].some((part) => !equal(object[part], old[part])) ||
    (typeof info.strategy.generation === 'function' && subresource !== 'status' && info.strategy.generation(object, old))
  object.metadata.generation = (old.metadata.generation ?? 0) + (changed ? 1 : 0)
}

/** Reports whether a deletion was requested and no finalizer or grace period is left. */
export function isDone(object: UnknownObject): boolean {
  const { deletionTimestamp, finalizers = [], deletionGracePeriodSeconds = 0 } = object.metadata
  if (deletionTimestamp === undefined || finalizers.length > 0 || deletionGracePeriodSeconds > 0) return false
  if (object.kind !== 'Namespace' || object.apiVersion !== 'v1') return true
  return ((object.spec as { finalizers?: string[] } | undefined)?.finalizers ?? []).length === 0
}
