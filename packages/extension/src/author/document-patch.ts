/** Computes the patch between two documents, encoded for responses. Without side effects. */
import type { GeneratePatches, ResponseOf } from '@capstan/api'
import { patchedDocument } from '@capstan/api'
import { diffJson, diffMerge, equal, isRecord, type Json, type JsonObject } from '@capstan/kube'

/** JSONPatch is defined in RFC 6902, JSONMergePatch in RFC 7386. A JSONMergePatch replaces whole lists. */
export type PatchFormat = 'JSONPatch' | 'JSONMergePatch'

/** A patch in a response. */
export type EncodedPatch = Pick<NonNullable<ResponseOf<typeof GeneratePatches>['items']>[number], 'patchType' | 'patch'>

/**
 * Returns a patch that changes `original` to `edited`, in the given format; `undefined` if there is no difference. The same documents
 * always have the same patch.
 *
 * @throws TypeError if `edited` has values that JSON does not have, if the format cannot express the change, or if the patch would contain
 *   an integer up to 2^64 that JavaScript may have rounded
 */
export function patchBetween(original: object, edited: object, format: PatchFormat): EncodedPatch | undefined {
  const problem = notJson(edited, '')
  if (problem !== undefined) throw new TypeError(problem)
  if (equal(original, edited)) return undefined
  if (format === 'JSONPatch')
    return encodePatch(format, diffJson(original as JsonObject, edited as JsonObject) as unknown as Json)
  const patch = diffMerge(original, edited) ?? {}
  const encoded = encodePatch(format, patch)
  // Applies the patch as core does: core removes each member that the patch sets to null, also in objects of lists.
  if (!equal(patchedDocument(original, format, JSON.stringify(patch)) ?? original, edited)) {
    throw new TypeError('a JSONMergePatch can neither set a member to null nor remove a member that is null: use a JSONPatch')
  }
  return encoded
}

const encodePatch = (patchType: PatchFormat, document: Json): EncodedPatch => {
  const text = JSON.stringify(document, (_, value: unknown) => {
    // The integer may have been rounded when it was parsed, for example in a list that the patch repeats. Integers above 2^64
    // are accepted, because no integer field can hold them.
    if (!Number.isInteger(value) || Number.isSafeInteger(value) || Math.abs(value as number) > 2 ** 64) return value
    throw new TypeError(`${String(value)} is an integer that JavaScript may have rounded`)
  })
  return { patchType, patch: Buffer.from(text).toString('base64') }
}

/**
 * Describes the first value that is not JSON, such as a date or NaN; `undefined` if there is none. A member whose value is `undefined`
 * counts as absent.
 */
function notJson(value: unknown, path: string): string | undefined {
  if (value === null || typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value)) return undefined
  if (Array.isArray(value)) return firstOf(Array.from(value, (item, index) => [item, `${path}[${index}]`]))
  if (!isRecord(value) || !isPlain(value)) return `${path || 'the document'} is not JSON: ${nameOf(value)}`
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  return firstOf(members.map(([name, member]) => [member, path === '' ? name : `${path}.${name}`]))
}

function firstOf(values: readonly (readonly [unknown, string])[]): string | undefined {
  for (const [value, path] of values) {
    const problem = notJson(value, path)
    if (problem !== undefined) return problem
  }
  return undefined
}

const isPlain = (value: object): boolean => [Object.prototype, null].includes(Object.getPrototypeOf(value))

function nameOf(value: unknown): string {
  if (typeof value === 'object' && value !== null) return value.constructor.name
  return typeof value === 'number' ? String(value) : typeof value
}
