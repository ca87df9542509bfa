/** Errors for patches whose result is invalid. */
import { goText, invalid, invalidObject, stableText, type StatusError } from '@capstan/kube'
import type { RequestContext } from '../context.ts'

/** Error for a patch after which metadata has the wrong Go type. */
export const wrongMetadataOf =
  ({ request }: RequestContext, whole: object) =>
  (why: string): StatusError =>
    request.patchType === 'application/strategic-merge-patch+json'
      ? invalidPatch(goText(request.body), converterMessage(why))
      : invalidPatch(stableText(whole), why)

/** Translates a message of Go's JSON decoder to that of its converter of maps to structs. */
function converterMessage(why: string): string {
  const [, found, wanted = ''] = /^json: cannot unmarshal (\S+).* of type (\S+)$/.exec(why) ?? []
  if (found === undefined) return why
  if (wanted.startsWith('[]')) return `cannot restore slice from ${found}`
  if (wanted.startsWith('map[')) return `cannot restore map from ${found}`
  if (wanted.startsWith('v1.')) return `cannot restore struct from: ${found}`
  return found === 'number' ? `cannot convert int64 to ${wanted}` : `unrecognized type: ${wanted}`
}

/** Upstream names neither the kind nor the object here. */
export const invalidPatch = (patch: string, problem: string): StatusError =>
  invalidObject({ group: '', kind: '' }, '', [invalid('patch', patch, problem)])
