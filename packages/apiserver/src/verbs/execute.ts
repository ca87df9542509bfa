/** Executes a request: looks up the resource, rejects unsupported verbs, calls the verb, and collects warnings. */
import { type ApiRequest, type KubeObject, notFound, type ObjectList, type Status, StatusError } from '@capstan/kube'
import type { ApiResponse, WatchStream } from './engine.ts'
import type { Caller } from '../auth/user.ts'
import { apply } from './apply.ts'
import { create } from './create.ts'
import { removeCollection } from './delete-collection.ts'
import { remove } from './delete.ts'
import { get } from './get.ts'
import { list } from './list.ts'
import { patch } from './patch.ts'
import type { RequestContext, ServerContext } from './context.ts'
import { methodNotAllowed, unknownResource } from './errors.ts'
import { applyScale, scale } from './subresources/scale.ts'
import { createByUpdate, isCreation, update } from './update.ts'
import { watch } from './watch.ts'

/**
 * Executes every verb but watch. `ended` returns a signal that aborts when no client waits for the response any more.
 * @throws StatusError
 */
export async function execute(
  server: ServerContext,
  request: ApiRequest,
  caller: Caller,
  ended?: () => AbortSignal,
): Promise<ApiResponse> {
  const context = contextOf(server, request, caller, ended)
  try {
    if (request.patchType === 'application/apply-patch+yaml') {
      checkSubresource(context)
      const { object, created } = await (request.subresource === 'scale' ? applyScale(server, context) : apply(server, context))
      return { code: created ? 201 : 200, body: object, warnings: context.warnings }
    }
    if (isCreation(server, context)) return { code: 201, body: await createByUpdate(server, context), warnings: context.warnings }
    const body = await callVerb(server, context)
    return { code: request.verb === 'create' ? 201 : 200, body, warnings: context.warnings }
  } catch (err) {
    if (err instanceof StatusError) err.warnings = context.warnings
    throw err
  }
}

/** Opens a watch. Aborting `signal` ends the watch. @throws StatusError when the watch is rejected */
export function openWatch(server: ServerContext, request: ApiRequest, caller: Caller, signal: AbortSignal): WatchStream {
  return watch(
    server,
    contextOf(server, request, caller, () => signal),
    signal,
  )
}

async function callVerb(server: ServerContext, context: RequestContext): Promise<KubeObject | ObjectList | Status> {
  const { request } = context
  checkSubresource(context)
  if (request.subresource === 'scale') return scale(server, context)
  const handler = server.handlerFor(context)
  if (handler) return handler(server, context)
  switch (request.verb) {
    case 'get':
      return get(server, context)
    case 'list':
      return list(server, context)
    case 'create':
      return create(server, context)
    case 'update':
      return update(server, context)
    case 'patch':
      return patch(server, context)
    case 'delete':
      if (request.subresource !== undefined) throw methodNotAllowed()
      return remove(server, context)
    case 'deletecollection':
      return removeCollection(server, context)
    case 'watch':
      throw new TypeError('a watch is opened, not executed')
  }
}

function contextOf(server: ServerContext, request: ApiRequest, caller: Caller, ended?: () => AbortSignal): RequestContext {
  const info = server.registry.find(request.group, request.version, request.plural)
  if (!info) throw unknownResource()
  if (info.verbs?.includes(request.verb) === false) throw methodNotAllowed()
  const needsNamespace = info.namespaced && request.namespace === undefined
  if (needsNamespace && request.verb === 'create') throw methodNotAllowed()
  if (needsNamespace && request.name !== undefined) throw unknownResource()
  const warnings = info.deprecation === undefined ? [] : [info.deprecation]
  return { info, request, options: request.options ?? {}, caller, warnings, ended }
}

/**
 * Checks that the subresource exists, and for a built-in kind also that it supports the verb. @throws StatusError NotFound for an unknown
 * subresource, MethodNotAllowed for an unsupported verb
 */
function checkSubresource({ info, request: { subresource, verb, name } }: RequestContext): void {
  if (subresource === undefined) return
  if (!info.subresources) {
    if (subresource === 'status' && info.statusSubresource) return
    if (subresource === 'scale' && info.scale) return
    // Upstream: for an unknown subresource of a custom resource, the message names the object.
    throw notFound(info, name ?? '')
  }
  // After `proxy`, a path may follow.
  const [first] = subresource.split('/')
  const supported = info.subresources.find(({ name }) => name === (first === 'proxy' ? first : subresource))
  if (!supported) throw unknownResource()
  if (!supported.verbs.includes(verb)) throw methodNotAllowed()
}
