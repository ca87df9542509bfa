import { draft, type KubeObject } from '@capstan/kube'
import { authorize } from '../auth/authorizer.ts'
import { attributesOf } from '../auth/request-attributes.ts'
import { createDecoded } from './create.ts'
import { decode, draftOf } from './decode.ts'
import { trackFields } from './managed-fields.ts'
import { modify, otherUid } from './modify.ts'
import { type Call, isThere, type Plane } from './plane.ts'

/** PUT: the object becomes what the client sent. */
export function update(plane: Plane, call: Call): Promise<KubeObject> {
  const body = draftOf(call.definition, call.request.body)
  // Upstream: what was sent is read before what is there.
  if (!isThere(plane, call)) decode(call, draft(body), 'body')
  return modify(plane, call, {
    replaces: true,
    apply: (current) => decode(call, draft(body), 'body', current),
  })
}

/** Whether a PUT is of something that is not there, and of a kind that comes to be that way. Upstream: AllowCreateOnUpdate. */
export const isCreation = (plane: Plane, call: Call): boolean =>
  call.request.verb === 'update' &&
  call.request.subresource === undefined &&
  call.definition.createsOnUpdate &&
  !isThere(plane, call)

/** A PUT that creates. Whoever sends it must be allowed both; the resourceVersion that it may carry is that of nothing. */
export function createByUpdate(plane: Plane, call: Call): Promise<KubeObject> {
  const { definition, request, caller } = call
  const object = decode(call, draftOf(definition, request.body), 'body')
  const { name, namespace, uid } = object.metadata
  if (uid !== undefined) throw otherUid(call, { name, ...(namespace === undefined ? {} : { namespace }) }, uid)
  const creation = { ...request, verb: 'create' as const }
  authorize(plane.authorizer, attributesOf(caller, creation))
  delete (object.metadata as Partial<KubeObject['metadata']>).resourceVersion
  return createDecoded(plane, { ...call, request: creation }, object, (fresh) => trackFields(plane, call, fresh, undefined))
}
