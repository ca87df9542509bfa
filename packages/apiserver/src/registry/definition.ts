/**
 * One served version of a resource, with all that the verbs need to know to treat its objects: names, schema, what is defaulted,
 * checked and reset. Made from a built-in declaration (`builtin.ts`) or from a CustomResourceDefinition (`custom.ts`).
 */
import { apiVersionOf, type FieldError, type KubeObject, type Structural, type UnknownObject } from '@capstan/kube'
import type { Resource } from '../engine.ts'

export interface Definition extends Resource {
  /** What the store calls the resource, all versions together. */
  readonly storage: string
  readonly apiVersion: string
  /** Compiled when first needed. */
  readonly structural: Structural
  /** Whether `metadata.generation` counts changes of the specification. */
  readonly generation: boolean
  /** Whether a creation may bring a status along, although there is a status subresource. */
  readonly statusOnCreate: boolean
  /** Values that field selectors may ask for, beside metadata.name and metadata.namespace. */
  readonly fields: { readonly [field: string]: (object: UnknownObject) => string }
  /** What is wrong with a name, as texts. */
  nameProblems(name: string, isPrefix: boolean): string[]
  /** Part of decoding: what it fills in counts as sent by the client. */
  default?(object: UnknownObject, old: UnknownObject | undefined): void
  /** Sets what the client has no say in. */
  prepare?(object: UnknownObject, old: UnknownObject | undefined): void
  /** What the request to delete an object leaves in its status, at the given time. */
  markDeleted?(object: UnknownObject, now: string): void
  validate?(object: UnknownObject, old: UnknownObject | undefined): FieldError[]
  /** Why no object can be created now, while the definition is being deleted. */
  readonly refusesCreates: string | undefined
}

/** The object as the version `definition` shows it. The same stored object always gives the same result, so caches can share it. */
export function inVersion<T extends KubeObject>(definition: Definition, object: T): T {
  if (object.apiVersion === definition.apiVersion) return object
  let views = converted.get(object)
  if (!views) converted.set(object, (views = new Map()))
  let view = views.get(definition.apiVersion)
  if (!view) views.set(definition.apiVersion, (view = Object.freeze({ ...object, apiVersion: definition.apiVersion })))
  return view as T
}
const converted = new WeakMap<KubeObject, Map<string, KubeObject>>()

export const storageApiVersion = (definition: Definition): string =>
  apiVersionOf({ group: definition.group, version: definition.storageVersion })
