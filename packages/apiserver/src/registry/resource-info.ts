/**
 * One served version of a resource with everything that the verbs need: names, schema, defaulting, validation, field resets. Built from a
 * built-in declaration or from a CustomResourceDefinition (`custom.ts`).
 */
import {
  apiVersionOf,
  type Clock,
  draft,
  equal,
  freeze,
  type FieldError,
  type KubeObject,
  type Random,
  type Structural,
  type UnknownObject,
  type Verb,
  type WebhookClientConfig,
} from '@capstan/kube'
import type { Resource } from './resource.ts'
import type { Authorizer } from '../auth/authorizer.ts'
import type { User } from '../auth/user.ts'
import { inMemory } from '../store/packed.ts'
import type { PendingWrites } from '../store/pending.ts'
import type { Store } from '../store/store.ts'

export interface ConversionWebhook {
  readonly clientConfig: WebhookClientConfig
  /** Version of the ConversionReview that the webhook accepts. */
  readonly reviewVersion: string
}

/** A write as strategies receive it. */
export interface WriteContext {
  readonly subresource: string | undefined
  readonly verb: Verb
  /** Namespace of the request. */
  readonly namespace: string | undefined
  /** The server that will store the object. */
  readonly server: WriteServices
  readonly caller: User
  readonly warn: (text: string) => void
}

/** Parts of a server that strategies use. */
export interface WriteServices {
  readonly store: Store
  readonly pending: PendingWrites
  readonly clock: Clock
  readonly random: Random
  readonly authorizer: Authorizer
  /** State that the package of built-in kinds keeps for each server. The server itself does not look into it. */
  readonly kindState: unknown
}

/** Go type of a built-in kind: how its decoder reads JSON, and its zero value. Upstream: runtime.Scheme and encoding/json. */
export interface GoType {
  /** Reports whether any built-in kind has this apiVersion and kind. */
  isRegistered(apiVersion: unknown, kind: unknown): boolean
  /** Error of the JSON decoder for the first value of the wrong type. */
  jsonProblem(object: object): string | undefined
  /** Error of the converter from maps to structs, which reads the result of a strategic merge patch, for the same value. */
  convertedProblem(object: object): string | undefined
  /** Replaces nulls in a draft, whose types have been checked, by what the decoder reads them as. */
  readNulls(object: { [field: string]: unknown }): void
  /** Value of the type before any field is set. */
  blank(): object
}

export interface ResourceInfo extends Resource {
  /** Absent for custom resources. */
  readonly goType?: GoType
  /** Path in etcd under which upstream stores the resource, where that is not its plural. */
  readonly storagePath?: string
  /** Name of the resource in the store, the same for all its versions. */
  readonly storage: string
  readonly apiVersion: string
  /** The storage version, when it is another one. */
  readonly stored: ResourceInfo | undefined
  /** For custom resources: all versions of the definition by apiVersion, also those that are not served. */
  readonly versions?: ReadonlyMap<string, ResourceInfo>
  /** For built-in kinds: converts drafts of other versions to this version. */
  readonly convertFrom?: { readonly [apiVersion: string]: (object: UnknownObject) => void }
  /** Converts objects of other versions to this one; absent: versions differ only in apiVersion and in pruned fields. */
  readonly conversion: ConversionWebhook | undefined
  /** Compiled when first needed. */
  readonly structural: Structural
  /**
   * Whether objects are validated against the schema. Most built-in kinds are validated by code, and their types are checked by the
   * decoder.
   */
  readonly validatesSchema: boolean
  /** Whether `metadata.generation` counts changes of the spec; a function reports further changes that it counts. */
  readonly generation: boolean | ((object: UnknownObject, old: UnknownObject) => boolean)
  /** Whether stored objects may lack defaults that were added later. */
  readonly defaultsOnRead: boolean
  /** Whether a create keeps the status, although there is a status subresource. */
  readonly statusOnCreate: boolean
  /** Whether a PUT of an object that does not exist creates it. */
  readonly createsOnUpdate: boolean
  /** Whether a deletion returns the deleted object instead of a Status. */
  readonly returnsDeleted: boolean
  /** Warning for a deletion without a propagation policy, which orphans dependents; absent: dependents are deleted. */
  readonly orphanWarning?: string
  /** Error for an unsupported field selector; default: upstream's usual text. */
  readonly unknownFieldSelector?: (field: string) => string
  /** Values of further selectable fields, besides metadata.name and metadata.namespace. */
  readonly selectableFields: { readonly [field: string]: (object: UnknownObject) => string }
  /** Validates a name and returns error messages. */
  nameProblems(name: string, isPrefix: boolean): string[]
  /** Prunes unknown fields that the schema cannot detect from a draft; returns their paths. */
  pruneUnknown?(object: UnknownObject): string[]
  /** Part of decoding: normalizes a draft to the form that the server stores. */
  normalize?(object: UnknownObject): void
  /** Part of decoding: sets defaults, which count as sent by the client. */
  default?(object: UnknownObject, old: UnknownObject | undefined): void
  /** Last step of decoding: replaces parts of the draft by equal frozen parts, so that they are shared instead of copied. */
  reuseFrozen?(object: UnknownObject, sent: unknown, old: UnknownObject | undefined): void
  /** Sets fields that only the server sets. */
  prepare?(object: UnknownObject, old: UnknownObject | undefined, context: WriteContext): void
  /**
   * Authorizes what the write grants, beyond the write itself.
   * @throws StatusError Forbidden, or NotFound for an object that the write refers to
   */
  authorize?(object: UnknownObject, old: UnknownObject | undefined, context: WriteContext): void
  /** Fields excluded from managedFields for each subresource; default: the usual fields. Upstream: resetFields. */
  readonly resetFields?: { readonly [subresource: string]: readonly (readonly string[])[] }
  /** For subresources other than `status`: resets the parts of a draft that they do not write. */
  readonly subresourceWrites?: { readonly [subresource: string]: (object: UnknownObject, old: UnknownObject) => void }
  /** Returns the grace period of a deletion in seconds, from the requested one. */
  gracePeriod?(object: UnknownObject, requested: number | undefined): number
  /** Updates the status of an object when its deletion is requested, at the given time. */
  markDeleted?(object: UnknownObject, now: string): void
  validate?(object: UnknownObject, old: UnknownObject | undefined, context: WriteContext): FieldError[]
  /** Returns warnings for a valid object. */
  warnings?(object: UnknownObject, old: UnknownObject | undefined, context: WriteContext): string[]
  /** Why no object can be created while the CRD is being deleted. */
  readonly createForbidden: string | undefined
}

/**
 * Shows the object in the version of `info`, when that needs no conversion webhook (see `Converter.show`): sets its apiVersion, prunes
 * fields that the version does not know, and, in the storage version, adds defaults that the CRD gained since the object was written. The
 * same stored object always gives the same result, and the object itself when nothing changes, so that caches can share it.
 */
export function inVersion<T extends KubeObject>(info: ResourceInfo, object: T): T {
  if (!info.defaultsOnRead && object.apiVersion === info.apiVersion) return object
  // A draft may still change.
  if (!Object.isFrozen(object)) return viewOf(info, object) as T
  let views = viewsOf.get(info)
  if (!views) viewsOf.set(info, (views = new WeakMap()))
  let view = views.get(object)
  if (!view) {
    const inside = inMemory(object)
    // `markDefaulted` recorded that it has all its defaults.
    view = inside && inside !== object && views.get(inside as KubeObject) === inside ? object : viewOf(info, object)
    views.set(object, view)
  }
  return view as T
}
const viewsOf = new WeakMap<ResourceInfo, WeakMap<KubeObject, KubeObject>>()

function viewOf(info: ResourceInfo, object: KubeObject): KubeObject {
  const { apiVersion, defaultsOnRead, structural, stored, convertFrom } = info
  const convert = convertFrom?.[object.apiVersion]
  if (convert) {
    const view = draft(object)
    convert(view as UnknownObject)
    view.apiVersion = apiVersion
    return freeze(view)
  }
  if (object.apiVersion !== apiVersion && !info.builtin) {
    const view = draft(stored && stored.apiVersion === object.apiVersion ? inVersion(stored, object) : object)
    view.apiVersion = apiVersion
    structural.prune(view)
    return freeze(view)
  }
  if (defaultsOnRead) {
    const completed = draft(object)
    structural.default(completed)
    if (!equal(completed, object)) return freeze({ ...completed, apiVersion })
  }
  return object.apiVersion === apiVersion ? object : Object.freeze({ ...object, apiVersion })
}

/** Records that the object, about to be stored, has all its defaults, so that reads need not check it again. */
export function markDefaulted(info: ResourceInfo, object: KubeObject): void {
  if (!info.defaultsOnRead || object.apiVersion !== info.apiVersion) return
  let views = viewsOf.get(info)
  if (!views) viewsOf.set(info, (views = new WeakMap()))
  views.set(object, object)
}

/** Replaces a trailing dash for validation: a name prefix may end in a dash, because a random suffix follows. */
export const maskTrailingDash = (name: string): string => (name.length > 1 && name.endsWith('-') ? `${name.slice(0, -1)}a` : name)

export const storageApiVersion = (info: ResourceInfo): string =>
  apiVersionOf({ group: info.storageGroup ?? info.group, version: info.storageVersion })
