import {
  applyingJsonPatch,
  applyingMergePatch,
  applyingStrategicPatch,
  badRequest,
  inPieces,
  isRecord,
  jsonTypeName,
  type KubeObject,
  parseJsonPatch,
  StatusError,
  type UnknownObject,
  type Work,
} from '@capstan/kube'
import { decoding } from './steps/decode.ts'
import { modify } from './modify.ts'
import type { RequestContext, ServerContext } from './context.ts'

/** Executes a PATCH other than an apply: applies the patch to the current object. */
export function patch(server: ServerContext, context: RequestContext): Promise<KubeObject> {
  const change = patcher(context)
  return modify(server, context, {
    replaces: false,
    apply: (current) => inPieces(server.clock, changing(context, change, current)),
  })
}

function* changing(
  context: RequestContext,
  change: (current: object) => Work<object>,
  current: UnknownObject,
): Work<UnknownObject> {
  return yield* decoding(context, (yield* change(current)) as { [field: string]: unknown }, 'patch', current)
}

/**
 * Returns a function that applies the patch and returns a draft. @throws StatusError for a patch that cannot be decoded or is not supported
 */
export function patcher({ info, request: { patchType, body } }: RequestContext): (current: object) => Work<object> {
  switch (patchType) {
    case 'application/json-patch+json': {
      const operations = parseJsonPatch(body)
      return (current) => applyingOperations(current, operations)
    }
    case 'application/merge-patch+json': {
      // Upstream: the message for a patch that is `null` differs from that for other wrong types.
      if (body === null) throw badRequest('Invalid JSON Patch')
      const changes = objectOf(body, 'error decoding patch: ')
      return (current) => applyingMergePatch(current, changes)
    }
    case 'application/strategic-merge-patch+json': {
      if (!info.builtin) throw unsupportedPatch(info.builtin)
      const changes = body === null ? {} : objectOf(body, '')
      return (current) => applyingStrategicPatch(current, changes, info.schema)
    }
    case 'application/apply-patch+yaml':
    case undefined:
    default:
      throw unsupportedPatch(info.builtin)
  }
}

function* applyingOperations(current: object, operations: ReturnType<typeof parseJsonPatch>): Work<object> {
  const patched: unknown = yield* applyingJsonPatch(current, operations)
  if (isRecord(patched)) return patched
  // A patch may replace the whole document, but the result must be an object.
  throw new StatusError('Invalid', 'the server rejected our request due to an error in our request', { details: {} })
}

function objectOf(body: unknown, errorPrefix: string): Record<string, unknown> {
  if (isRecord(body)) return body
  throw badRequest(`${errorPrefix}json: cannot unmarshal ${jsonTypeName(body)} into Go value of type map[string]interface {}`)
}

function unsupportedPatch(builtin: boolean): StatusError {
  const types = ['application/json-patch+json', 'application/merge-patch+json', 'application/apply-patch+yaml']
  if (builtin) types.splice(2, 0, 'application/strategic-merge-patch+json')
  return new StatusError(
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${types.join(', ')}`,
  )
}
