/** Decodes and validates ObjectMeta. Upstream: apimachinery pkg/api/validation/objectmeta.go, v0.36. */
import {
  addInvalid,
  appendAll,
  badRequest,
  eachInPieces,
  equal,
  type FieldError,
  forbidden,
  invalid,
  isInt64,
  isRecord,
  jsonTypeName,
  type KubeObject,
  labelKeyProblems,
  labelValueProblems,
  type ObjectMeta,
  qualifiedNameProblems,
  required,
  stableText,
  type StatusError,
  timeProblem,
  tooLong,
  type Work,
  addError,
} from '@capstan/kube'
import type { ResourceInfo } from '../../registry/resource-info.ts'

type Shape = 'string' | 'time' | 'number' | 'strings' | 'stringMap' | 'owners' | 'managers'

const fields: { readonly [field: string]: Shape } = {
  name: 'string',
  generateName: 'string',
  namespace: 'string',
  selfLink: 'string',
  uid: 'string',
  resourceVersion: 'string',
  generation: 'number',
  creationTimestamp: 'time',
  deletionTimestamp: 'time',
  deletionGracePeriodSeconds: 'number',
  labels: 'stringMap',
  annotations: 'stringMap',
  ownerReferences: 'owners',
  finalizers: 'strings',
  managedFields: 'managers',
}

/**
 * Normalizes a draft's metadata: drops unknown fields, nulls, and empty strings, maps and lists, which Go's encoder omits. Exception: an empty
 * list in managedFields of a built-in kind becomes `[{}]`.
 * @param reject creates the error for a field of the wrong type, and for an invalid time
 * @param keepsEmpty whether to keep null or empty maps and lists, except managedFields. In server-side apply, the field
 * manager owns such fields, too
 * @returns the paths of unknown fields
 */
export function coerceMetadata(
  { kind, version, builtin }: ResourceInfo,
  object: { metadata?: unknown },
  reject = (problem: string): StatusError =>
    badRequest(`${kind} in version ${JSON.stringify(version)} cannot be handled as a ${kind}: ${problem}`),
  { keepsEmpty = false } = {},
): string[] {
  const wrongType = (value: unknown, field: string | undefined, goType: string) => {
    // Upstream decodes the metadata of custom resources separately.
    const metadataTarget = builtin ? `Go struct field ${kind}.metadata` : 'Go value'
    const fieldTarget = `Go struct field ObjectMeta.${builtin ? 'metadata.' : ''}${field}`
    const goTarget = field === undefined ? metadataTarget : fieldTarget
    return reject(`json: cannot unmarshal ${jsonTypeName(value, goType)} into ${goTarget} of type ${goType}`)
  }
  object.metadata ??= {}
  if (!isRecord(object.metadata)) throw wrongType(object.metadata, undefined, 'v1.ObjectMeta')
  const metadata = object.metadata
  const unknown: string[] = []
  for (const field of Object.keys(metadata)) {
    const shape = fields[field]
    const value = metadata[field]
    if (shape === undefined) unknown.push(`metadata.${field}`)
    if (keepsEmpty && isEmptyContainer(shape, value)) continue
    if (shape === undefined || value === null || value === undefined) delete metadata[field]
    else metadata[field] = coerceField(shape, value, (item, goType) => wrongType(item, field, goType), reject)
    // Upstream: an empty list removes the managedFields of a built-in kind, as `[{}]` does; for a custom resource it counts as absent.
    if (field === 'managedFields' && builtin && Array.isArray(value) && value.length === 0) metadata[field] = [{}]
    if (metadata[field] === '' || metadata[field] === undefined || isEmptyList(metadata[field])) delete metadata[field]
  }
  return unknown
}

/** Reports whether a map or list of the metadata, other than managedFields, is null or empty. */
const isEmptyContainer = (shape: Shape | undefined, value: unknown): boolean =>
  (shape === 'stringMap' || shape === 'strings' || shape === 'owners') && (value === null || isEmpty(value))

type WrongType = (value: unknown, goType: string) => StatusError

function coerceField(shape: Shape, value: unknown, wrongType: WrongType, reject: (problem: string) => StatusError): unknown {
  const checkTime = (text: string): void => {
    const problem = timeProblem(text, false)
    if (problem !== undefined) throw reject(problem)
  }
  switch (shape) {
    case 'time':
      if (typeof value !== 'string') throw wrongType(value, 'string')
      if (value !== '') checkTime(value)
      return value
    case 'string':
      if (typeof value !== 'string') throw wrongType(value, 'string')
      return value
    case 'number':
      if (!isInt64(value)) throw wrongType(value, 'int64')
      return value
    case 'strings':
      if (!Array.isArray(value)) throw wrongType(value, '[]string')
      for (const item of value) if (item !== null && typeof item !== 'string') throw wrongType(item, 'string')
      return value.map((item: unknown) => item ?? '')
    case 'stringMap': {
      if (!isRecord(value)) throw wrongType(value, 'map[string]string')
      const keys = Object.keys(value)
      if (keys.length === 0) return undefined
      // Object.entries takes three times as long for a map with 100,000 keys.
      for (const key of keys) {
        const item = value[key]
        if (item === null) value[key] = ''
        else if (typeof item !== 'string') throw wrongType(item, 'string')
      }
      return value
    }
    case 'owners':
    case 'managers': {
      const type = shape === 'owners' ? 'v1.OwnerReference' : 'v1.ManagedFieldsEntry'
      if (!Array.isArray(value)) throw wrongType(value, `[]${type}`)
      return value.map((item: unknown) => {
        if (item === null) return {}
        if (!isRecord(item)) throw wrongType(item, type)
        for (const [field, member] of Object.entries(item)) {
          if (member === null) {
            delete item[field]
            continue
          }
          if (field === 'fieldsV1') continue
          const isBoolean = booleanFields.has(field)
          if (typeof member !== (isBoolean ? 'boolean' : 'string')) throw wrongType(member, isBoolean ? 'bool' : 'string')
          if (field === 'time') checkTime(member as string)
        }
        return item
      })
    }
  }
}

/** Boolean fields of owner references. All other fields of owner references and managedFields entries are strings, except `fieldsV1`. */
const booleanFields = new Set(['controller', 'blockOwnerDeletion'])

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0
const isEmpty = (value: unknown): boolean => typeof value === 'object' && value !== null && Object.keys(value).length === 0

/** Validates the metadata of an object to be stored. */
export function* metadataErrors(info: ResourceInfo, { metadata }: KubeObject): Work<FieldError[]> {
  const errors: FieldError[] = []
  const { name, generateName, labels = {}, annotations = {}, finalizers = [], ownerReferences } = metadata
  if (generateName !== undefined) {
    for (const problem of info.strategy.nameProblems(generateName, true))
      errors.push(invalid('metadata.generateName', generateName, problem))
  }
  if (!name) errors.push(required('metadata.name', 'name or generateName is required'))
  else for (const problem of info.strategy.nameProblems(name, false)) errors.push(invalid('metadata.name', name, problem))

  yield* eachInPieces(Object.keys(labels), (key) => {
    addInvalid(errors, 'metadata.labels', key, labelKeyProblems(key))
    addInvalid(errors, 'metadata.labels', labels[key], labelValueProblems(labels[key]!))
  })
  let size = 0
  yield* eachInPieces(Object.keys(annotations), (key) => {
    size += Buffer.byteLength(key) + Buffer.byteLength(annotations[key]!)
    addInvalid(errors, 'metadata.annotations', key, qualifiedNameProblems(key.toLowerCase()))
  })
  if (size > MaxAnnotations) errors.push(tooLong('metadata.annotations', MaxAnnotations))
  // Upstream: finalizers of custom resources and CustomResourceDefinitions need no domain.
  const strict = info.builtin && info.group !== 'apiextensions.k8s.io'
  appendAll(errors, ownerErrors(ownerReferences ?? []))
  yield
  yield* finalizerErrors(errors, finalizers, strict)
  return errors
}

const MaxAnnotations = 256 * 1024

function ownerErrors(owners: NonNullable<ObjectMeta['ownerReferences']>): FieldError[] {
  const errors: FieldError[] = []
  let controller: string | undefined
  for (const owner of owners) {
    const [version, group] = (owner.apiVersion ?? '').split('/').reverse() as [string, string?]
    if (version === '')
      errors.push(invalid('metadata.ownerReferences.apiVersion', owner.apiVersion ?? '', 'version must not be empty'))
    for (const field of ['kind', 'name', 'uid'] as const) {
      if (!owner[field]) errors.push(invalid(`metadata.ownerReferences.${field}`, owner[field] ?? '', 'must not be empty'))
    }
    if ((group ?? '') === '' && owner.kind === 'Event') {
      errors.push(
        invalid('metadata.ownerReferences', owner, `${group ?? ''}/${version}, Kind=Event is disallowed from being an owner`),
      )
    }
    if (owner.controller) {
      const controllerText = `${owner.kind ?? ''}/${owner.name ?? ''}`
      if (controller !== undefined) {
        const text = `Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${controllerText}`
        addError(errors, () => invalid('metadata.ownerReferences', owners, text))
      } else controller = controllerText
    }
  }
  return errors
}

/** Returns the finalizers that are not in `old`. */
function addedFinalizers(finalizers: readonly string[] = [], old: readonly string[] = []): string[] {
  const oldFinalizers = new Set(old)
  return finalizers.filter((finalizer) => !oldFinalizers.has(finalizer))
}

/** Finalizers that are valid without a domain. */
const standardFinalizers = new Set(['orphan', 'foregroundDeletion', 'kubernetes'])

/** Returns warnings about added finalizers without a domain, for custom resources. Upstream: validateKubeFinalizerName. */
export function finalizerWarnings({ metadata }: KubeObject, old: KubeObject | undefined): string[] {
  return addedFinalizers(metadata.finalizers, old?.metadata.finalizers)
    .filter((finalizer) => !finalizer.includes('/') && !standardFinalizers.has(finalizer))
    .sort()
    .map(
      (finalizer) =>
        `metadata.finalizers: ${JSON.stringify(finalizer)}: prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers`,
    )
}

function* finalizerErrors(errors: FieldError[], finalizers: readonly string[], strict: boolean): Work<void> {
  yield* eachInPieces(finalizers.entries(), ([index, finalizer]) => {
    addInvalid(errors, 'metadata.finalizers', finalizer, qualifiedNameProblems(finalizer))
    if (strict && !finalizer.includes('/') && !standardFinalizers.has(finalizer))
      addInvalid(errors, `metadata.finalizers[${index}]`, finalizer, unqualifiedFinalizer)
  })
  if (finalizers.includes('orphan') && finalizers.includes('foregroundDeletion')) {
    errors.push(invalid('metadata.finalizers', finalizers, 'finalizer orphan and foregroundDeletion cannot be both set'))
  }
}
const unqualifiedFinalizer = ['name is neither a standard finalizer name nor is it fully qualified']

/**
 * Validates changes of metadata in an update. The fields that only the server sets are already those of the stored object (see
 * `keepSystemFields`), except a `uid`, `deletionTimestamp` or `deletionGracePeriodSeconds` that the client sent. These must be unchanged.
 */
export function metadataUpdateErrors({ metadata }: KubeObject, { metadata: old }: KubeObject): FieldError[] {
  const errors: FieldError[] = []
  for (const field of ['uid', 'deletionTimestamp', 'deletionGracePeriodSeconds'] as const) {
    if (!equal(metadata[field], old[field])) errors.push(invalid(`metadata.${field}`, metadata[field], 'field is immutable'))
  }
  if (old.deletionTimestamp !== undefined) {
    const added = addedFinalizers(metadata.finalizers, old.finalizers).sort()
    if (added.length > 0) {
      const list = `[]string{${added.map((finalizer) => JSON.stringify(finalizer)).join(', ')}}`
      errors.push(
        forbidden(
          'metadata.finalizers',
          `no new finalizers can be added if the object is being deleted, found new finalizers ${list}`,
        ),
      )
    }
  }
  return errors
}

/** Drops repeated owner references, as upstream does. Returns a warning for each uid of the dropped references. */
export function dropDuplicateOwners({ metadata }: KubeObject): string[] {
  const owners = metadata.ownerReferences
  if (!owners || owners.length < 2) return []
  const warnings: string[] = []
  const unique: typeof owners = []
  const seenOwners = new Set<string>()
  for (const owner of owners) {
    const text = stableText(owner)
    if (seenOwners.has(text)) {
      warnings.push(
        `.metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: ${owner.uid}`,
      )
    } else {
      seenOwners.add(text)
      unique.push(owner)
    }
  }
  if (unique.length < owners.length) metadata.ownerReferences = unique
  return [...new Set(warnings)]
}
