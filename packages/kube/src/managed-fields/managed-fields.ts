/** Server-side apply and managedFields, on whole objects. Upstream: k8s.io/apimachinery/pkg/util/managedfields, v0.36. */
import { atOnce, timestamp, type Work } from '../clock.ts'
import { StatusError, badRequest } from '../errors.ts'
import { draft, drafting, equal } from '../json.ts'
import type { KubeObject, ManagedFieldsEntry } from '../object.ts'
import { parseApiVersion } from '../object.ts'
import type { JSONSchema } from '../schema.ts'
import { problemsText, typeProblems } from './check-type.ts'
import type { FieldSet, Path } from './field-set.ts'
import { difference, emptySet, hasPath, isEmpty, pathText, setOf, union } from './field-set.ts'
import { renewLastApplied, unchangedSinceLastApplied } from './last-applied.ts'
import { ItemError } from './list-item.ts'
import type { Entries, Manager } from './managers.ts'
import { decodeEntries, encodeEntries, managerId, managerText, mergeOldest } from './managers.ts'
import { fieldElement } from './path-element.ts'
import { typeOfSchema } from './type.ts'
import type { Managers, Typed, Versions } from './updater.ts'
import { ApplyConflicts, applyConfig, conflictsText, ownersAfterUpdate } from './updater.ts'

/** Properties of a request on which managedFields depend. */
export interface ManagedFieldsContext {
  /** Version of the request and of the given objects, with its schema. */
  readonly apiVersion: string
  readonly schema: JSONSchema
  /** Field manager of the request. */
  readonly manager: string
  /** Subresource of the request; empty or absent for the main resource. */
  readonly subresource?: string
  /** Fields that the endpoint of the request resets, and that therefore get no manager; see `resetFields`. */
  readonly ignored?: FieldSet
  /** Milliseconds since the Unix epoch. */
  readonly now: number
  /**
   * Object with which a new object is compared; default: an empty object. Upstream: non-pointer members of Go types always exist, so the
   * manager that creates an object owns only the fields in such a member, not the member itself.
   */
  readonly zeroValue?: object
  /** Whether Update entries get no time. Upstream: entries of the scale subresource have none. */
  readonly untimed?: boolean
  /**
   * Converts an object to another version of its kind. If the function is absent or returns `undefined`, the version does not exist, and
   * its managers are removed. If the function throws a StatusError, an apply is rejected; an update removes managedFields instead.
   */
  readonly convert?: (object: KubeObject, apiVersion: string) => { object: KubeObject; schema: JSONSchema } | undefined
}

/** Returns the fields that clients cannot set through an endpoint. */
export function resetFields(endpoint: { subresource?: string; hasStatusSubresource: boolean; builtin?: boolean }): FieldSet {
  // Built-in kinds accept labels and annotations through the status subresource, too.
  if (endpoint.subresource === 'status') return endpoint.builtin ? BuiltinStatusResets : StatusResets
  return endpoint.hasStatusSubresource ? MainResets : emptySet
}

/** Returns the set of the fields with these paths. */
export const fieldsAt = (paths: readonly (readonly string[])[]): FieldSet => setOf(paths.map((names) => names.map(fieldElement)))

const path = (...names: string[]): Path => names.map(fieldElement)
const StatusResets = setOf([path('apiVersion'), path('kind'), path('metadata'), path('spec')])
const BuiltinStatusResets = setOf([path('spec')])
const MainResets = setOf([path('status')])

/**
 * Updates `metadata.managedFields` of `next`, a draft that will replace `live` (absent for a create). The manager of the request owns the
 * changed and added fields, other managers lose these, and no manager owns removed fields. Valid entries in the draft replace the entries of
 * `live`, and an empty list removes all entries; a request to a subresource ignores the entries in the draft. If `live` has no managedFields,
 * the draft gets none either, unless it has valid entries. A draft that does not fit the schema is left without managedFields.
 */
export const updateManagedFields = (live: KubeObject | undefined, next: KubeObject, context: ManagedFieldsContext): void =>
  void atOnce(managedFieldsUpdate(live, next, context))

/** Does the same as `updateManagedFields`, and yields between pieces of the work. The objects must not change meanwhile. Returns the draft. */
export function* managedFieldsUpdate<T extends KubeObject>(
  live: KubeObject | undefined,
  next: T,
  context: ManagedFieldsContext,
): Work<T> {
  const entriesOfDraft = next.metadata.managedFields
  const entries = entriesFor(live, entriesOfDraft, context)
  delete next.metadata.managedFields
  // Upstream: an object without managedFields gets them only with the next apply, or from a draft with valid entries.
  if (entries.size === 0 && live) return next
  try {
    yield* updateEntries(live, next, entries, { ...context, operation: 'Update' })
    yield* setEntries(next, entries)
  } catch (err) {
    // Upstream: an object is written without managedFields if it does not fit the schema, as older objects may not, or if `convert` throws,
    // for example because a custom resource has managers of a version that its CustomResourceDefinition no longer has.
    if (!(err instanceof ItemError || err instanceof StatusError)) throw err
  }
  return next
}

/** Returns the entries that an update starts from. */
function entriesFor(
  live: KubeObject | undefined,
  entriesOfDraft: readonly ManagedFieldsEntry[] | undefined,
  { subresource }: ManagedFieldsContext,
): Entries {
  const entriesOfLive = () => tryDecodeEntries(live?.metadata.managedFields) ?? new Map()
  if (subresource) return entriesOfLive()
  if (
    entriesOfDraft &&
    (entriesOfDraft.length === 0 || (entriesOfDraft.length === 1 && Object.keys(entriesOfDraft[0] ?? {}).length === 0))
  )
    return new Map()
  const decoded = tryDecodeEntries(entriesOfDraft)
  return decoded && decoded.size > 0 ? decoded : entriesOfLive()
}

function tryDecodeEntries(list: readonly ManagedFieldsEntry[] | undefined): Entries | undefined {
  try {
    return decodeEntries(list)
  } catch {
    return undefined
  }
}

/** Updates the entries for an update by the manager of the request. */
function* updateEntries(
  live: KubeObject | undefined,
  next: KubeObject,
  entries: Entries,
  context: ManagedFieldsContext & { operation: 'Update' },
): Work<void> {
  const { apiVersion, now } = context
  const before = toTyped(live ?? (context.zeroValue as KubeObject | undefined), context)
  const owners = yield* ownersAfterUpdate(before, toTyped(next, context), ownersOf(entries), Current, versionsOf(context))
  setOwners(entries, owners)
  const current = owners.get(Current)
  const fields = current && difference(current.fields, NeverOwned)
  if (fields && !isEmpty(fields)) {
    const manager: Manager = { manager: context.manager, operation: 'Update', apiVersion, subresource: context.subresource ?? '' }
    const ownedBefore = entries.get(managerId(manager))?.owned.fields ?? emptySet
    entries.set(managerId(manager), {
      ...manager,
      owned: { apiVersion, applied: false, fields: union(fields, ownedBefore) },
      time: context.untimed ? undefined : timestamp(now),
    })
  }
  mergeOldest(entries)
}

/** Temporary id of the manager of the request, to distinguish its new fields from the fields that it owned before. */
const Current = 'current-operation'

/** Identity and system fields, which have no manager. */
const NeverOwned = setOf([
  path('apiVersion'),
  path('kind'),
  path('metadata'),
  ...[
    'name',
    'namespace',
    'creationTimestamp',
    'selfLink',
    'uid',
    'clusterName',
    'generation',
    'managedFields',
    'resourceVersion',
  ].map((name) => path('metadata', name)),
])

/**
 * Applies `applied` to `live` (absent when the apply creates the object) and returns the resulting draft with its managedFields. The caller
 * defaults and validates the draft, and compares it with `live` (`keepTimes`).
 * @throws StatusError Conflict when fields of other managers would change, unless `force` is set or kubectl takes the fields over from
 * client-side apply; BadRequest when `applied` contains managedFields, or is in another version than the request; without a reason when
 * `applied` or `live` does not fit the schema, or when the managedFields of `live` are invalid; a StatusError of `convert`
 */
export const applyPatch = (
  live: KubeObject | undefined,
  applied: KubeObject,
  context: ManagedFieldsContext & { force: boolean },
): KubeObject => atOnce(applying(live, applied, context))

/** Does the same as `applyPatch`, and yields between pieces of the work. The objects must not change meanwhile. */
export function* applying(
  live: KubeObject | undefined,
  applied: KubeObject,
  context: ManagedFieldsContext & { force: boolean },
): Work<KubeObject> {
  const { apiVersion, manager, subresource = '' } = context
  yield
  if (applied.apiVersion !== apiVersion) {
    throw badRequest(
      `Incorrect version specified in apply patch. Specified patch version: ${applied.apiVersion}, expected: ${apiVersion}`,
    )
  }
  if (applied.metadata.managedFields !== undefined && applied.metadata.managedFields !== null) {
    throw badRequest('metadata.managedFields must be nil')
  }
  const config = typedPatch(applied, context)
  yield
  const current = toTyped(live, context)
  const liveProblems = live ? typeProblems(current.type, current.value, { allowDuplicates: true }) : []
  if (live && liveProblems.length > 0) throw schemaMismatch('live', live, liveProblems)

  const entries = decodeLive(live)
  if (live && entries.size === 0)
    yield* updateEntries(undefined, live, entries, { ...context, manager: BeforeFirstApply, operation: 'Update' })

  const applier: Manager = { manager, operation: 'Apply', apiVersion, subresource }
  const id = managerId(applier)
  const { object, owners } = yield* applyOrTakeOver(live, current, config, ownersOf(entries), id, context)
  const previousTime = entries.get(id)?.time
  setOwners(entries, owners)
  const ownedByApplier = owners.get(id)
  const fields = ownedByApplier && difference(ownedByApplier.fields, NeverOwned)
  if (fields && !isEmpty(fields)) {
    const time = object ? timestamp(context.now) : previousTime
    entries.set(id, { ...applier, owned: { ...ownedByApplier, fields }, time })
  } else entries.delete(id)

  yield
  const result = (yield* drafting(object ? object.value : current.value)) as KubeObject
  yield
  if (manager === 'kubectl') renewLastApplied(result, applied)
  yield* setEntries(result, entries)
  return result
}

/** Rejects an applied object that does not fit the schema. @throws StatusError without a reason */
export function checkFitsSchema(applied: KubeObject, context: SchemaContext): void {
  typedPatch(applied, context)
}

function typedPatch(applied: KubeObject, context: SchemaContext) {
  const config = toTyped(applied, context)
  const problems = typeProblems(config.type, config.value, { allowDuplicates: false })
  if (problems.length > 0) throw schemaMismatch('patch', applied, problems)
  return config
}

const BeforeFirstApply = 'before-first-apply'

function decodeLive(live: KubeObject | undefined): Entries {
  try {
    return decodeEntries(live?.metadata.managedFields)
  } catch (err) {
    throw new StatusError('', `failed to decode managed fields: ${(err as Error).message}`)
  }
}

/**
 * Applies `config`. If the manager is `kubectl`, and all conflicts are about fields that client-side apply set and that have not changed
 * since, applies again with force.
 *
 * @throws StatusError Conflict for other conflicts
 */
function* applyOrTakeOver(
  live: KubeObject | undefined,
  current: Typed,
  config: Typed,
  owners: Managers,
  id: string,
  context: ManagedFieldsContext & { force: boolean },
): ReturnType<typeof applyConfig> {
  const versions = versionsOf(context)
  try {
    return yield* applyConfig(current, config, owners, id, versions, context)
  } catch (err) {
    if (!(err instanceof ApplyConflicts)) throw err
    const lastApplied = context.manager === 'kubectl' && live ? unchangedSinceLastApplied(live, current) : undefined
    const conflicts = lastApplied ? err.conflicts.filter((conflict) => !hasPath(lastApplied, conflict.path)) : err.conflicts
    if (conflicts.length === 0) return yield* applyConfig(current, config, owners, id, versions, { force: true })
    throw conflictError(conflicts)
  }
}

function conflictError(conflicts: ApplyConflicts['conflicts']): StatusError {
  const count = conflicts.length === 1 ? '1 conflict' : `${conflicts.length} conflicts`
  return new StatusError('Conflict', `Apply failed with ${count}: ${conflictsText(conflicts, managerText)}`, {
    details: {
      causes: conflicts.map((conflict) => ({
        reason: 'FieldManagerConflict',
        message: `conflict with ${managerText(conflict.manager)}`,
        field: pathText(conflict.path),
      })),
    },
  })
}

function schemaMismatch(
  role: 'patch' | 'live',
  { kind, apiVersion, metadata }: KubeObject,
  problems: readonly string[],
): StatusError {
  const { group, version } = parseApiVersion(apiVersion)
  const objectText = `${metadata.namespace ?? ''}/${(metadata.name as string | undefined) ?? ''}; ${group}/${version}, Kind=${kind}`
  return new StatusError('', `failed to create typed ${role} object (${objectText}): ${problemsText(problems)}`)
}

/**
 * If `next` differs from `live` at most in the times of managedFields, restores the times of `live` in `next` and returns true, which means
 * that no write is needed. Otherwise returns false.
 */
export function keepTimes(live: KubeObject, next: KubeObject): boolean {
  const [before, after] = [live.metadata.managedFields, next.metadata.managedFields]
  if (!sameEntriesButTimes(before, after) || !equal(withoutManagedFields(live), withoutManagedFields(next))) return false
  if (before) next.metadata.managedFields = draft(before)
  return true
}

function sameEntriesButTimes(before: readonly ManagedFieldsEntry[] = [], after: readonly ManagedFieldsEntry[] = []): boolean {
  if (before.length !== after.length) return false
  const withoutTime = ({ manager, operation, apiVersion, subresource = '', fieldsV1 }: ManagedFieldsEntry) => ({
    id: JSON.stringify([operation, manager, apiVersion, subresource]),
    fieldsV1,
  })
  // Entries are sorted by time, so the same entries may have another order.
  const byId = new Map(before.map(withoutTime).map(({ id, fieldsV1 }) => [id, fieldsV1]))
  return after.map(withoutTime).every(({ id, fieldsV1 }) => byId.has(id) && equal(byId.get(id), fieldsV1))
}

/** Returns the object without managedFields. */
function withoutManagedFields(object: KubeObject): KubeObject {
  if (object.metadata?.managedFields === undefined) return object
  const { managedFields: _, ...metadata } = object.metadata
  return { ...object, metadata }
}

type SchemaContext = Pick<ManagedFieldsContext, 'apiVersion' | 'schema'>

const toTyped = (object: KubeObject | undefined, { apiVersion, schema }: SchemaContext): Typed => ({
  apiVersion,
  type: typeOfSchema(schema),
  value: object ? withoutManagedFields(object) : {},
})

function versionsOf({ convert, ignored }: ManagedFieldsContext): Versions {
  return {
    ignored: () => ignored,
    convert(object, apiVersion) {
      const converted = convert?.(object.value as KubeObject, apiVersion)
      return converted && { apiVersion, type: typeOfSchema(converted.schema), value: converted.object }
    },
  }
}

const ownersOf = (entries: Entries): Managers => new Map([...entries].map(([id, { owned }]) => [id, owned]))

/** Updates the entries from `owners`; removes the entries of managers that own no fields. */
function setOwners(entries: Entries, owners: Managers): void {
  for (const [id, entry] of entries) {
    const owned = owners.get(id)
    if (!owned) entries.delete(id)
    else if (owned !== entry.owned) entries.set(id, { ...entry, owned })
  }
}

function* setEntries(object: KubeObject, entries: Entries): Work<void> {
  if (entries.size > 0) object.metadata.managedFields = yield* encodeEntries(entries)
  else delete object.metadata.managedFields
}
