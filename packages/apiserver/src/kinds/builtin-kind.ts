/**
 * How a built-in kind is declared. Names, scope, verbs, subresources and structure come from the catalog (`catalog.ts`); a declaration
 * says what only a server knows of it. Each group has a table of them by resource, and `registry/builtin.ts` joins the tables.
 */
import type { FieldError, JSONSchema, KubeObject, ScaleSubresource, UnknownObject, Verb } from '@capstan/kube'
import type { PrinterColumn, User } from '../engine.ts'
import type { Plane } from '../verbs/plane.ts'

/** `T` is what its objects are once they are decoded: everything that is no pointer in Go is there. */
export interface BuiltinKind<T = UnknownObject> {
  /** Whether `metadata.generation` counts changes of the specification; a function says which others it counts as well. */
  readonly generation?: boolean | ((object: T, old: T) => boolean)
  /** What is wrong with a name, as texts; absent: names are subdomains. */
  readonly names?: (name: string) => string[]
  /** Values that field selectors may ask for, beside metadata.name and metadata.namespace. */
  readonly fields?: { readonly [field: string]: (object: UnknownObject) => string }
  /** What `kubectl get` prints; absent: name and age. */
  readonly columns?: readonly PrinterColumn[]
  /** In which order tables list them; absent: by name. */
  readonly order?: (a: UnknownObject, b: UnknownObject) => number
  /** Of which group version the resource of the same name holds the objects; absent: of its own. */
  readonly storedAs?: string
  /** Brings drafts of the same objects in other versions into this one, which their apiVersion is set to. */
  readonly from?: { readonly [apiVersion: string]: (object: UnknownObject) => void }
  /** Where replicas are, for kinds that have `scale`. */
  readonly scale?: ScaleSubresource
  /** Whether a creation may bring a status along, although there is a status subresource. */
  readonly statusOnCreate?: boolean
  /** Whether a PUT of what is not there creates it. */
  readonly createsOnUpdate?: boolean
  /** Whether a deletion answers with what was deleted, as some do. */
  readonly returnsDeleted?: boolean
  /** What to warn of when somebody deletes without saying what is to become of dependents: they stay. Absent: they go. */
  readonly orphans?: string
  /** What a field selector is told that asks for another field; absent: upstream's usual text. */
  readonly unknownField?: (field: string) => string
  /** In the place of upstream's: for a kind whose objects are validated by it, too. */
  readonly schema?: JSONSchema
  /** Removes from what a client sent what no schema knows to be unknown: the paths of it. */
  tidy?(object: T): string[]
  /** Fills in what a client left out. Part of decoding: counts as sent by the client. Must give the same answer when run again. */
  default?(object: T, old: T | undefined): void
  /** Ends decoding: puts parts in the draft's place that are the same and frozen, so that they are kept rather than copied. */
  share?(object: T, sent: unknown, old: T | undefined): void
  /** Sets what the client has no say in, before validation. */
  prepare?(object: T, old: T | undefined, context: WriteContext): void
  /** What is wrong with the object, in upstream's order. */
  validate?(object: T, old: T | undefined, context: WriteContext): FieldError[]
  /** What the client should know, although nothing is wrong. */
  warnings?(object: T, old: T | undefined, context: WriteContext): string[]
  /** Paths of fields that nobody comes to own through a subresource, the empty one being the object itself; absent: the usual ones. */
  readonly resets?: { readonly [subresource: string]: readonly (readonly string[])[] }
  /** For subresources that write a part of the object: brings a draft back to what it was, but for that part. */
  readonly writes?: { readonly [subresource: string]: (object: T, old: T) => void }
  /** Told with every answer, where the kind is on its way out. */
  readonly deprecation?: string
  /** How many seconds an object has to end in good order, of those that are asked for; absent: it goes at once. */
  gracePeriod?(object: T, requested: number | undefined): number
  /** What the request to delete an object leaves in its status, at the given time. */
  markDeleted?(object: T, now: string): void
}

/** What is known of a write beside the object. */
export interface WriteContext {
  readonly subresource: string | undefined
  readonly verb: Verb
  /** Where the object will be. */
  readonly plane: Plane
  readonly caller: User
  readonly warn: (text: string) => void
}

/** The kinds of one group version, by plural. Methods take what they like: the catalog holds that objects are of their kind. */
export interface KindTable {
  readonly [plural: string]: BuiltinKind<never>
}

/** A kind whose defaults and validation are declared in `@capstan/kube`, for whoever needs them without a server. */
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
