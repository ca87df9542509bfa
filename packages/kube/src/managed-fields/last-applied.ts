/** Migration from client-side apply to `kubectl apply --server-side`. */
import { byteLength } from '../byte-length.ts'
import { atOnce } from '../clock.ts'
import { readJSON } from '../json-text.ts'
import { draft, isRecord } from '../json.ts'
import type { KubeObject } from '../object.ts'
import { stableText } from '../structural/stable-text.ts'
import { typeProblems } from './check-type.ts'
import { compareTyped, withoutDifferences } from './compare.ts'
import type { FieldSet } from './field-set.ts'
import { fieldsOf } from './fields-of.ts'
import type { Typed } from './updater.ts'

const LastApplied = 'kubectl.kubernetes.io/last-applied-configuration'

/**
 * Returns the fields that client-side apply set and whose values have not changed since. Returns `undefined` when the annotation of
 * client-side apply is missing, invalid or in another version.
 */
export function unchangedSinceLastApplied(live: KubeObject, current: Typed): FieldSet | undefined {
  const text = live.metadata.annotations?.[LastApplied]
  if (!text) return undefined
  let last: unknown
  try {
    last = readJSON(text)
  } catch {
    return undefined
  }
  if (!isRecord(last) || last.apiVersion !== current.apiVersion) return undefined
  const { type } = current
  if (typeProblems(type, last, { allowDuplicates: false }).length > 0) return undefined
  return withoutDifferences(fieldsOf(type, last), atOnce(compareTyped(type, last, current.value)))
}

/**
 * If `result` has the annotation of client-side apply, sets it to `applied`, the object that the client sent, without this annotation.
 * Removes the annotation when all annotations together would be too large. Upstream: the API server does this for server-side apply by the
 * field manager `kubectl`.
 */
export function renewLastApplied(result: KubeObject, applied: KubeObject): void {
  if (!result.metadata.annotations?.[LastApplied]) return
  const configuration = draft(applied)
  delete configuration.metadata.annotations?.[LastApplied]
  result.metadata.annotations[LastApplied] = `${stableText(configuration)}\n`
  let size = 0
  for (const [key, value] of Object.entries(result.metadata.annotations)) size += byteLength(key) + byteLength(value)
  if (size > MaxAnnotations) delete result.metadata.annotations[LastApplied]
}

/** Maximum size of all annotations, in bytes. */
const MaxAnnotations = 256 * 1024
