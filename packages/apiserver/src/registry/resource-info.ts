/**
 * One version of a resource: names, schema, versions, conversion, and the strategy of its objects (`strategy.ts`). Built from a built-in
 * declaration or from a CustomResourceDefinition (`custom.ts`).
 */
import {
  apiVersionOf,
  draft,
  equal,
  freeze,
  type KubeObject,
  type Structural,
  type UnknownObject,
  type WebhookClientConfig,
  type Work,
} from '@capstan/kube'
import type { Resource } from './resource.ts'
import { cacheKey } from '../store/packed.ts'
import type { Strategy } from './strategy.ts'

export interface ConversionWebhook {
  readonly clientConfig: WebhookClientConfig
  /** Version of the ConversionReview that the webhook receives. */
  readonly reviewVersion: string
}

/** Go type of a built-in kind: how its decoder reads JSON, and its zero value. Upstream: runtime.Scheme and encoding/json. */
export interface GoType {
  /** Reports whether any built-in kind has this apiVersion and kind. */
  isRegistered(apiVersion: unknown, kind: unknown): boolean
  /** Error of the JSON decoder for the first value of the wrong type. */
  jsonProblem(object: object): Work<string | undefined>
  /** Like `jsonProblem`, with the text of Go's converter of maps to structs, which decodes the result of a strategic merge patch. */
  convertedProblem(object: object): Work<string | undefined>
  /** Replaces nulls in a draft by the values that the decoder decodes them to. The types in the draft have been checked. */
  readNulls(object: { [field: string]: unknown }): Work<void>
  /** Value of the type before any field is set. */
  zeroValue(): object
}

export interface ResourceInfo extends Resource {
  /** Absent for custom resources. */
  readonly goType?: GoType
  /** Path in etcd under which upstream stores a built-in resource; absent if the path is the plural name, and for custom resources. */
  readonly storagePath?: string
  /** Name of the resource in the store, the same for all its versions. */
  readonly storage: string
  readonly apiVersion: string
  /** The resource in its storage version; `undefined` if this is the storage version. */
  readonly stored: ResourceInfo | undefined
  /** All versions of a custom resource by apiVersion, including versions that are not served. Absent for built-in kinds. */
  readonly versions?: ReadonlyMap<string, ResourceInfo>
  /** Converts drafts of other versions to this version. Only for built-in kinds. */
  readonly convertFrom?: { readonly [apiVersion: string]: (object: UnknownObject) => void }
  /**
   * Webhook that converts objects of other versions to this version. Without one, the versions of a custom resource differ only in
   * apiVersion and in pruned fields.
   */
  readonly conversion: ConversionWebhook | undefined
  /** The compiled `schema`; compiled at first use. */
  readonly structural: Structural
  /** Whether objects are validated by the schema. Most built-in kinds are validated by code, and the types of their fields by the decoder. */
  readonly validatesSchema: boolean
  /** Whether stored objects may lack defaults that were added later. True only for the storage version of custom resources with defaults. */
  readonly defaultsOnRead: boolean
  /** Error for an unsupported field selector; default: upstream's usual text. */
  readonly unknownFieldSelector?: (field: string) => string
  /** Values of further selectable fields, besides metadata.name and metadata.namespace. */
  readonly selectableFields: { readonly [field: string]: (object: UnknownObject) => string }
  /** Rules for creating, updating and deleting its objects. */
  readonly strategy: Strategy
  /** Error text for creates while the CRD is being deleted. */
  readonly createForbidden: string | undefined
}

/**
 * Converts the object to the version of `info` without a conversion webhook; `Converter.convert` calls webhooks. A built-in kind is
 * converted by its `convertFrom`, if any. For a custom resource, sets the apiVersion and prunes fields that the version lacks. If the object
 * has the storage version, first adds defaults that this version gained after the object was written. Returns the object itself if nothing
 * changes.
 * Repeated calls with the same stored object return the same result, so that caches can use the result as a key.
 */
export function inVersion<T extends KubeObject>(info: ResourceInfo, object: T): T {
  if (!info.defaultsOnRead && object.apiVersion === info.apiVersion) return object
  // A draft may still change, so its result is not cached.
  if (!Object.isFrozen(object)) return viewOf(info, object) as T
  let views = viewsOf.get(info)
  if (!views) viewsOf.set(info, (views = new WeakMap()))
  let view = views.get(object)
  if (!view) {
    const unpacked = cacheKey(object)
    // A packed object has all its defaults if `markDefaulted` has recorded the object from which it was packed.
    view = unpacked && unpacked !== object && views.get(unpacked as KubeObject) === unpacked ? object : viewOf(info, object)
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

export const storageApiVersion = (info: ResourceInfo): string =>
  apiVersionOf({ group: info.storageGroup ?? info.group, version: info.storageVersion })
