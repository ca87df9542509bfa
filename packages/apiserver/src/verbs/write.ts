/**
 * The stages of a write, in order: of a create (`create.ts`), or of a change by PUT, patch, apply or a subresource (`modify.ts`). Each verb
 * declares what differs. Other requests may run between two stages. A deletion (`delete.ts`) does not call these functions, because its
 * request contains no object.
 */
import { appendAll, draft, freeze, type KubeObject, keepTimes, pauseIfDue, type UnknownObject } from '@capstan/kube'
import { markDefaulted, storageApiVersion } from '../registry/resource-info.ts'
import { mutate, requireNamespace, validate } from './steps/admit.ts'
import type { AdmissionView } from './steps/call-webhooks.ts'
import { dropDuplicateOwners } from './steps/metadata.ts'
import { rejectTooLarge } from './steps/object-size.ts'
import { isDeletionComplete } from './steps/system-fields.ts'
import { keyFor, type RequestContext, type ServerContext, writeContext } from './context.ts'

/** The objects and steps that differ between verbs. */
export interface Write {
  /** The object as it is stored; absent for a create. */
  readonly stored?: KubeObject
  /** The stored object in the version of the request; absent for a create. */
  readonly old?: UnknownObject
  /** Returns the requested object: a draft that `decode.ts` has decoded (pruned unknown fields, set defaults). */
  decode(): UnknownObject | Promise<UnknownObject>
  /** Resets the parts that neither the client nor mutating webhooks can write through this verb. */
  reset(object: UnknownObject): void
  /** Updates managedFields; does nothing for an apply, which has updated them before. Returns the draft to continue with. */
  manageFields(object: UnknownObject): UnknownObject | Promise<UnknownObject>
  /** Increases the generation if needed, after the strategy has prepared the object. */
  countGeneration?(object: UnknownObject): void
  /** Check after the validation, also in a dry run. @throws StatusError; StoreConflict if the name of a new object is in use */
  check?(object: UnknownObject): void
  /** Conversion to the object that webhooks and policies receive, if that is not the object itself. */
  readonly view?: AdmissionView
}

/** First stages, before a name is generated: decode, reset, update managedFields, require the namespace, mutate. */
export async function draftFor(server: ServerContext, context: RequestContext, write: Write): Promise<UnknownObject> {
  const { clock } = server
  const decoded = await write.decode()
  const decodePause = pauseIfDue(clock)
  if (decodePause) await decodePause
  write.reset(decoded)
  appendAll(context.warnings, dropDuplicateOwners(decoded))
  const managed = await write.manageFields(decoded)
  const fieldsPause = pauseIfDue(clock)
  if (fieldsPause) await fieldsPause
  if (!write.old) requireNamespace(server, context.info, managed)
  const mutated = await mutate(server, context, managed, write.old, write.view)
  if (mutated !== managed) write.reset(mutated)
  return mutated
}

/** Later stages: authorize, prepare, count the generation, validate, check, convert, commit, respond. */
export async function store(
  server: ServerContext,
  context: RequestContext,
  write: Write,
  object: UnknownObject,
): Promise<KubeObject> {
  const { info, options } = context
  const { stored, old } = write
  try {
    const pause = pauseIfDue(server.clock)
    if (pause) await pause
    info.strategy.authorize?.(object, old, writeContext(server, context))
    info.strategy.prepare?.(object, old, writeContext(server, context))
    write.countGeneration?.(object)
    await validate(server, context, object, old, write.view)
    const freezePause = pauseIfDue(server.clock)
    if (freezePause) await freezePause
    write.check?.(object)
    if (old && isUnchanged(context, stored!, old, object)) return old
    if (options.dryRun) return freeze(await server.converter.roundTrip(info, object))
    const { namespace, name } = (old ?? object).metadata
    const key = keyFor(info, namespace, name)
    if (old && isDeletionComplete(info, object)) {
      await server.store.commit({ key, previous: stored, object: undefined })
      return freeze(object)
    }
    const converted = await inStorageVersion(server, context, object)
    rejectTooLarge(converted)
    const { object: written } = await server.store.commit({ key, previous: stored, object: converted })
    return await server.converter.convert(info, written!)
  } finally {
    // Admission plugins and strategies record writes that use a quota, an address or a port, for the checks of concurrent writes.
    server.pending.delete(object)
  }
}

/**
 * Reports whether the write can be skipped: the object is unchanged except for times in managedFields, and the stored object has the storage
 * version.
 */
const isUnchanged = ({ info }: RequestContext, stored: KubeObject, old: UnknownObject, object: UnknownObject): boolean =>
  keepTimes(old, object) && stored.apiVersion === storageApiVersion(info)

/** Converts a draft from the version of the request to the storage version. */
async function inStorageVersion(
  { converter }: ServerContext,
  { info }: RequestContext,
  object: UnknownObject,
): Promise<UnknownObject> {
  const { stored, conversion, builtin, apiVersion } = info
  if (!stored) {
    markDefaulted(info, object)
    return object
  }
  if (conversion) return draft(await converter.convert(stored, object))
  if (builtin) {
    stored.convertFrom![apiVersion]!(object)
    object.apiVersion = stored.apiVersion
    return object
  }
  object.apiVersion = stored.apiVersion
  stored.structural.prune(object)
  return object
}
