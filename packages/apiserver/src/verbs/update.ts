import { inPieces, type KubeObject } from '@capstan/kube'
import { authorize } from '../auth/authorizer.ts'
import { attributesOf } from '../auth/request-attributes.ts'
import { createDecoded } from './create.ts'
import { decodingBody } from './steps/decode.ts'
import { trackFields } from './steps/managed-fields.ts'
import { modify, uidConflict } from './modify.ts'
import { type RequestContext, exists, type ServerContext } from './context.ts'

/** Executes a PUT: replaces the object. */
export async function update(server: ServerContext, context: RequestContext): Promise<KubeObject> {
  // Upstream decodes the body before it looks up the object: an error in the body takes precedence over NotFound.
  if (!exists(server, context)) await inPieces(server.clock, decodingBody(context))
  return modify(server, context, {
    replaces: true,
    apply: (current) => inPieces(server.clock, decodingBody(context, current)),
  })
}

/**
 * Reports whether the request is a PUT that creates the object: the object does not exist, and its kind allows creation by PUT. Upstream:
 * AllowCreateOnUpdate.
 */
export const isCreation = (server: ServerContext, context: RequestContext): boolean =>
  context.request.verb === 'update' &&
  context.request.subresource === undefined &&
  context.info.strategy.createsOnUpdate === true &&
  !exists(server, context)

/**
 * Creates an object by PUT. The request is already authorized for update, and needs the permission to create, too. A resourceVersion in the
 * body is ignored. @throws StatusError Forbidden without the permission, Conflict for a uid in the body
 */
export async function createByUpdate(server: ServerContext, context: RequestContext): Promise<KubeObject> {
  const { request, caller } = context
  const object = await inPieces(server.clock, decodingBody(context))
  const { name, namespace, uid } = object.metadata
  if (uid !== undefined) throw uidConflict(context, { name, ...(namespace === undefined ? {} : { namespace }) }, uid)
  const creation = { ...request, verb: 'create' as const }
  authorize(server.authorizer, attributesOf(caller, creation))
  delete (object.metadata as Partial<KubeObject['metadata']>).resourceVersion
  return createDecoded(server, { ...context, request: creation }, object, (newObject) =>
    trackFields(server, context, newObject, undefined),
  )
}
