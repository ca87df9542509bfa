/** One declaration of a kind gives its static type, its CustomResourceDefinition, defaulting, validation and table columns. */
import type { FieldError } from './errors.ts'
import { freeze } from './json.ts'
import type { KubeObject, ObjectMeta } from './object.ts'
import { apiVersionOf } from './object.ts'
import type { JSONSchema, ObjectOfShape, Schema, Shape } from './schema.ts'

/** Identifies the resource of a kind for clients. `T` is the static type of its objects. */
export interface Kind<T extends KubeObject = KubeObject> {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly scope: 'Namespaced' | 'Cluster'
  /** Never set: exists only for the type checker. */
  readonly _t?: T
}

/** A column of the table that `kubectl get` prints. Upstream: CustomResourceColumnDefinition. */
export interface Column {
  readonly name: string
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date'
  readonly jsonPath: string
  readonly description?: string
  readonly format?: string
  /** Columns of a priority above 0 are shown only with `-o wide`. Default: 0. */
  readonly priority?: number
}

export interface ScaleSubresource {
  readonly specReplicasPath: string
  readonly statusReplicasPath: string
  readonly labelSelectorPath?: string
}

/** Information about a write that admission functions can use besides the object. */
export interface AdmissionContext<T> {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE'
  readonly oldObject: T | undefined
  readonly dryRun: boolean
}

interface KindOptions<Spec extends Schema, Status extends Schema, Fields extends Shape> {
  group: string
  version: string
  kind: string
  plural: string
  /** Default: the kind in lower case. */
  singular?: string
  /** Default: the kind followed by `List`. */
  listKind?: string
  shortNames?: readonly string[]
  categories?: readonly string[]
  scope: 'Namespaced' | 'Cluster'
  /** Description of the kind in a sentence, for `kubectl explain`. */
  doc?: string
  spec?: Spec
  /** Schema of the status. A kind with a status has the status subresource, unless `statusSubresource` is false. */
  status?: Status
  /** Fields besides apiVersion, kind, metadata, spec and status. */
  fields?: Fields
  statusSubresource?: boolean
  /** Whether the schema requires `metadata`, as the CustomResourceDefinitions of some kinds do. */
  requiresMetadata?: boolean
  scale?: ScaleSubresource
  columns?: readonly Column[]
  /** Labels of the CustomResourceDefinition, such as those that name the supported contract versions. */
  labels?: { readonly [key: string]: string }
  /** Other versions of the same resource. */
  versions?: readonly KindVersion[]
  /** Sets defaults that the schema cannot express, in place. Must be idempotent. */
  default?(object: ObjectOfParts<Spec, Status, Fields>, context: AdmissionContext<ObjectOfParts<Spec, Status, Fields>>): void
  /** Returns validation errors that the schema cannot express. */
  validate?(
    object: ObjectOfParts<Spec, Status, Fields>,
    context: AdmissionContext<ObjectOfParts<Spec, Status, Fields>>,
  ): FieldError[]
}

/** The static type of objects with this spec, this status and these further fields. */
export type ObjectOfParts<Spec extends Schema, Status extends Schema, Fields extends Shape> = {
  apiVersion: string
  kind: string
  metadata: ObjectMeta
} & (unknown extends Spec['_t'] ? unknown : Spec['_optional'] extends true ? { spec?: Spec['_t'] } : { spec: Spec['_t'] }) &
  (unknown extends Status['_t'] ? unknown : { status?: Status['_t'] }) &
  ObjectOfShape<Fields>

/** Identifies a kind independent of its version. */
export type GroupKind = Pick<Kind, 'group' | 'kind'>

/** Result of a conversion: the object without apiVersion and kind. If it has no metadata, the metadata is not changed. */
export type ConvertedObject<T extends KubeObject> = Omit<T, 'apiVersion' | 'kind' | 'metadata'> & {
  readonly metadata?: ObjectMeta
}

export interface ConversionContext {
  /** Returns the apiVersion of objects of a kind that `KindVersion.references` returned. @throws Error for any other kind */
  apiVersionOf(kind: GroupKind): string
}

/**
 * Another version of a kind, served but not stored. Conversions take frozen objects.
 * Upstream: hub and spokes of controller-runtime.
 */
export interface KindVersion<Other extends KubeObject = KubeObject, Stored extends KubeObject = KubeObject> {
  readonly kind: DeclaredKind<Other>
  /** Whether the server sends a deprecation warning to clients that use the version. */
  readonly deprecated?: boolean
  /**
   * Returns the kinds of the objects that `object` references, where the reference has an apiVersion in this version but not in the stored
   * version.
   */
  references?(object: Stored): readonly GroupKind[]
  toStored(object: Other): ConvertedObject<Stored>
  fromStored(object: Stored, context: ConversionContext): ConvertedObject<Other>
}

/** A declared kind, with its schema, versions and admission functions. */
export interface DeclaredKind<T extends KubeObject = KubeObject> extends Kind<T> {
  readonly singular: string
  readonly listKind: string
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly doc: string
  /**
   * Schema of the whole object; the server adds the schema of metadata. Frozen, so that all servers of the process share it and compile it
   * only once.
   */
  readonly schema: JSONSchema
  readonly statusSubresource: boolean
  readonly scale: ScaleSubresource | undefined
  readonly columns: readonly Column[]
  readonly labels: { readonly [key: string]: string }
  readonly versions: readonly KindVersion[]
  // Methods instead of function properties, so that `DeclaredKind<Machine>` is assignable to `DeclaredKind`.
  default?(object: T, context: AdmissionContext<T>): void
  validate?(object: T, context: AdmissionContext<T>): FieldError[]
}

/** The static type of a kind's objects: `export type Machine = ObjectOf<typeof Machine>`. */
export type ObjectOf<K extends Kind> = NonNullable<K['_t']>

/** Declares a kind. */
export function defineKind<Spec extends Schema = Schema, Status extends Schema = Schema, const Fields extends Shape = {}>(
  options: KindOptions<Spec, Status, Fields>,
): DeclaredKind<ObjectOfParts<Spec, Status, Fields>> {
  const properties: { [name: string]: JSONSchema } = {
    apiVersion: { type: 'string' },
    kind: { type: 'string' },
    metadata: { type: 'object' },
  }
  const required: string[] = options.requiresMetadata ? ['metadata'] : []
  const parts: [string, Schema][] = Object.entries(options.fields ?? {})
  if (options.spec) parts.push(['spec', options.spec])
  if (options.status) parts.push(['status', options.status.optional()])
  for (const [name, field] of parts) {
    properties[name] = field.json
    if (!field.isOptional) required.push(name)
  }
  return {
    group: options.group,
    version: options.version,
    kind: options.kind,
    plural: options.plural,
    singular: options.singular ?? options.kind.toLowerCase(),
    listKind: options.listKind ?? `${options.kind}List`,
    shortNames: options.shortNames ?? [],
    categories: options.categories ?? [],
    scope: options.scope,
    doc: options.doc ?? '',
    schema: freeze<JSONSchema>({
      ...(options.doc ? { description: options.doc } : {}),
      type: 'object',
      properties,
      ...(required.length > 0 ? { required } : {}),
    }),
    statusSubresource: options.statusSubresource ?? options.status !== undefined,
    scale: options.scale,
    columns: options.columns ?? [],
    labels: options.labels ?? {},
    versions: options.versions ?? [],
    ...(options.default ? { default: options.default } : {}),
    ...(options.validate ? { validate: options.validate } : {}),
  }
}

/** Returns a kind without a declared schema, such as a provider's. Its objects are read by path. `scope` defaults to Namespaced. */
export const unknownKind = (names: {
  apiVersion: string
  kind: string
  plural: string
  scope?: Kind['scope']
}): Kind<import('./object.ts').UnknownObject> => {
  const slash = names.apiVersion.indexOf('/')
  return {
    group: slash < 0 ? '' : names.apiVersion.slice(0, slash),
    version: names.apiVersion.slice(slash + 1),
    kind: names.kind,
    plural: names.plural,
    scope: names.scope ?? 'Namespaced',
  }
}

/** `apiVersion` and `kind` of objects of this kind. */
export const typeMeta = (kind: Kind): { apiVersion: string; kind: string } => ({
  apiVersion: apiVersionOf(kind),
  kind: kind.kind,
})

/** `plural.group`, which identifies a resource in maps, logs and messages; without the group for the core group. */
export const resourceName = ({ group, plural }: Pick<Kind, 'group' | 'plural'>): string =>
  group === '' ? plural : `${plural}.${group}`

/** Declares a printer column. */
export const column = (
  name: string,
  jsonPath: string,
  options: { type?: Column['type']; description?: string; priority?: number; format?: string } = {},
): Column => ({ name, jsonPath, ...options, type: options.type ?? 'string' })

/** The column `Age`, usually the last one. */
export const age = (): Column => column('Age', '.metadata.creationTimestamp', { type: 'date' })
