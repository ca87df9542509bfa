/** Calls webhooks and policies for a write, and decodes the objects that mutating webhooks have patched. */
import { inPieces, isRecord, messageOf, type UnknownObject, type Work } from '@capstan/kube'
import { type GroupVersionKind, internalError } from '../../admission/review.ts'
import type { Write } from '../../admission/webhooks.ts'
import { setNamespaceAndCheckKey } from './decode.ts'
import { coerceMetadata } from './metadata.ts'
import type { RequestContext, ServerContext } from '../context.ts'

type Operation = 'CREATE' | 'UPDATE' | 'DELETE'

/** Conversion between an object and the object that webhooks receive for its subresource, for example a Scale. */
export interface AdmissionView {
  readonly kind: GroupVersionKind
  fromObject(object: UnknownObject): UnknownObject
  /** Changes `object`, a draft, to match the view that webhooks have patched. */
  applyTo(object: UnknownObject, view: UnknownObject): void
}

/**
 * Calls mutating webhooks. With a view, applies their patches to `object`.
 * @returns the draft to continue with: a new object when a webhook changed the object without a view, otherwise `object`
 * @throws StatusError for example when a webhook denies the request, or when a failure is not ignored (failurePolicy)
 */
export async function mutateWebhooks(
  { webhooks, clock }: ServerContext,
  context: RequestContext,
  operation: Operation,
  object: UnknownObject,
  old: UnknownObject | undefined,
  view?: AdmissionView,
): Promise<UnknownObject> {
  if (context.isInternal || !webhooks.mayApplyTo(context.info, 'mutating')) return object
  const write = writeOf(context, operation, object, old, view)
  if (!view)
    return (await webhooks.mutate(write, (document) => inPieces(clock, decodingMutated(context, document, old)))) ?? object
  const mutated = await webhooks.mutate(write, (document) => document as UnknownObject)
  if (mutated) view.applyTo(object, mutated)
  return object
}

/**
 * Calls validating policies and webhooks. @throws StatusError for example when one of them denies the request, or when a failure is not
 * ignored (failurePolicy)
 */
export async function validateWebhooks(
  { webhooks, policies }: ServerContext,
  context: RequestContext,
  operation: Operation,
  object: UnknownObject | undefined,
  old: UnknownObject | undefined,
  view?: AdmissionView,
): Promise<void> {
  if (context.isInternal) return
  const hasPolicies = policies.mayApplyTo(context.info)
  const hasWebhooks = webhooks.mayApplyTo(context.info, 'validating')
  if (!hasPolicies && !hasWebhooks) return
  const write = writeOf(context, operation, object, old, view)
  if (hasPolicies) await policies.validate(write)
  if (hasWebhooks) await webhooks.validate(write)
}

/** Calls webhooks and policies for a deletion. As upstream, mutating webhooks are called, too, but can only deny the deletion. */
export async function callDeletionWebhooks(server: ServerContext, context: RequestContext, old: UnknownObject): Promise<void> {
  if (server.webhooks.mayApplyTo(context.info, 'mutating')) {
    await server.webhooks.mutate(writeOf(context, 'DELETE', undefined, old), (document) => document as UnknownObject)
  }
  await validateWebhooks(server, context, 'DELETE', undefined, old)
}

/** Decodes an object that a mutating webhook has patched. @throws StatusError */
function* decodingMutated(
  context: RequestContext,
  document: Record<string, unknown>,
  old: UnknownObject | undefined,
): Work<UnknownObject> {
  const { info } = context
  const { apiVersion, kind, structural } = info
  if (document.apiVersion !== apiVersion || document.kind !== kind) {
    throw internalError(`admission webhooks cannot change the type of an object, which is ${apiVersion} ${kind}`)
  }
  try {
    coerceMetadata(info, document)
  } catch (err) {
    throw internalError(messageOf(err))
  }
  const object = document as UnknownObject
  const { goType } = info
  if (goType) {
    const problem = yield* goType.jsonProblem(object)
    if (problem !== undefined) throw internalError(problem)
    yield* goType.readNulls(object)
  }
  yield* structural.pruning(object)
  yield* structural.droppingNulls(object)
  yield* structural.defaulting(object)
  info.strategy.default?.(object, old)
  setNamespaceAndCheckKey(context, object)
  return object
}

function writeOf(
  { info, request, options, caller, warnings, ended }: RequestContext,
  operation: Operation,
  object: UnknownObject | undefined,
  old: UnknownObject | undefined,
  view?: AdmissionView,
): Write {
  const { group, version, plural, namespaced } = info
  const { metadata } = (object ?? old)!
  // Upstream: a deletion of a collection has no name.
  const name = request.name ?? (operation === 'DELETE' ? '' : (metadata.name ?? ''))
  const isNamespace = plural === 'namespaces' && group === ''
  return {
    info,
    target: {
      operation,
      group,
      version,
      plural,
      subresource: request.subresource,
      namespace: namespaced ? metadata.namespace : isNamespace ? name : undefined,
    },
    kind: view?.kind ?? info,
    isView: view !== undefined,
    name,
    dryRun: options.dryRun === true,
    options: optionsOf(operation, options, request.body),
    caller,
    object: object && view ? view.fromObject(object) : object,
    oldObject: old && view ? view.fromObject(old) : old,
    warn: (text) => warnings.push(text),
    ended,
  }
}

/** Returns the options of a request as webhooks receive them. A patch of an existing object has UpdateOptions. */
function optionsOf(
  operation: Operation,
  { dryRun, fieldManager, fieldValidation }: RequestContext['options'],
  body: unknown,
): object {
  const isDelete = operation === 'DELETE'
  return {
    ...(isDelete && isRecord(body) ? body : {}),
    kind: { CREATE: 'CreateOptions', UPDATE: 'UpdateOptions', DELETE: 'DeleteOptions' }[operation],
    apiVersion: 'meta.k8s.io/v1',
    ...(dryRun ? { dryRun: ['All'] } : {}),
    ...(!isDelete && fieldManager ? { fieldManager } : {}),
    ...(!isDelete && fieldValidation ? { fieldValidation } : {}),
  }
}
