/**
 * One served version of a resource, with all that the verbs need to know to treat its objects: names, schema, what is defaulted,
 * checked and reset. Made from a built-in declaration (`builtin.ts`) or from a CustomResourceDefinition (`custom.ts`).
 */
import {
  apiVersionOf,
  draft,
  equal,
  freeze,
  type FieldError,
  type KubeObject,
  type Structural,
  type UnknownObject,
  type WebhookClientConfig,
} from '@capstan/kube'
import type { Resource } from '../engine.ts'
import type { WriteContext } from '../kinds/builtin-kind.ts'
import { inMemory } from '../store/packed.ts'

export interface ConversionWebhook {
  readonly clientConfig: WebhookClientConfig
  /** Version of the ConversionReview that it is sent. */
  readonly reviewVersion: string
}

export interface Definition extends Resource {
  /** What the store calls the resource, all versions together. */
  readonly storage: string
  readonly apiVersion: string
  /** The version in which objects are stored, where that is another one. */
  readonly stored: Definition | undefined
  /** For built-in kinds: brings drafts of the same objects in other versions into this one. */
  readonly from?: { readonly [apiVersion: string]: (object: UnknownObject) => void }
  /** Who brings objects of other versions into this one; absent: versions differ in what they are called, and in what they drop. */
  readonly conversion: ConversionWebhook | undefined
  /** Compiled when first needed. */
  readonly structural: Structural
  /** Whether objects must satisfy their schema; those of most built-in kinds are checked by code, and have the types of their schema. */
  readonly validatesSchema: boolean
  /** Whether `metadata.generation` counts changes of the specification; a function says which others it counts as well. */
  readonly generation: boolean | ((object: UnknownObject, old: UnknownObject) => boolean)
  /** Whether objects that were stored earlier may lack defaults. */
  readonly completesOnRead: boolean
  /** Whether a creation may bring a status along, although there is a status subresource. */
  readonly statusOnCreate: boolean
  /** Whether a PUT of what is not there creates it. */
  readonly createsOnUpdate: boolean
  /** Whether a deletion answers with what was deleted. */
  readonly returnsDeleted: boolean
  /** What to warn of when a deletion that says nothing of dependents leaves them; absent: they go. */
  readonly orphans?: string
  /** What a field selector is told that asks for another field; absent: upstream's usual text. */
  readonly unknownField?: (field: string) => string
  /** Values that field selectors may ask for, beside metadata.name and metadata.namespace. */
  readonly fields: { readonly [field: string]: (object: UnknownObject) => string }
  /** What is wrong with a name, as texts. */
  nameProblems(name: string, isPrefix: boolean): string[]
  /** Removes what no schema knows to be unknown from a draft, and says what that was. */
  tidy?(object: UnknownObject): string[]
  /** Part of decoding: brings a draft into the form that the server keeps. */
  normalize?(object: UnknownObject): void
  /** Part of decoding: what it fills in counts as sent by the client. */
  default?(object: UnknownObject, old: UnknownObject | undefined): void
  /** Ends decoding: puts parts in the draft's place that are the same and frozen, so that they are kept rather than copied. */
  share?(object: UnknownObject, sent: unknown, old: UnknownObject | undefined): void
  /** Sets what the client has no say in. */
  prepare?(object: UnknownObject, old: UnknownObject | undefined, context: WriteContext): void
  /** Paths of fields that nobody comes to own through a subresource; absent: the usual ones. */
  readonly resets?: { readonly [subresource: string]: readonly (readonly string[])[] }
  /** What a write through a subresource other than `status` leaves as it was. */
  readonly writes?: { readonly [subresource: string]: (object: UnknownObject, old: UnknownObject) => void }
  /** How many seconds an object has to end in good order, of those that are asked for. */
  gracePeriod?(object: UnknownObject, requested: number | undefined): number
  /** What the request to delete an object leaves in its status, at the given time. */
  markDeleted?(object: UnknownObject, now: string): void
  validate?(object: UnknownObject, old: UnknownObject | undefined, context: WriteContext): FieldError[]
  /** What the client should know, although nothing is wrong. */
  warnings?(object: UnknownObject, old: UnknownObject | undefined, context: WriteContext): string[]
  /** Why no object can be created now, while the definition is being deleted. */
  readonly refusesCreates: string | undefined
}

/**
 * The object as the version `definition` shows it, where no webhook need be asked for that (see `Converter.show`): with its
 * apiVersion, without what this version does not know, and, in the version that is stored, with defaults that the definition has
 * gained since the object was written. The same stored object always gives the same result, the object itself where nothing is to
 * be done, so caches can share it.
 */
export function inVersion<T extends KubeObject>(definition: Definition, object: T): T {
  if (!definition.completesOnRead && object.apiVersion === definition.apiVersion) return object
  // A draft may still change.
  if (!Object.isFrozen(object)) return viewOf(definition, object) as T
  let views = viewsOf.get(definition)
  if (!views) viewsOf.set(definition, (views = new WeakMap()))
  let view = views.get(object)
  if (!view) {
    const inside = inMemory(object)
    // Whoever stored it knew that it has all its defaults.
    view = inside && inside !== object && views.get(inside as KubeObject) === inside ? object : viewOf(definition, object)
    views.set(object, view)
  }
  return view as T
}
const viewsOf = new WeakMap<Definition, WeakMap<KubeObject, KubeObject>>()

function viewOf(definition: Definition, object: KubeObject): KubeObject {
  const { apiVersion, completesOnRead, structural, stored, from } = definition
  const convert = from?.[object.apiVersion]
  if (convert) {
    const view = draft(object)
    convert(view as UnknownObject)
    view.apiVersion = apiVersion
    return freeze(view)
  }
  if (object.apiVersion !== apiVersion && !definition.builtin) {
    const view = draft(stored && stored.apiVersion === object.apiVersion ? inVersion(stored, object) : object)
    view.apiVersion = apiVersion
    structural.prune(view)
    return freeze(view)
  }
  if (completesOnRead) {
    const completed = draft(object)
    structural.default(completed)
    if (!equal(completed, object)) return freeze({ ...completed, apiVersion })
  }
  return object.apiVersion === apiVersion ? object : Object.freeze({ ...object, apiVersion })
}

/** Says that the object, about to be stored, has all its defaults: reading it need not look again. */
export function isComplete(definition: Definition, object: KubeObject): void {
  if (!definition.completesOnRead || object.apiVersion !== definition.apiVersion) return
  let views = viewsOf.get(definition)
  if (!views) viewsOf.set(definition, (views = new WeakMap()))
  views.set(object, object)
}

export const storageApiVersion = (definition: Definition): string =>
  apiVersionOf({ group: definition.storageGroup ?? definition.group, version: definition.storageVersion })
