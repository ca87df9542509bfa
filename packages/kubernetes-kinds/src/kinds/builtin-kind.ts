/**
 * Declares built-in kinds. Names, scope, verbs, subresources and structure come from the catalog (`catalog.ts`); a declaration adds the
 * behaviour that only code can express. Each group has a table of declarations by resource, and `builtin-resources.ts` joins the tables.
 */
import type { FieldError, JSONSchema, KubeObject, ScaleSubresource, UnknownObject } from '@capstan/kube'
import type { PrinterColumn, WriteContext } from '@capstan/apiserver/kinds'

/** `T` is the type of decoded objects: every field that is not a pointer in Go is present. */
export interface BuiltinKind<T = UnknownObject> {
  /** Whether `metadata.generation` counts changes of the spec; a function reports further changes that it counts. */
  readonly generation?: boolean | ((object: T, old: T) => boolean)
  /** Validates a name and returns error messages; default: names are DNS subdomains. */
  readonly names?: (name: string) => string[]
  /** Values of further selectable fields, besides metadata.name and metadata.namespace. */
  readonly selectableFields?: { readonly [field: string]: (object: UnknownObject) => string }
  /** Columns of `kubectl get`; default: name and age. */
  readonly columns?: readonly PrinterColumn[]
  /** Sort order of tables; default: by name. */
  readonly order?: (a: UnknownObject, b: UnknownObject) => number
  /** Group version under which the objects are stored, when another group has a resource of the same name; default: its own. */
  readonly storedAs?: string
  /** Converts drafts of other versions to this version; sets their apiVersion. */
  readonly convertFrom?: { readonly [apiVersion: string]: (object: UnknownObject) => void }
  /** Paths of replicas, for kinds with the `scale` subresource. */
  readonly scale?: ScaleSubresource
  /** Whether a create keeps the status, although there is a status subresource. */
  readonly statusOnCreate?: boolean
  /** Whether a PUT of an object that does not exist creates it. */
  readonly createsOnUpdate?: boolean
  /** Whether a deletion returns the deleted object instead of a Status. */
  readonly returnsDeleted?: boolean
  /** Warning for a deletion without a propagation policy, which orphans dependents. Absent: dependents are deleted. */
  readonly orphanWarning?: string
  /** Error for an unsupported field selector; default: upstream's usual text. */
  readonly unknownFieldSelector?: (field: string) => string
  /** Replaces the published schema, for a kind that is validated by its schema as well. */
  readonly schema?: JSONSchema
  /** Prunes unknown fields that the schema cannot detect; returns their paths. */
  pruneUnknown?(object: T): string[]
  /** Sets defaults. Part of decoding, so defaulted fields count as sent by the client. Must be idempotent. */
  default?(object: T, old: T | undefined): void
  /** Last step of decoding: replaces parts of the draft by equal frozen parts, so that they are shared instead of copied. */
  reuseFrozen?(object: T, sent: unknown, old: T | undefined): void
  /** Sets fields that only the server sets, before validation. */
  prepare?(object: T, old: T | undefined, context: WriteContext): void
  /** Returns validation errors in upstream's order. */
  validate?(object: T, old: T | undefined, context: WriteContext): FieldError[]
  /**
   * Authorizes what the write grants, beyond the write itself.
   * @throws StatusError Forbidden, or NotFound for an object that the write refers to
   */
  authorize?(object: T, old: T | undefined, context: WriteContext): void
  /** Returns warnings for a valid object. */
  warnings?(object: T, old: T | undefined, context: WriteContext): string[]
  /**
   * Fields excluded from managedFields for each subresource, '' being the main resource; default: the usual fields. Upstream: resetFields.
   */
  readonly resetFields?: { readonly [subresource: string]: readonly (readonly string[])[] }
  /** For subresources that write a part of the object: resets all other parts of a draft to the stored object. */
  readonly subresourceWrites?: { readonly [subresource: string]: (object: T, old: T) => void }
  /** Deprecation warning, sent with every answer. */
  readonly deprecation?: string
  /** Returns the grace period of a deletion in seconds, from the requested one; absent: the object is deleted at once. */
  gracePeriod?(object: T, requested: number | undefined): number
  /** Updates the status of an object when its deletion is requested, at the given time. */
  markDeleted?(object: T, now: string): void
}

/** Kinds of one group version, by plural. The types of objects are unchecked here; the catalog guarantees them. */
export interface KindTable {
  readonly [plural: string]: BuiltinKind<never>
}

/** Returns a declaration from defaults and validation in `@capstan/kube`, which are also usable without a server. */
export function declaredIn<T extends KubeObject>(kind: {
  default?(object: T, context: { operation: 'CREATE' | 'UPDATE'; oldObject: T | undefined; dryRun: boolean }): void
  validate?(object: T, context: { operation: 'CREATE' | 'UPDATE'; oldObject: T | undefined; dryRun: boolean }): FieldError[]
}): Pick<BuiltinKind<T>, 'default' | 'validate'> {
  const context = (old: T | undefined) => ({
    operation: old ? ('UPDATE' as const) : ('CREATE' as const),
    oldObject: old,
    dryRun: false,
  })
  return {
    default: (object, old) => kind.default?.(object, context(old)),
    validate: (object, old) => kind.validate?.(object, context(old)) ?? [],
  }
}
