/**
 * Computes the owners of fields after an update or apply, and the object that results from an apply: the part of server-side apply that
 * does not depend on metadata. Upstream: sigs.k8s.io/structured-merge-diff/v6, merge.Updater.
 */
import { addTo } from '../lists.ts'
import type { Work } from '../clock.ts'
import { equal } from '../json.ts'
import { adaptToType } from './adapt.ts'
import type { Comparison } from './compare.ts'
import { compareTyped, withoutFields } from './compare.ts'
import type { FieldSet, Path } from './field-set.ts'
import { difference, emptySet, intersection, isEmpty, pathsOf, pathText, recursiveDifference, union } from './field-set.ts'
import { fieldsIn, fieldsOf, removeFields, withDeclaredParents } from './fields-of.ts'
import { merging } from './merge.ts'
import type { Type } from './type.ts'

/** An object in one version, with the type of that version. */
export interface Typed {
  readonly apiVersion: string
  readonly type: Type
  readonly value: unknown
}

/** The fields of one manager, in the version in which it set them. */
export interface Owned {
  readonly apiVersion: string
  readonly applied: boolean
  readonly fields: FieldSet
}

/** The fields of each manager, by the key of the manager. */
export type Managers = ReadonlyMap<string, Owned>

/** Properties of the versions of a kind. */
export interface Versions {
  /** Converts an object to another version. For a version that does not exist, returns `undefined` or throws an error. */
  convert(object: Typed, apiVersion: string): Typed | undefined
  /** Fields of a version that are excluded from managedFields. */
  ignored(apiVersion: string): FieldSet | undefined
}

/** A field of another manager that an apply would change. */
export interface FieldConflict {
  readonly manager: string
  readonly path: Path
}

/** Error for an apply that would change fields of other managers. */
export class ApplyConflicts extends Error {
  override readonly name = 'ApplyConflicts'
  readonly conflicts: readonly FieldConflict[]

  constructor(conflicts: readonly FieldConflict[]) {
    super(conflictsText(conflicts, (manager) => JSON.stringify(manager)))
    this.conflicts = conflicts
  }
}

/** Formats conflicts: a single conflict on one line, several as a list for each manager. */
export function conflictsText(conflicts: readonly FieldConflict[], managerText: (manager: string) => string): string {
  const [first, ...others] = conflicts
  if (first && others.length === 0) return `conflict with ${managerText(first.manager)}: ${pathText(first.path)}`
  const byManager = new Map<string, Path[]>()
  for (const { manager, path } of conflicts) addTo(byManager, manager, path)
  return [...byManager.keys()]
    .sort()
    .flatMap((manager) => [
      `conflicts with ${managerText(manager)}:`,
      ...byManager.get(manager)!.map((path) => `- ${pathText(path)}`),
    ])
    .join('\n')
}

/**
 * Returns the owners after `manager` has changed `live` to `next`: the manager also owns the changed and added fields, except ignored
 * fields; all other managers lose these fields, and no manager owns removed fields.
 */
export function* ownersAfterUpdate(
  live: Typed,
  next: Typed,
  managers: Managers,
  manager: string,
  versions: Versions,
): Work<Managers> {
  const before = adaptManagers(live, managers, versions)
  const { owners, comparison } = yield* takeFields(live, next, before, manager, versions, { force: true })
  yield
  const ownedBefore = before.get(manager)?.fields ?? emptySet
  const fields = union(union(difference(ownedBefore, comparison.removed), comparison.modified), comparison.added)
  const tracked = withoutIgnored(fields, versions.ignored(next.apiVersion))
  if (isEmpty(tracked)) owners.delete(manager)
  else owners.set(manager, { apiVersion: next.apiVersion, applied: false, fields: tracked })
  return owners
}

/**
 * Applies `config` as `manager`, and returns the resulting object and owners. The object is `undefined` when the apply does not change it.
 *
 * @throws ApplyConflicts unless forced, when the apply would change fields of other managers
 */
export function* applyConfig(
  live: Typed,
  config: Typed,
  managers: Managers,
  manager: string,
  versions: Versions,
  options: { force: boolean },
): Work<{ object: Typed | undefined; owners: Managers }> {
  const before = adaptManagers(live, managers, versions)
  const merged: Typed = { ...config, value: yield* merging(config.type, live.value, config.value) }
  yield
  const fields = withoutIgnored(yield* fieldsIn(config.type, config.value), versions.ignored(config.apiVersion))
  yield
  const last = before.get(manager)
  const claimed = new Map(before).set(manager, { apiVersion: config.apiVersion, applied: true, fields })
  // A manager that applies all fields of its last apply again, in the same version, removes no fields.
  const mayRemoveFields = last && (last.apiVersion !== config.apiVersion || !isEmpty(difference(last.fields, fields)))
  const next = mayRemoveFields ? prune(merged, claimed, last, config.apiVersion, versions) : merged
  const { owners } = yield* takeFields(live, next, claimed, manager, versions, options)
  yield
  return { object: equal(live.value, next.value) ? undefined : next, owners }
}

const withoutIgnored = (fields: FieldSet, ignored: FieldSet | undefined): FieldSet =>
  ignored === undefined ? fields : recursiveDifference(fields, ignored)

/** Adapts the sets of all managers to the current schemas. Omits managers for whose version `convert` returns `undefined`. */
function adaptManagers(live: Typed, managers: Managers, versions: Versions): Managers {
  const adapted = new Map<string, Owned>()
  for (const [manager, owned] of managers) {
    const object = inVersion(live, owned.apiVersion, versions)
    if (object) adapted.set(manager, { ...owned, fields: adaptToType(object.type, owned.fields) })
  }
  return adapted
}

const inVersion = (object: Typed, apiVersion: string, versions: Versions): Typed | undefined =>
  object.apiVersion === apiVersion ? object : versions.convert(object, apiVersion)

/**
 * Compares `live` with `next`. Returns the comparison, and the owners after all managers except `manager` have lost the fields that differ.
 *
 * @throws ApplyConflicts unless forced, when another manager owns a changed or added field
 */
function* takeFields(
  live: Typed,
  next: Typed,
  managers: Managers,
  manager: string,
  versions: Versions,
  { force }: { force: boolean },
): Work<{ owners: Map<string, Owned>; comparison: Comparison }> {
  const comparison = (yield* comparingIn(next.apiVersion, live, next, versions))!
  const comparisons = new Map<string, Comparison | undefined>([[next.apiVersion, comparison]])
  const owners = new Map<string, Owned>()
  const conflicts: FieldConflict[] = []
  for (const [other, owned] of managers) {
    if (other === manager) {
      if (!isEmpty(owned.fields)) owners.set(other, owned)
      continue
    }
    const { apiVersion } = owned
    if (!comparisons.has(apiVersion)) comparisons.set(apiVersion, yield* comparingIn(apiVersion, live, next, versions))
    const changes = comparisons.get(apiVersion)
    if (!changes) continue
    const lost = intersection(owned.fields, union(changes.modified, changes.added))
    for (const path of pathsOf(lost)) conflicts.push({ manager: other, path })
    const fields = difference(difference(owned.fields, lost), changes.removed)
    if (!isEmpty(fields)) owners.set(other, fields === owned.fields ? owned : { ...owned, fields })
  }
  if (!force && conflicts.length > 0) throw new ApplyConflicts(conflicts)
  return { owners, comparison }
}

/**
 * Compares the objects in a version, except the ignored fields of the version. Returns `undefined` if they cannot be converted to the
 * version.
 */
function* comparingIn(apiVersion: string, live: Typed, next: Typed, versions: Versions): Work<Comparison | undefined> {
  const before = inVersion(live, apiVersion, versions)
  const after = inVersion(next, apiVersion, versions)
  if (!before || !after) return undefined
  return withoutFields(yield* compareTyped(after.type, before.value, after.value), versions.ignored(apiVersion))
}

/** Removes fields that the manager applied last time and does not apply now, and that no other manager owns. */
function prune(merged: Typed, managers: Managers, last: Owned, apiVersion: string, versions: Versions): Typed {
  const before = inVersion(merged, last.apiVersion, versions)
  if (!before) return merged
  const pruned = without(before, withDeclaredParents(before.type, last.fields))
  const withOwned = keepOwned(before, pruned, managers, versions)
  return inVersion(keepOthers(before, withOwned, last, versions), apiVersion, versions) ?? merged
}

const without = (object: Typed, fields: FieldSet): Typed => ({
  ...object,
  value: removeFields(object.type, object.value, fields),
})
const allFields = ({ type, value }: Typed): FieldSet => withDeclaredParents(type, fieldsOf(type, value))

/** Restores fields that any manager owns, in the versions of the managers, beginning with the version of the pruned object. */
function keepOwned(merged: Typed, pruned: Typed, managers: Managers, versions: Versions): Typed {
  const byVersion = new Map<string, FieldSet>()
  const inOrder = [...managers.values()].sort(
    (a, b) => Number(b.apiVersion === pruned.apiVersion) - Number(a.apiVersion === pruned.apiVersion),
  )
  for (const { apiVersion, fields } of inOrder) byVersion.set(apiVersion, union(byVersion.get(apiVersion) ?? emptySet, fields))
  let [original, remaining] = [merged, pruned]
  for (const [apiVersion, owned] of byVersion) {
    const [convertedOriginal, convertedRemaining] = [
      inVersion(original, apiVersion, versions),
      inVersion(remaining, apiVersion, versions),
    ]
    if (!convertedOriginal || !convertedRemaining) continue
    const fieldsToKeep = union(allFields(convertedRemaining), withDeclaredParents(convertedOriginal.type, owned))
    original = convertedOriginal
    remaining = without(original, difference(allFields(original), fieldsToKeep))
  }
  return remaining
}

/** Restores fields that the manager did not own after its last apply, because this apply must not remove them. */
function keepOthers(merged: Typed, pruned: Typed, last: Owned, versions: Versions): Typed {
  const remaining = inVersion(pruned, last.apiVersion, versions)
  if (!remaining) return merged
  const removedFields = difference(allFields(merged), allFields(remaining))
  return without(merged, intersection(removedFields, withDeclaredParents(merged.type, last.fields)))
}
