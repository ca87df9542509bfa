/** JSON Merge Patch, RFC 7396: objects are merged member by member, null removes a member, lists and other values are replaced. */
import { after, asWork, atOnce, each, type RemainingWork, type Work } from '../clock.ts'
import type { JsonObject } from '../json.ts'
import { draft, equal, getMember, isRecord, setMember } from '../json.ts'

/** Applies the patch. Neither argument changes. */
export const applyMergePatch = <T>(document: T, patch: unknown): T => atOnce(applyingMergePatch(document, patch))

/** Like `applyMergePatch`, as long work that yields between its pieces. */
export function applyingMergePatch<T>(document: T, patch: unknown): Work<T> {
  const result: Record<string, unknown> = {}
  return asWork(
    () => merge(result, 'document', document, patch),
    () => result.document as T,
  )
}

/** Merges `patch` into a copy of `target`, and sets the member `name` of `to` to the result. */
function merge(to: Record<string, unknown>, name: string, target: unknown, patch: unknown): RemainingWork {
  // As upstream, but unlike the RFC: objects in a list of the patch lose their null members, unless the list replaces an object.
  const merged: unknown = isRecord(patch) ? {} : isRecord(target) ? draft(patch) : withoutNulls(patch)
  setMember(to, name, merged)
  return isRecord(patch) ? mergeMembers(merged as Record<string, unknown>, isRecord(target) ? target : {}, patch) : undefined
}

function mergeMembers(
  result: Record<string, unknown>,
  base: Readonly<Record<string, unknown>>,
  patch: Readonly<Record<string, unknown>>,
): RemainingWork {
  const existing = each(Object.keys(base), (key) => {
    const change = getMember(patch, key)
    if (change !== undefined && change !== null) return merge(result, key, base[key], change)
    if (change === undefined) setMember(result, key, draft(base[key]))
    return undefined
  })
  const isNew = (key: string) => !Object.hasOwn(base, key) && patch[key] !== null && patch[key] !== undefined
  return after(existing, () =>
    each(Object.keys(patch), (key) => (isNew(key) ? merge(result, key, undefined, patch[key]) : undefined)),
  )
}

/** Returns a copy whose objects have no null members. Null items of lists stay. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (!isRecord(value)) return draft(value)
  const result: Record<string, unknown> = {}
  for (const key of Object.keys(value)) if (value[key] !== null) setMember(result, key, withoutNulls(value[key]))
  return result
}

/**
 * Returns the patch that changes `from` to `to`, or `undefined` when they are equal; a null member outside of lists counts as absent. Null
 * members of `to` cannot be expressed: null in a merge patch removes a member.
 */
export function diffMerge(from: object, to: object): JsonObject | undefined {
  return difference(from as Record<string, unknown>, to as Record<string, unknown>) as JsonObject | undefined
}

function difference(from: Record<string, unknown>, to: Record<string, unknown>): Record<string, unknown> | undefined {
  const patch: Record<string, unknown> = {}
  for (const key of Object.keys(from)) {
    if (from[key] !== undefined && from[key] !== null && (getMember(to, key) ?? null) === null) setMember(patch, key, null)
  }
  for (const key of Object.keys(to)) {
    const [before, after] = [getMember(from, key), to[key]]
    if (after === undefined || after === null || equal(before, after)) continue
    const change = isRecord(before) && isRecord(after) ? difference(before, after) : draft(after)
    if (change !== undefined) setMember(patch, key, change)
  }
  return Object.keys(patch).length === 0 ? undefined : patch
}
