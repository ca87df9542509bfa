/** Server-side apply. Upstream: applyPatcher in apiserver pkg/endpoints/handlers/patch.go, v0.36. */
import {
  applying,
  badRequest,
  conflict,
  draft,
  drafting,
  inPieces,
  invalidObject,
  isReason,
  isRecord,
  type KubeObject,
  notFound,
  parseApiVersion,
  pauseIfDue,
  checkFitsSchema,
  required,
  type UnknownObject,
  type Work,
} from '@capstan/kube'
import { authorize } from '../auth/authorizer.ts'
import { attributesOf } from '../auth/request-attributes.ts'
import { createDecoded } from './create.ts'
import { decoding, draftOf } from './steps/decode.ts'
import { withConversions } from './steps/managed-fields.ts'
import { coerceMetadata } from './steps/metadata.ts'
import { modify } from './modify.ts'
import { type RequestContext, keyFor, type ServerContext } from './context.ts'

/**
 * Applies the fields of the request to the stored object, or creates the object if it does not exist. @throws StatusError NotFound for a
 * subresource of an object that does not exist
 */
export async function apply(server: ServerContext, context: RequestContext): Promise<{ object: KubeObject; created: boolean }> {
  const { info, request, options } = context
  if (!options.fieldManager) {
    throw invalidObject({ group: 'meta.k8s.io', kind: 'PatchOptions' }, '', [
      required('fieldManager', 'is required for apply patch'),
    ])
  }
  const applied = readApplied(context)
  const pause = pauseIfDue(server.clock)
  if (pause) await pause
  const force = options.force === true
  const applyTo = (current: UnknownObject | undefined, applied: UnknownObject) =>
    withConversions(server, context, (context) => applyingDraft(current, applied, { ...context, force }))
  // `applyTo` has already updated managedFields.
  const keepManagedFields = (object: UnknownObject) => object

  for (;;) {
    const key = keyFor(info, request.namespace, request.name!)
    if (server.store.get(key)) {
      const object = await modify(server, context, {
        replaces: false,
        apply: async (current) =>
          inPieces(server.clock, decoding(context, { ...(await applyTo(current, applied)) }, 'apply', current)),
        track: keepManagedFields,
      })
      return { object, created: false }
    }
    if (request.subresource !== undefined) throw objectNotFound(context)
    if (!applied.metadata.name) {
      throw badRequest(`the name of the object (${request.name!} based on URL) was undeterminable: name must be provided`)
    }
    if (applied.metadata.uid !== undefined) throw uidConflict(context, applied)
    // So far, only the verb patch has been authorized. Creating the object needs the permission to create, too.
    authorize(server.authorizer, attributesOf(context.caller, { ...request, verb: 'create' }))
    const { resourceVersion: _, ...metadata } = applied.metadata
    const newObject = { ...applied, metadata: metadata as KubeObject['metadata'] }
    const object = await inPieces(server.clock, decoding(context, { ...(await applyTo(undefined, newObject)) }, 'apply'))
    try {
      return { object: await createDecoded(server, context, object, keepManagedFields), created: true }
    } catch (err) {
      // Another client has created the object meanwhile: the next iteration applies to that object.
      if (!isReason(err, 'AlreadyExists')) throw err
    }
  }
}

function* applyingDraft(
  current: UnknownObject | undefined,
  applied: UnknownObject,
  context: Parameters<typeof applying>[2],
): Work<KubeObject> {
  return yield* applying(current, yield* drafting(applied), context)
}

/** Returns the body, after checks of its type, metadata, name and namespace. @throws StatusError */
function readApplied(context: RequestContext): UnknownObject {
  const { info, request } = context
  const sent: unknown = request.body
  // Only the metadata is copied, because the rest of the body is not changed here.
  const body = isRecord(sent) ? { ...sent, metadata: draft(sent.metadata) } : draftOf(info, sent)
  const apiVersion = typeof body.apiVersion === 'string' ? body.apiVersion : ''
  const kind = typeof body.kind === 'string' ? body.kind : ''
  const { group, version } = parseApiVersion(apiVersion)
  if (kind !== info.kind || group !== info.group) {
    throw badRequest(`invalid object type: ${group}/${version}, Kind=${kind}`)
  }
  const managed = (body.metadata as { managedFields?: unknown } | undefined)?.managedFields
  if (managed !== undefined && managed !== null) throw badRequest('metadata.managedFields must be nil')
  // `coerceMetadata` drops unknown metadata fields, and throws the error of `wrongType` for a field of the wrong type. Upstream reports both
  // as a mismatch of the whole object with its schema, so `checkFitsSchema` first throws that error.
  const checkSchema = () => checkFitsSchema(request.body as KubeObject, info)
  const wrongType = (problem: string) => {
    checkSchema()
    return badRequest(problem)
  }
  const unknown = coerceMetadata(info, body, wrongType, { keepsEmpty: true })
  if (unknown.length > 0) checkSchema()
  const object = body as UnknownObject
  const { metadata } = object
  // The name may be omitted.
  if (metadata.name && metadata.name !== request.name) {
    throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${request.name!})`)
  }
  if (info.namespaced && metadata.namespace !== undefined && metadata.namespace !== request.namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
  }
  return object
}

/** Error for an apply with a uid when the object does not exist. */
const uidConflict = ({ info }: RequestContext, { metadata: { name, uid } }: UnknownObject) =>
  conflict(info, name, `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`)

const objectNotFound = ({ info, request }: RequestContext) => notFound(info, request.name!)
