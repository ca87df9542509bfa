/**
 * Normalizes requests, so that requests of different runs can be compared. Replaces random values and times, and removes
 * `controlPlaneEndpoint` and most fields of metadata, which may differ between runs.
 */
import { isRecord, setMember } from '@capstan/kube'

/** Normalizes a value of a request: two requests are considered equal when the results are equal as JSON. */
export function normalizeValue(value: unknown): unknown {
  if (typeof value === 'string') return normalizeText(value)
  if (Array.isArray(value)) return value.map(normalizeValue)
  if (!isRecord(value)) return value
  const normalized: Record<string, unknown> = {}
  for (const key of Object.keys(value).sort()) {
    if (key === 'controlPlaneEndpoint' || value[key] === undefined) continue
    setMember(normalized, key, key === 'metadata' ? normalizeMetadata(value[key]) : normalizeValue(value[key]))
  }
  return normalized
}

function normalizeMetadata(metadata: unknown): unknown {
  if (!isRecord(metadata)) return normalizeValue(metadata)
  const { name, namespace, labels, annotations } = metadata
  return normalizeValue({ name, namespace, labels, annotations })
}

/** Replaces UUIDs, times and suffixes of generated names by placeholders. */
const normalizeText = (text: string): string =>
  text
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi, '<uid>')
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)/g, '<time>')
    .replace(/(?:-[bcdfghjklmnpqrstvwxz2456789]{5})+\b/g, '-<suffix>')

/**
 * Maps strings of the request `from` to the strings at the same places of the request `to`, where they differ only in UUIDs, times or
 * suffixes of generated names. With these replacements, `replaceValues` turns a response to `from` into a response to `to`.
 */
export function valueMapping(from: unknown, to: unknown, replacements = new Map<string, string>()): ReadonlyMap<string, string> {
  if (typeof from === 'string' && typeof to === 'string') {
    if (from !== to && normalizeText(from) === normalizeText(to)) replacements.set(from, to)
  } else if (Array.isArray(from) && Array.isArray(to)) {
    for (const [index, item] of from.entries()) valueMapping(item, to[index], replacements)
  } else if (isRecord(from) && isRecord(to)) {
    for (const key of Object.keys(from)) valueMapping(from[key], to[key], replacements)
  }
  return replacements
}

/** Replaces each string value that is a key of `replacements`, at any depth. Names of fields stay. */
export function replaceValues(value: unknown, replacements: ReadonlyMap<string, string>): unknown {
  if (typeof value === 'string') return replacements.get(value) ?? value
  if (Array.isArray(value)) return value.map((item) => replaceValues(item, replacements))
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, replaceValues(one, replacements)]))
}
