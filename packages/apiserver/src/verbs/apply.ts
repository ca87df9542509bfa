/** Server-side apply. Upstream: applyPatcher in apiserver pkg/endpoints/handlers/patch.go, v0.36. */
import {
  applyPatch,
  badRequest,
  conflict,
  draft,
  invalidObject,
  isReason,
  type KubeObject,
  notFound,
  parseApiVersion,
  refuseUntypable,
  required,
  type UnknownObject,
} from '@capstan/kube'
import { authorize } from '../auth/authorizer.ts'
import { attributesOf } from '../auth/request-attributes.ts'
import { createDecoded } from './create.ts'
import { decode, draftOf } from './decode.ts'
import { withConversions } from './managed-fields.ts'
import { coerceMetadata } from './metadata.ts'
import { modify } from './modify.ts'
import { type Call, keyFor, type Plane } from './plane.ts'

/** Creates the object, or brings the fields that the applier owns to what it now says. */
export async function apply(plane: Plane, call: Call): Promise<{ object: KubeObject; created: boolean }> {
  const { definition, request, options } = call
  if (!options.fieldManager) {
    throw invalidObject({ group: 'meta.k8s.io', kind: 'PatchOptions' }, '', [
      required('fieldManager', 'is required for apply patch'),
    ])
  }
  const applied = readApplied(call)
  const force = options.force === true
  const patchOf = (current: UnknownObject | undefined, wanted: UnknownObject) =>
    withConversions(plane, call, (context) => ({ ...applyPatch(current, draft(wanted), { ...context, force }) }))
  const asIs = (object: UnknownObject) => object

  for (;;) {
    const key = keyFor(definition, request.namespace, request.name!)
    if (plane.store.get(key)) {
      const object = await modify(plane, call, {
        replaces: false,
        // What was applied has been checked more strictly than field validation would.
        apply: async (current) => decode(call, await patchOf(current, applied), 'apply', current),
        track: asIs,
      })
      return { object, created: false }
    }
    if (request.subresource !== undefined) throw notThere(call)
    if (!applied.metadata.name) {
      throw badRequest(`the name of the object (${request.name!} based on URL) was undeterminable: name must be provided`)
    }
    if (applied.metadata.uid !== undefined) throw otherUid(call, applied)
    // Whoever may only patch makes nothing new.
    authorize(plane.authorizer, attributesOf(call.caller, { ...request, verb: 'create' }))
    const fresh = draft(applied)
    delete (fresh.metadata as Partial<KubeObject['metadata']>).resourceVersion
    const object = decode(call, await patchOf(undefined, fresh), 'apply')
    try {
      return { object: await createDecoded(plane, call, object, asIs), created: true }
    } catch (err) {
      // Somebody else has created it meanwhile: it is applied to what they made.
      if (!isReason(err, 'AlreadyExists')) throw err
    }
  }
}

/** The body, its type and place checked. @throws StatusError BadRequest */
function readApplied(call: Call): UnknownObject {
  const { definition, request } = call
  const body = draftOf(definition, request.body)
  const apiVersion = typeof body.apiVersion === 'string' ? body.apiVersion : ''
  const kind = typeof body.kind === 'string' ? body.kind : ''
  const { group, version } = parseApiVersion(apiVersion)
  if (kind !== definition.kind || group !== definition.group) {
    throw badRequest(`invalid object type: ${group}/${version}, Kind=${kind}`)
  }
  const managed = (body.metadata as { managedFields?: unknown } | undefined)?.managedFields
  if (managed !== undefined && managed !== null) throw badRequest('metadata.managedFields must be nil')
  // What metadata does not have, or has of another type, would be gone by the time the whole is looked at.
  const refuse = () => refuseUntypable(request.body as KubeObject, definition)
  const unknown = coerceMetadata(definition, body, (why) => {
    refuse()
    return badRequest(why)
  })
  if (unknown.length > 0) refuse()
  const object = body as UnknownObject
  const { metadata } = object
  // Whoever applies to what is there need not name it once more.
  if (metadata.name && metadata.name !== request.name) {
    throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${request.name!})`)
  }
  if (definition.namespaced && metadata.namespace !== undefined && metadata.namespace !== request.namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
  }
  return object
}

/** A uid says which object is meant; there is none, so it cannot be that one. */
const otherUid = ({ definition }: Call, { metadata: { name, uid } }: UnknownObject) =>
  conflict(definition, name, `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`)

const notThere = ({ definition, request }: Call) => notFound(definition, request.name!)
