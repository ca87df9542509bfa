/** The webhooks' part in a write: what they are told of it, and what becomes of what they leave. */
import { isRecord, messageOf, type UnknownObject } from '@capstan/kube'
import { type GroupVersionKind, internalError } from '../admission/review.ts'
import type { Write } from '../admission/webhooks.ts'
import { readNulls } from '../kinds/go-nulls.ts'
import { jsonTypeProblem } from '../kinds/go-types.ts'
import { checkPlace } from './decode.ts'
import { coerceMetadata } from './metadata.ts'
import type { Call, Plane } from './plane.ts'

type Operation = 'CREATE' | 'UPDATE' | 'DELETE'

/** How a subresource shows an object that is written through it. */
export interface AdmissionView {
  readonly kind: GroupVersionKind
  of(object: UnknownObject): UnknownObject
  /** Brings a draft of the object to what its view says now. */
  into(object: UnknownObject, view: UnknownObject): void
}

/**
 * @returns the draft as mutating webhooks leave it: another one when one of them patched it
 * @throws StatusError what a webhook refuses, or why it could not be asked
 */
export async function mutateWebhooks(
  { webhooks }: Plane,
  call: Call,
  operation: Operation,
  object: UnknownObject,
  old: UnknownObject | undefined,
  view?: AdmissionView,
): Promise<UnknownObject> {
  if (call.isOwn || !webhooks.concern(call.definition, 'mutating')) return object
  const write = writeOf(call, operation, object, old, view)
  if (!view) return (await webhooks.mutate(write, (document) => settled(call, document, old))) ?? object
  const wanted = await webhooks.mutate(write, (document) => document as UnknownObject)
  if (wanted && wanted !== write.object) view.into(object, wanted)
  return object
}

/** @throws StatusError what a policy or a validating webhook refuses, or why it could not be asked */
export async function validateWebhooks(
  { webhooks, policies }: Plane,
  call: Call,
  operation: Operation,
  object: UnknownObject | undefined,
  old: UnknownObject | undefined,
  view?: AdmissionView,
): Promise<void> {
  if (call.isOwn) return
  const isBoundBy = policies.concern(call.definition)
  const isOfInterest = webhooks.concern(call.definition, 'validating')
  if (!isBoundBy && !isOfInterest) return
  const write = writeOf(call, operation, object, old, view)
  if (isBoundBy) await policies.validate(write)
  if (isOfInterest) await webhooks.validate(write)
}

/** Upstream: mutating webhooks hear of deletions, too, and can do nothing about them but refuse. */
export async function announceDeletion(plane: Plane, call: Call, old: UnknownObject): Promise<void> {
  if (plane.webhooks.concern(call.definition, 'mutating')) {
    await plane.webhooks.mutate(writeOf(call, 'DELETE', undefined, old), (document) => document as UnknownObject)
  }
  await validateWebhooks(plane, call, 'DELETE', undefined, old)
}

/** What a webhook left, in the shape that every object of the resource has. */
function settled(call: Call, document: Record<string, unknown>, old: UnknownObject | undefined): UnknownObject {
  const { definition } = call
  const { apiVersion, kind, structural } = definition
  if (document.apiVersion !== apiVersion || document.kind !== kind) {
    throw internalError(`admission webhooks cannot change the type of an object, which is ${apiVersion} ${kind}`)
  }
  try {
    coerceMetadata(definition, document)
  } catch (err) {
    throw internalError(messageOf(err))
  }
  const object = document as UnknownObject
  const { component } = definition
  if (component !== undefined) {
    const problem = jsonTypeProblem(component, object)
    if (problem !== undefined) throw internalError(problem)
    readNulls(component, object)
  }
  structural.prune(object)
  structural.dropNulls(object)
  structural.default(object)
  definition.default?.(object, old)
  checkPlace(call, object)
  return object
}

function writeOf(
  { definition, request, options, caller, warnings, signal }: Call,
  operation: Operation,
  object: UnknownObject | undefined,
  old: UnknownObject | undefined,
  view?: AdmissionView,
): Write {
  const { group, version, plural, namespaced } = definition
  const { metadata } = (object ?? old)!
  // Upstream: whoever deletes a collection has named nobody.
  const name = request.name ?? (operation === 'DELETE' ? '' : (metadata.name ?? ''))
  const isNamespace = plural === 'namespaces' && group === ''
  return {
    definition,
    target: {
      operation,
      group,
      version,
      plural,
      subresource: request.subresource,
      namespace: namespaced ? metadata.namespace : isNamespace ? name : undefined,
    },
    kind: view?.kind ?? definition,
    isView: view !== undefined,
    name,
    dryRun: options.dryRun === true,
    options: optionsOf(operation, options, request.body),
    caller,
    object: object && view ? view.of(object) : object,
    oldObject: old && view ? view.of(old) : old,
    warn: (text) => warnings.push(text),
    signal,
  }
}

/** The options of a request as an object of the API. A patch is an update, and so are its options. */
function optionsOf(operation: Operation, { dryRun, fieldManager, fieldValidation }: Call['options'], body: unknown): object {
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
