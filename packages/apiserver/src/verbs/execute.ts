/** From a request to its verb: the resource is looked up, what it does not offer is refused, warnings are gathered. */
import { type ApiRequest, type KubeObject, notFound, type ObjectList, type Status, StatusError } from '@capstan/kube'
import type { Answer, Caller, WatchStream } from '../engine.ts'
import { apply } from './apply.ts'
import { bind } from './bind.ts'
import { componentStatuses } from './component-status.ts'
import { connect, isConnection } from './connect.ts'
import { create } from './create.ts'
import { removeCollection } from './delete-collection.ts'
import { remove } from './delete.ts'
import { evict } from './evict.ts'
import { finalize } from './finalize.ts'
import { get } from './get.ts'
import { list } from './list.ts'
import { patch } from './patch.ts'
import type { Call, Plane } from './plane.ts'
import { methodNotAllowed, unknownResource } from './refusal.ts'
import { isReview, review } from './review.ts'
import { applyScale, scale } from './scale.ts'
import { issueToken } from './token.ts'
import { createByUpdate, isCreation, update } from './update.ts'
import { watch } from './watch.ts'

export async function execute(
  plane: Plane,
  request: ApiRequest,
  caller: Caller,
  signal: AbortSignal | undefined,
): Promise<Answer> {
  const call = callOf(plane, request, caller, signal)
  try {
    if (request.patchType === 'application/apply-patch+yaml') {
      checkSubresource(call)
      const { object, created } = await (request.subresource === 'scale' ? applyScale(plane, call) : apply(plane, call))
      return { code: created ? 201 : 200, body: object, warnings: call.warnings }
    }
    if (isCreation(plane, call)) return { code: 201, body: await createByUpdate(plane, call), warnings: call.warnings }
    const body = await answer(plane, call)
    return { code: request.verb === 'create' ? 201 : 200, body, warnings: call.warnings }
  } catch (err) {
    if (err instanceof StatusError) err.warnings = call.warnings
    throw err
  }
}

export function openWatch(plane: Plane, request: ApiRequest, caller: Caller, signal: AbortSignal): WatchStream {
  return watch(plane, callOf(plane, request, caller, signal), signal)
}

async function answer(plane: Plane, call: Call): Promise<KubeObject | ObjectList | Status> {
  const { request } = call
  checkSubresource(call)
  if (isReview(call.definition) && request.subresource === undefined) return review(plane, call)
  if (request.subresource === 'scale') return scale(plane, call)
  if (request.subresource === 'finalize') return finalize(plane, call)
  if (request.subresource === 'eviction') return evict(plane, call)
  if (request.subresource === 'token') return issueToken(plane, call)
  if (isConnection(request.subresource)) return connect(plane, call)
  if (request.subresource === 'binding' || call.definition.storage === 'bindings') return bind(plane, call)
  if (call.definition.storage === 'componentstatuses') return componentStatuses(call)
  switch (request.verb) {
    case 'get':
      return get(plane, call)
    case 'list':
      return list(plane, call)
    case 'create':
      return create(plane, call)
    case 'update':
      return update(plane, call)
    case 'patch':
      return patch(plane, call)
    case 'delete':
      if (request.subresource !== undefined) throw methodNotAllowed()
      return remove(plane, call)
    case 'deletecollection':
      return removeCollection(plane, call)
    case 'watch':
      throw new TypeError('a watch is opened, not executed')
  }
}

function callOf(plane: Plane, request: ApiRequest, caller: Caller, signal: AbortSignal | undefined): Call {
  const definition = plane.registry.find(request.group, request.version, request.plural)
  if (!definition) throw unknownResource()
  if (definition.verbs?.includes(request.verb) === false) throw methodNotAllowed()
  const needsNamespace = definition.namespaced && request.namespace === undefined
  if (needsNamespace && request.verb === 'create') throw methodNotAllowed()
  if (needsNamespace && request.name !== undefined) throw unknownResource()
  const warnings = definition.deprecation === undefined ? [] : [definition.deprecation]
  return { definition, request, options: request.options ?? {}, caller, warnings, signal }
}

/** @throws StatusError NotFound when the resource has no such subresource, MethodNotAllowed when that is not for the verb */
function checkSubresource({ definition, request: { subresource, verb, name } }: Call): void {
  if (subresource === undefined) return
  if (!definition.subresources) {
    if (subresource === 'status' ? definition.statusSubresource : subresource === 'scale' && definition.scale) return
    // Upstream: of a custom resource it is the object that is said not to be there.
    throw notFound(definition, name ?? '')
  }
  const [first] = subresource.split('/')
  const offered = definition.subresources.find(({ name }) => name === (first === 'proxy' ? first : subresource))
  if (!offered) throw unknownResource()
  if (!offered.verbs.includes(verb)) throw methodNotAllowed()
}
