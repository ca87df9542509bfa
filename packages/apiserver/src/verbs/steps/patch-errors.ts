/** Errors for patches whose result is invalid. */
import { goText, invalid, invalidObject, stableText, type StatusError } from '@capstan/kube'
import type { RequestContext } from '../context.ts'

/**
 * Returns a function that turns the message of Go's JSON decoder into the error for a patch after which a field of metadata has the wrong Go
 * type. `object` is the result of the patch.
 */
export const wrongMetadataOf =
  ({ request }: RequestContext, object: object) =>
  (problem: string): StatusError =>
    request.patchType === 'application/strategic-merge-patch+json'
      ? invalidPatch(goText(request.body), converterMessage(problem))
      : invalidPatch(stableText(object), problem)

/**
 * Translates a message of Go's JSON decoder. Upstream decodes the result of a strategic merge patch with a converter from maps to structs,
 * which has other messages.
 */
function converterMessage(problem: string): string {
  const [, jsonType, goType = ''] = /^json: cannot unmarshal (\S+).* of type (\S+)$/.exec(problem) ?? []
  if (jsonType === undefined) return problem
  if (goType.startsWith('[]')) return `cannot restore slice from ${jsonType}`
  if (goType.startsWith('map[')) return `cannot restore map from ${jsonType}`
  if (goType.startsWith('v1.')) return `cannot restore struct from: ${jsonType}`
  return jsonType === 'number' ? `cannot convert int64 to ${goType}` : `unrecognized type: ${goType}`
}

/**
 * Error for a patch with an invalid result. It quotes `invalidText`: the patch, or its result. Upstream names neither the kind nor the object.
 */
export const invalidPatch = (invalidText: string, problem: string): StatusError =>
  invalidObject({ group: '', kind: '' }, '', [invalid('patch', invalidText, problem)])
