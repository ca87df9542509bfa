/**
 * Declares built-in kinds. Names, scope, verbs, subresources and most schemas come from the catalog (`catalog.ts`); a declaration adds what
 * the catalog does not contain, such as functions. Each group version has a table of declarations by resource, and
 * `builtin-resources.ts` joins the tables.
 */
import type { FieldError, JSONSchema, KubeObject, ScaleSubresource, UnknownObject } from '@capstan/kube'
import type { PrinterColumn, Strategy } from '@capstan/apiserver/kinds'

/**
 * Declaration of a kind: its strategy, and data about the resource that the catalog does not contain. `T` is the type of
 * decoded objects. Unless the declaration replaces the schema, every struct that is not a pointer in Go, and every scalar that Go's encoder
 * does not omit, is present in them.
 */
export interface BuiltinKind<T = UnknownObject> extends Omit<Strategy<T>, 'nameProblems' | 'normalize'> {
  /** Validates a name and returns error messages; default: names are DNS subdomains. */
  readonly names?: (name: string) => string[]
  /** Values of further selectable fields, besides metadata.name and metadata.namespace. */
  readonly selectableFields?: { readonly [field: string]: (object: UnknownObject) => string }
  /** Returns the error text for an unsupported field selector; default: upstream's usual text. */
  readonly unknownFieldSelector?: (field: string) => string
  /** Columns of `kubectl get`; default: name and creation time. */
  readonly columns?: readonly PrinterColumn[]
  /** Sort order of tables; default: the order of lists. */
  readonly order?: (a: UnknownObject, b: UnknownObject) => number
  /**
   * Group version under which the objects are stored, when another group or version serves the same objects (Events,
   * HorizontalPodAutoscalers); default: the kind's own group version.
   */
  readonly storedAs?: string
  /** Converts drafts of other versions to this version, in place; the server then sets their apiVersion. */
  readonly convertFrom?: { readonly [apiVersion: string]: (object: UnknownObject) => void }
  /** Paths of replicas, for kinds with the `scale` subresource. */
  readonly scale?: ScaleSubresource
  /** Replaces the schema of the catalog. Objects are also validated by this schema, but not by a schema of the catalog. */
  readonly schema?: JSONSchema
  /** Deprecation warning, sent with every response. */
  readonly deprecation?: string
}

/** Kinds of one group version, by plural. `never`, because each kind has its own type of objects. */
export interface KindTable {
  readonly [plural: string]: BuiltinKind<never>
}

/**
 * Converts `default` and `validate` of a kind that `@capstan/kube` declares to functions of a strategy. They always get `dryRun` false,
 * because a strategy does not know whether a request is a dry run.
 */
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
