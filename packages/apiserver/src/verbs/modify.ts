/**
 * Changes a stored object: a `Change` makes a draft from the current object; the stages (`write.ts`) are the same for PUT, patches and
 * subresources. After a concurrent write, all stages run again on the new object, so that a patch does not undo that write. A client that
 * must not overwrite concurrent writes sends a resourceVersion.
 */
import { conflict, invalid, invalidObject, type KubeObject, StatusError, type UnknownObject } from '@capstan/kube'
import { StoreConflict } from '../store/store.ts'
import type { AdmissionView } from './steps/call-webhooks.ts'
import { trackFields } from './steps/managed-fields.ts'
import { countGeneration, keepOtherParts, keepSystemFields } from './steps/system-fields.ts'
import { type RequestContext, keyFor, type ServerContext, stored } from './context.ts'
import { draftFor, store, type Write } from './write.ts'

export interface Change {
  /** Returns the object that the client requests: a decoded draft that no other code uses. */
  apply(current: UnknownObject): UnknownObject | Promise<UnknownObject>
  /** Whether the request replaces the object. True for PUT, except of a Scale, which changes only the replicas; false for patches. */
  readonly replaces: boolean
  /** Updates managedFields, unless `apply` has updated them, and returns the draft to continue with. Default: `trackFields`. */
  track?(object: UnknownObject, current: UnknownObject): UnknownObject
  /** Conversion to the object that webhooks and policies receive, if that is not the object itself. */
  readonly view?: AdmissionView
}

/** Changes a stored object. Repeats the change after a concurrent write. */
export async function modify(server: ServerContext, context: RequestContext, change: Change): Promise<KubeObject> {
  const { info, request } = context
  const key = keyFor(info, request.namespace, request.name!)
  for (;;) {
    const current = stored(server, info, key)
    const warningCount = context.warnings.length
    try {
      const write = await writeOf(server, context, change, current)
      return await store(server, context, write, await draftFor(server, context, write))
    } catch (err) {
      if (!(err instanceof StoreConflict)) throw err
      context.warnings.length = warningCount
    }
  }
}

async function writeOf(server: ServerContext, context: RequestContext, change: Change, stored: KubeObject): Promise<Write> {
  const { info, request } = context
  const old = await server.converter.convert(info, stored as UnknownObject)
  return {
    stored,
    old,
    async decode() {
      const requested = await change.apply(old)
      checkRevision(context, requested, old, change.replaces)
      return requested
    },
    reset(object) {
      keepSystemFields(object, old)
      keepOtherParts(info, request.subresource, object, old)
    },
    manageFields: (object) => (change.track ? change.track(object, old) : trackFields(server, context, object, old)),
    countGeneration: (object) => countGeneration(info, request.subresource, object, old),
    ...(change.view ? { view: change.view } : {}),
  }
}

function checkRevision(context: RequestContext, requested: UnknownObject, old: UnknownObject, replaces: boolean): void {
  const { info, request } = context
  const { resourceVersion, uid } = requested.metadata
  const { name } = old.metadata
  if (replaces && uid !== undefined && uid !== old.metadata.uid) throw uidConflict(context, old.metadata, uid)
  if (resourceVersion === undefined || resourceVersion === '0') {
    // Upstream requires a resourceVersion in updates of custom resources. A patch can violate this only by removing it or setting it to 0.
    const isPatch = request.patchType !== undefined && request.patchType !== 'application/apply-patch+yaml'
    const requiresRevision = !info.builtin && (replaces || isPatch)
    if (!requiresRevision) return
    const resource = { group: info.group, kind: info.plural }
    throw invalidObject(resource, name, [invalid('metadata.resourceVersion', 0, 'must be specified for an update')])
  }
  if (!/^\d+$/.test(resourceVersion)) {
    throw new StatusError('', `strconv.ParseUint: parsing ${JSON.stringify(resourceVersion)}: invalid syntax`)
  }
  if (resourceVersion !== old.metadata.resourceVersion) throw conflict(info, name)
}

/** Error for a PUT whose uid is not that of the stored object. When no object is stored, the error shows an empty uid. */
export function uidConflict(
  { info, options }: RequestContext,
  { name, namespace = '', uid: actualUID = '' }: Partial<KubeObject['metadata']> & { name: string },
  uid: string,
): StatusError {
  // Upstream: the key lacks the prefix /registry in a dry run, and has no group for a built-in kind.
  const keyPrefix = [options.dryRun ? '' : '/registry', ...(info.builtin ? [] : [info.group])]
  keyPrefix.push(info.storagePath ?? info.plural)
  if (info.namespaced) keyPrefix.push(namespace)
  const text = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${actualUID}`
  const key = [...keyPrefix, name].join('/')
  return conflict(
    info,
    name,
    `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: ${text}`,
  )
}
