/**
 * Stages of a write: mutating admission, validation with validating admission, and for creates the check of the namespace. Of the functions
 * of this file, a deletion calls only `validateAdmission` (plugins and in-process admission); `callDeletionWebhooks` calls its webhooks and
 * policies.
 */
import {
  type Admission,
  type AdmissionRequest,
  appendAll,
  type FieldError,
  inPieces,
  invalidObject,
  type KubeObject,
  listInPieces,
  notFound,
  pauseIfDue,
  StatusError,
  type UnknownObject,
  type Work,
} from '@capstan/kube'
import type { PluginWrite } from '../../admission/plugin.ts'
import { userInfoOf } from '../../admission/review.ts'
import type { ResourceInfo } from '../../registry/resource-info.ts'
import { type AdmissionView, mutateWebhooks, validateWebhooks } from './call-webhooks.ts'
import { finalizerWarnings, metadataErrors, metadataUpdateErrors } from './metadata.ts'
import { type RequestContext, type ServerContext, writeContext } from '../context.ts'
import { scaleErrors } from './scale-errors.ts'

type Operation = 'CREATE' | 'UPDATE' | 'DELETE'

/**
 * Runs mutating admission: plugins, in-process admission, and webhooks last. managedFields were updated before, so fields that admission adds
 * get no field manager.
 * @returns the draft to continue with: a new object when a webhook changed the object without a view, otherwise `object`
 */
export async function mutate(
  server: ServerContext,
  context: RequestContext,
  object: UnknownObject,
  old: UnknownObject | undefined,
  view?: AdmissionView,
): Promise<UnknownObject> {
  const request = admissionRequest(server, context, old ? 'UPDATE' : 'CREATE', old)
  const write = pluginWrite(server, context, object, old, request.operation)
  for (const plugin of server.pluginsFor(context.info)) await plugin.mutate?.(write)
  let hasDefaulted = false
  for (const admission of admissionOf(server, context, request.operation)) {
    if (!admission.default) continue
    try {
      await admission.default(object, request)
    } catch (err) {
      // Admission functions expect an object that fits its schema. If it does not, the later validation reports a more useful error.
      if (err instanceof StatusError || context.info.structural.validate(object, old).length === 0) throw err
      return object
    }
    hasDefaulted = true
  }
  if (hasDefaulted) context.info.structural.default(object)
  return mutateWebhooks(server, context, request.operation, object, old, view)
}

/** Validates an object, then runs validating admission. @throws StatusError Invalid with all validation errors, or the error of admission */
export async function validate(
  server: ServerContext,
  context: RequestContext,
  object: UnknownObject,
  old: UnknownObject | undefined,
  view?: AdmissionView,
): Promise<void> {
  const { info } = context
  const { clock } = server
  const metadataResult = inPieces(clock, metadataErrors(info, object))
  const metadataProblems = metadataResult instanceof Promise ? await metadataResult : metadataResult
  // Upstream validates the metadata of an update twice, and lists its errors twice.
  if (old) appendAll(metadataProblems, metadataUpdateErrors(object, old))
  const scaleProblems = info.builtin ? [] : scaleErrors(info, context.request.subresource, object)
  const schemaWork = info.validatesSchema ? structuralErrors(info, object, old, metadataProblems, scaleProblems) : []
  const schemaResult = listInPieces(clock, schemaWork)
  const schemaProblems = schemaResult instanceof Promise ? await schemaResult : schemaResult
  const schemaPause = pauseIfDue(clock)
  if (schemaPause) await schemaPause
  const strategyResult = listInPieces(clock, info.strategy.validate?.(object, old, writeContext(server, context)) ?? [])
  const strategyProblems = strategyResult instanceof Promise ? await strategyResult : strategyResult
  const errors: FieldError[] = [...metadataProblems, ...(old ? metadataProblems : []), ...schemaProblems, ...strategyProblems]
  const strategyPause = pauseIfDue(clock)
  if (strategyPause) await strategyPause
  // Ratcheted errors are errors of CEL rules in unchanged parts. Upstream sends them as warnings also when other rules reject the update.
  const ratcheted = old && !info.builtin ? await inPieces(clock, info.structural.ratchetedErrors(object, old)) : []
  const ratchetedWarnings = ratcheted.map(({ field, text }) => `${field}: ${text}`)
  if (errors.length > 0) {
    appendAll(context.warnings, ratchetedWarnings)
    const { kind, storageGroup: group = info.group } = info
    throw invalidObject({ group, kind }, object.metadata.name ?? '', errors.map(withPathInStatus(context)))
  }
  if (!info.builtin) appendAll(context.warnings, finalizerWarnings(object, old), ratchetedWarnings)
  appendAll(context.warnings, info.strategy.warnings?.(object, old, writeContext(server, context)) ?? [])
  const operation = old ? 'UPDATE' : 'CREATE'
  await validateAdmission(server, context, object, old, operation)
  await validateWebhooks(server, context, operation, object, old, view)
}

/**
 * Removes `status.` from messages such as `status.phase in body must be of type string`, in a write of the status subresource of a custom
 * resource: upstream validates only the status by the schema.
 */
const withPathInStatus =
  ({ info, request }: RequestContext) =>
  (error: FieldError): FieldError =>
    request.subresource === 'status' && !info.builtin
      ? { ...error, text: error.text.replace(/: status\.(\S+ in body )/, ': $1') }
      : error

/**
 * Returns schema errors; for built-in kinds, without errors about duplicate items of lists, which the strategy reports, as Go code does in
 * upstream.
 */
function* structuralErrors(
  { structural, builtin }: ResourceInfo,
  object: UnknownObject,
  old: UnknownObject | undefined,
  metadataProblems: readonly FieldError[],
  scaleProblems: readonly FieldError[],
): Work<FieldError[]> {
  const errors = yield* structural.validating(object, old, metadataProblems, scaleProblems)
  return builtin ? errors.filter(({ type }) => type !== 'FieldValueDuplicate') : errors
}

/** Runs the validating admission plugins and in-process admission. @throws StatusError when one of them rejects the write */
export async function validateAdmission(
  server: ServerContext,
  context: RequestContext,
  object: UnknownObject,
  old: UnknownObject | undefined,
  operation: Operation,
): Promise<void> {
  const write = pluginWrite(server, context, object, old, operation)
  for (const plugin of server.pluginsFor(context.info)) await plugin.validate?.(write)
  const request = admissionRequest(server, context, operation, old)
  for (const admission of admissionOf(server, context, operation)) {
    const errors = (await admission.validate?.(object, request)) ?? []
    if (errors.length > 0) throw invalidObject(context.info, object.metadata.name, errors)
  }
}

/** Returns the admission functions for a write of the object itself, or of its scale subresource, which writes the spec. */
function admissionOf(
  { admission }: ServerContext,
  { info, request }: RequestContext,
  operation: Operation,
): readonly Admission[] {
  const hasAdmission = request.subresource === undefined || request.subresource === 'scale'
  if (!hasAdmission || admission.length === 0) return []
  return admission.filter(
    ({ kind, operations = ['CREATE', 'UPDATE'] }) =>
      kind.group === info.group && kind.plural === info.plural && operations.includes(operation),
  )
}

const admissionRequest = (
  { reader }: ServerContext,
  { options, caller, warnings }: RequestContext,
  operation: Operation,
  oldObject: KubeObject | undefined,
): AdmissionRequest<KubeObject> => ({
  operation,
  oldObject,
  dryRun: options.dryRun === true,
  userInfo: userInfoOf(caller),
  reader,
  warn: (message) => warnings.push(message),
})

const pluginWrite = (
  { store, pending, registry, authorizer, clock, random }: ServerContext,
  { info, request: { subresource, name }, caller, warnings }: RequestContext,
  object: UnknownObject,
  old: UnknownObject | undefined,
  operation: Operation,
): PluginWrite => ({
  operation,
  info,
  subresource,
  namespace: object.metadata.namespace,
  name: name ?? object.metadata.name ?? '',
  object,
  old,
  caller,
  store,
  pending,
  registry,
  authorizer,
  clock,
  random,
  warn: (text) => warnings.push(text),
})

/**
 * Requires for a new object that its namespace exists and is not being deleted. Does nothing if the admission plugin NamespaceLifecycle is
 * disabled. @throws StatusError NotFound or Forbidden
 */
export function requireNamespace({ store, enabled }: ServerContext, info: ResourceInfo, object: KubeObject): void {
  const { namespace, name } = object.metadata
  if (!enabled.has('NamespaceLifecycle') || !info.namespaced || namespace === undefined) return
  const stored = store.get({ resource: 'namespaces', namespace: '', name: namespace })
  if (!stored) throw notFound({ group: '', plural: 'namespaces' }, namespace)
  if (stored.metadata.deletionTimestamp === undefined) return
  throw new StatusError(
    'Forbidden',
    `${info.storage} ${JSON.stringify(name)} is forbidden: unable to create new content in namespace ${namespace} because it is being terminated`,
    {
      details: {
        name,
        ...(info.group === '' ? {} : { group: info.group }),
        kind: info.plural,
        causes: [
          { reason: 'NamespaceTerminating', message: `namespace ${namespace} is being terminated`, field: 'metadata.namespace' },
        ],
      },
    },
  )
}
