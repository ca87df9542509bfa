/** The part of a write that creates and updates share: what fills an object in, and what it must satisfy, in upstream's order. */
import {
  type Admission,
  type AdmissionRequest,
  type FieldError,
  invalidObject,
  type KubeObject,
  notFound,
  StatusError,
  type UnknownObject,
} from '@capstan/kube'
import type { PluginWrite } from '../admission/plugin.ts'
import type { Definition } from '../registry/definition.ts'
import { type AdmissionView, mutateWebhooks, validateWebhooks } from './ask-webhooks.ts'
import { finalizerWarnings, metadataErrors, metadataUpdateErrors } from './metadata.ts'
import { type Call, type Plane, writeContext } from './plane.ts'
import { scaleErrors } from './scale-errors.ts'

type Operation = 'CREATE' | 'UPDATE' | 'DELETE'

/**
 * Lets admission fill in, webhooks last. What it sets belongs to no field manager.
 *
 * @returns the draft as it is now: another one when a webhook patched it
 */
export async function mutate(
  plane: Plane,
  call: Call,
  object: UnknownObject,
  old: UnknownObject | undefined,
  view?: AdmissionView,
): Promise<UnknownObject> {
  const request = admissionRequest(plane, call, old ? 'UPDATE' : 'CREATE', old)
  const write = pluginWrite(plane, call, object, old, request.operation)
  for (const plugin of plane.pluginsFor(call.definition)) await plugin.mutate?.(write)
  let ran = false
  for (const one of admissionOf(plane, call, request.operation)) {
    if (!one.default) continue
    try {
      await one.default(object, request)
    } catch (err) {
      // It relies on what the schema promises. An object that breaks the schema is refused for that, once it is validated.
      if (err instanceof StatusError || call.definition.structural.validate(object, old).length === 0) throw err
      return object
    }
    ran = true
  }
  if (ran) call.definition.structural.default(object)
  return mutateWebhooks(plane, call, request.operation, object, old, view)
}

/** @throws StatusError Invalid with everything that is wrong, or whatever admission throws */
export async function validate(
  plane: Plane,
  call: Call,
  object: UnknownObject,
  old: UnknownObject | undefined,
  view?: AdmissionView,
): Promise<void> {
  const { definition } = call
  const ofMetadata = metadataErrors(definition, object)
  // Upstream looks at the metadata of an update twice, and lists what is wrong with it twice.
  if (old) ofMetadata.push(...metadataUpdateErrors(object, old))
  const ofScale = definition.builtin ? [] : scaleErrors(definition, call.request.subresource, object)
  const errors: FieldError[] = [
    ...ofMetadata,
    ...(old ? ofMetadata : []),
    ...(definition.validatesSchema ? structuralErrors(definition, object, old, ofMetadata, ofScale) : []),
    ...(definition.validate?.(object, old, writeContext(plane, call)) ?? []),
  ]
  if (errors.length > 0) {
    const { kind, storageGroup: group = definition.group } = definition
    throw invalidObject({ group, kind }, object.metadata.name ?? '', errors.map(inStatus(call)))
  }
  if (!definition.builtin) {
    const broken = old ? definition.structural.stillBroken(object, old) : []
    call.warnings.push(...finalizerWarnings(object, old), ...broken.map(({ field, text }) => `${field}: ${text}`))
  }
  call.warnings.push(...(definition.warnings?.(object, old, writeContext(plane, call)) ?? []))
  const operation = old ? 'UPDATE' : 'CREATE'
  await validateAdmission(plane, call, object, old, operation)
  await validateWebhooks(plane, call, operation, object, old, view)
}

/** Upstream: what is written through `/status` is validated by itself, and its texts know no fields around it. */
const inStatus =
  ({ definition, request }: Call) =>
  (error: FieldError): FieldError =>
    request.subresource === 'status' && !definition.builtin
      ? { ...error, text: error.text.replace(/: status\.(\S+ in body )/, ': $1') }
      : error

/** Upstream: whether items of a list are there twice is for each built-in kind to say, and not for its schema. */
function structuralErrors(
  { structural, builtin }: Definition,
  object: UnknownObject,
  old: UnknownObject | undefined,
  earlier: readonly FieldError[],
  also: readonly FieldError[],
): FieldError[] {
  const errors = structural.validate(object, old, earlier, also)
  return builtin ? errors.filter(({ type }) => type !== 'FieldValueDuplicate') : errors
}

export async function validateAdmission(
  plane: Plane,
  call: Call,
  object: UnknownObject,
  old: UnknownObject | undefined,
  operation: Operation,
): Promise<void> {
  const write = pluginWrite(plane, call, object, old, operation)
  for (const plugin of plane.pluginsFor(call.definition)) await plugin.validate?.(write)
  const request = admissionRequest(plane, call, operation, old)
  for (const one of admissionOf(plane, call, operation)) {
    const errors = (await one.validate?.(object, request)) ?? []
    if (errors.length > 0) throw invalidObject(call.definition, object.metadata.name, errors)
  }
}

/** Of the subresources, a kind's admission is about scale, which writes its specification. */
function admissionOf({ admission }: Plane, { definition, request }: Call, operation: Operation): readonly Admission[] {
  const isAbout = request.subresource === undefined || request.subresource === 'scale'
  if (!isAbout || admission.length === 0) return []
  return admission.filter(
    ({ kind, operations = ['CREATE', 'UPDATE'] }) =>
      kind.group === definition.group && kind.plural === definition.plural && operations.includes(operation),
  )
}

const admissionRequest = (
  { reader }: Plane,
  { options, warnings }: Call,
  operation: Operation,
  oldObject: KubeObject | undefined,
): AdmissionRequest<KubeObject> => ({
  operation,
  oldObject,
  dryRun: options.dryRun === true,
  reader,
  warn: (message) => warnings.push(message),
})

const pluginWrite = (
  { store, pending, registry, authorizer, clock, random }: Plane,
  { definition, request: { subresource, name }, caller, warnings }: Call,
  object: UnknownObject,
  old: UnknownObject | undefined,
  operation: Operation,
): PluginWrite => ({
  operation,
  definition,
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

/** Upstream: plugin NamespaceLifecycle. @throws StatusError NotFound or Forbidden */
export function requireNamespace({ store, enabled }: Plane, definition: Definition, object: KubeObject): void {
  const { namespace, name } = object.metadata
  if (!enabled.has('NamespaceLifecycle') || !definition.namespaced || namespace === undefined) return
  const found = store.get({ resource: 'namespaces', namespace: '', name: namespace })
  if (!found) throw notFound({ group: '', plural: 'namespaces' }, namespace)
  if (found.metadata.deletionTimestamp === undefined) return
  throw new StatusError(
    'Forbidden',
    `${definition.storage} ${JSON.stringify(name)} is forbidden: unable to create new content in namespace ${namespace} because it is being terminated`,
    {
      details: {
        name,
        ...(definition.group === '' ? {} : { group: definition.group }),
        kind: definition.plural,
        causes: [
          { reason: 'NamespaceTerminating', message: `namespace ${namespace} is being terminated`, field: 'metadata.namespace' },
        ],
      },
    },
  )
}
