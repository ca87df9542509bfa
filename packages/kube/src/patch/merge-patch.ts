/** JSON Merge Patch, RFC 7396: members replace members, null removes, lists are replaced whole. */
import type { JsonObject } from '../json.ts'
import { draft, equal, getMember, isRecord, setMember } from '../json.ts'

/** Applies the patch. Neither argument changes. */
export function applyMergePatch<T>(document: T, patch: unknown): T {
  return merge(document, patch) as T
}

function merge(target: unknown, patch: unknown): unknown {
  // Upstream removes nulls also inside of lists, except in a value that replaces an object.
  if (!isRecord(patch)) return isRecord(target) ? draft(patch) : withoutNulls(patch)
  const base = isRecord(target) ? target : {}
  const result: Record<string, unknown> = {}
  for (const key of Object.keys(base)) {
    const change = getMember(patch, key)
    if (change === undefined) setMember(result, key, draft(base[key]))
    else if (change !== null) setMember(result, key, merge(base[key], change))
  }
  for (const key of Object.keys(patch)) {
    const change = patch[key]
    if (!Object.hasOwn(base, key) && change !== null && change !== undefined) setMember(result, key, merge(undefined, change))
  }
  return result
}

/** Returns a copy without null members. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (!isRecord(value)) return draft(value)
  const result: Record<string, unknown> = {}
  for (const key of Object.keys(value)) if (value[key] !== null) setMember(result, key, withoutNulls(value[key]))
  return result
}

/**
 * Returns the patch that changes `from` to `to`, or `undefined` when they are equal. Null members of `to` cannot be expressed: null in a
 * merge patch removes a member.
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
