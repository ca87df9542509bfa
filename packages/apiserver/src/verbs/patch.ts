import {
  applyJsonPatch,
  applyMergePatch,
  applyStrategicPatch,
  badRequest,
  isRecord,
  jsonTypeName,
  type KubeObject,
  parseJsonPatch,
  StatusError,
} from '@capstan/kube'
import { decode } from './decode.ts'
import { modify } from './modify.ts'
import type { Call, Plane } from './plane.ts'

/** PATCH, but for apply: what the patch makes of the object as it is now. */
export function patch(plane: Plane, call: Call): Promise<KubeObject> {
  const change = patcher(call)
  return modify(plane, call, {
    replaces: false,
    apply: (current) => decode(call, change(current) as { [field: string]: unknown }, 'patch', current),
  })
}

/** The patch as a function that gives a draft. @throws StatusError for a patch that cannot be read or is not offered */
export function patcher({ definition, request: { patchType, body } }: Call): (current: object) => object {
  switch (patchType) {
    case 'application/json-patch+json': {
      const operations = parseJsonPatch(body)
      return (current) => {
        const patched: unknown = applyJsonPatch(current, operations)
        if (isRecord(patched)) return patched
        // The whole may be replaced, too, but not by something that is no object.
        throw new StatusError('Invalid', 'the server rejected our request due to an error in our request', { details: {} })
      }
    }
    case 'application/merge-patch+json': {
      // Upstream: what is nothing is no patch, and in no words of the reader's.
      if (body === null) throw badRequest('Invalid JSON Patch')
      const changes = objectOf(body, 'error decoding patch: ')
      return (current) => applyMergePatch(current, changes)
    }
    case 'application/strategic-merge-patch+json': {
      if (!definition.builtin) throw unsupportedPatch(definition.builtin)
      const changes = body === null ? {} : objectOf(body, '')
      return (current) => applyStrategicPatch(current, changes, definition.schema)
    }
    case 'application/apply-patch+yaml':
    case undefined:
    default:
      throw unsupportedPatch(definition.builtin)
  }
}

function objectOf(body: unknown, before: string): Record<string, unknown> {
  if (isRecord(body)) return body
  throw badRequest(`${before}json: cannot unmarshal ${jsonTypeName(body)} into Go value of type map[string]interface {}`)
}

function unsupportedPatch(builtin: boolean): StatusError {
  const types = ['application/json-patch+json', 'application/merge-patch+json', 'application/apply-patch+yaml']
  if (builtin) types.splice(2, 0, 'application/strategic-merge-patch+json')
  return new StatusError(
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${types.join(', ')}`,
  )
}
