/** Strategy of CustomResourceDefinitions. Upstream: apiextensions/v1 defaults and strategy, v0.36. */
import {
  type CustomResourceDefinition,
  type CustomResourceVersion,
  equal,
  formatCheck,
  isRecord,
  type UnknownObject,
} from '@capstan/kube'
import { validateCRD } from './crd-validation.ts'
import { normalizeSchema, unknownFormats } from './schema-fields.ts'

/** Finalizer that keeps a CRD until its instances are deleted. */
export const CleanupFinalizer = 'customresourcecleanup.apiextensions.k8s.io'

/** Returns `spec.versions` of a CRD that may not be validated yet, without items that are not objects; an empty list if it is not a list. */
function versionsIn(value: unknown): readonly CustomResourceVersion[] {
  const versions = isRecord(value) && isRecord(value.spec) ? value.spec.versions : undefined
  return Array.isArray(versions) ? (versions.filter(isRecord) as unknown as CustomResourceVersion[]) : []
}

const asCRD = (object: UnknownObject): CustomResourceDefinition => object as unknown as CustomResourceDefinition

const schemasOf = (object: UnknownObject): unknown[] => versionsIn(object).map(({ schema }) => schema?.openAPIV3Schema)

const formatsOfNumbers: { readonly [type: string]: readonly string[] } = {
  integer: ['int32', 'int64'],
  number: ['float', 'double'],
}

const isKnownFormat = (type: string | undefined, format: string): boolean =>
  type === 'string' ? formatCheck(format) !== undefined : type !== undefined && formatsOfNumbers[type]?.includes(format) === true

export const crdStrategy = {
  pruneUnknown(object: UnknownObject): string[] {
    const unknown: string[] = []
    for (const [index, schema] of schemasOf(object).entries())
      normalizeSchema(schema, `spec.versions[${index}].schema.openAPIV3Schema`, (path) => unknown.push(path))
    return unknown
  },

  warnings(object: UnknownObject, old: UnknownObject | undefined): string[] {
    const formatsOf = (crd: UnknownObject | undefined) =>
      (crd ? schemasOf(crd) : []).flatMap((schema) => [...unknownFormats(schema, isKnownFormat)])
    const before = new Set(formatsOf(old))
    const newFormats = new Set(formatsOf(object).filter((format) => !before.has(format)))
    return [...newFormats].map((format) => `unrecognized format ${JSON.stringify(format)}`)
  },

  default(object: UnknownObject): void {
    const { spec } = asCRD(object)
    const { names } = spec
    if (names) {
      if (names.kind && !names.listKind) names.listKind = `${names.kind}List`
      if (names.kind && !names.singular) names.singular = names.kind.toLowerCase()
    }
    // Upstream: false, the only allowed value, is omitted.
    if (spec.preserveUnknownFields === false) delete spec.preserveUnknownFields
    spec.conversion ??= { strategy: 'None' }
    for (const { subresources } of spec.versions ?? []) {
      if (subresources?.status) subresources.status = {}
    }
    const service = spec.conversion.webhook?.clientConfig?.service
    if (service) service.port ??= 443
  },

  /**
   * Replaces schemas of the draft by equal frozen schemas of the request or of the stored CRD, so that each is validated and compiled only
   * once for all servers of the process.
   */
  reuseFrozen(object: UnknownObject, sent: unknown, old: UnknownObject | undefined): void {
    const { spec } = asCRD(object)
    const versionsByName = Map.groupBy([...versionsIn(sent), ...versionsIn(old)], (version) => version.name)
    for (const { name, schema } of spec.versions ?? []) {
      if (!schema?.openAPIV3Schema) continue
      const frozenVersion = versionsByName
        .get(name)
        ?.find(
          (version) =>
            Object.isFrozen(version.schema?.openAPIV3Schema) && equal(version.schema?.openAPIV3Schema, schema.openAPIV3Schema),
        )
      if (frozenVersion?.schema?.openAPIV3Schema) schema.openAPIV3Schema = frozenVersion.schema.openAPIV3Schema
    }
  },

  prepare(object: UnknownObject, old: UnknownObject | undefined): void {
    const crd = asCRD(object)
    const storage = crd.spec.versions?.find((version) => version.storage)?.name
    if (!old) {
      object.status = {
        conditions: null,
        acceptedNames: { plural: '', kind: '' },
        storedVersions: storage === undefined ? [] : [storage],
      }
      return
    }
    const stored = crd.status?.storedVersions ?? []
    const before = asCRD(old).spec.versions.find((version) => version.storage)?.name
    if (storage !== undefined && storage !== before && !stored.includes(storage)) {
      object.status = { ...crd.status, storedVersions: [...stored, storage] }
    } else if (storage !== undefined && stored.length === 0) {
      // The client sent a status without stored versions, but objects are stored in the storage version.
      object.status = { ...crd.status, storedVersions: [storage] }
    }
  },

  /** Adds the condition Terminating and `CleanupFinalizer`. A controller removes the finalizer once the instances are deleted. */
  markDeleted(object: UnknownObject, now: string): void {
    const { metadata } = object
    if (!metadata.finalizers?.includes(CleanupFinalizer)) metadata.finalizers = [...(metadata.finalizers ?? []), CleanupFinalizer]
    const status = (asCRD(object).status ??= {})
    const condition = {
      type: 'Terminating',
      status: 'True' as const,
      lastTransitionTime: now,
      reason: 'InstanceDeletionPending',
      message: 'CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon',
    }
    status.conditions = [...(status.conditions ?? []), condition]
  },

  validate: (
    object: UnknownObject,
    old: UnknownObject | undefined,
    { subresource }: { readonly subresource: string | undefined },
  ) => (subresource === 'status' ? [] : validateCRD(asCRD(object), old && asCRD(old))),
}
