/** Decides whether applying a desired object would change the existing object: compares fields and managedFields, without a dry run. */
import {
  equal,
  type Input,
  isRecord,
  keyOf,
  keyText,
  type KubeObject,
  type ManagedFieldsEntry,
  readJSON,
  type UnknownObject,
  writeJSON,
} from '@capstan/kube'
import { digest } from './digest.ts'

/** Field manager of topologies. Upstream: structuredmerge.TopologyManagerName. */
export const TopologyManager = 'capi-topology'

/**
 * Returns the prefix of the error when a write or a dry run for an existing object fails. Upstream reports the error of its dry run, with this
 * text.
 */
export const dryRunError = (kind: string, object: KubeObject): string =>
  `failed to create patch helper for ${kind} ${keyText(keyOf(object))}: server side apply dry-run failed for modified object`

/**
 * Result of `difference`: `spec` when the apply would change a value outside of `metadata`. Otherwise `metadata` when it would change labels,
 * annotations or owners, or when `TopologyManager` does not own a desired field yet.
 */
export type Difference = 'none' | 'metadata' | 'spec'

/**
 * Returns how `current` differs from the result of applying `desired`. May report a difference where the server would see none (list items
 * with defaults, a mutating webhook).
 */
export function difference(desired: Input<UnknownObject>, current: KubeObject): Difference {
  const applied = appliedEntry(current, desired.apiVersion ?? current.apiVersion)
  const { metadata, apiVersion: _v, kind: _k, ...body } = desired
  const { metadata: currentMetadata, apiVersion: _cv, kind: _ck, ...currentBody } = current as UnknownObject
  const { metadata: ownedMetadata, body: ownedBody } = splitMetadata(applied?.fieldsV1 ?? {})
  if (memberChanges(body, currentBody, ownedBody)) return 'spec'
  const { labels, annotations, ownerReferences } = metadata
  const settable = { labels, annotations, ownerReferences }
  if (memberChanges(settable, { ...currentMetadata }, ownedMetadata)) return 'metadata'
  return applied === undefined || !ownsMembers(body, ownedBody) || !ownsMembers(settable, ownedMetadata) ? 'metadata' : 'none'
}

/**
 * Returns the managedFields entry for applies by `TopologyManager`; `undefined` if there is none, or if it is for another version of the
 * kind, so that one apply updates the entry.
 */
const appliedEntry = ({ metadata }: KubeObject, apiVersion: string): ManagedFieldsEntry | undefined =>
  metadata.managedFields?.find(
    (entry) =>
      entry.manager === TopologyManager && entry.operation === 'Apply' && entry.apiVersion === apiVersion && !entry.subresource,
  )

type Fields = Readonly<Record<string, unknown>>

function splitMetadata({ 'f:metadata': metadata, ...body }: Fields): { metadata: Fields; body: Fields } {
  return { metadata: fieldsOf(metadata), body }
}
const fieldsOf = (value: unknown): Fields => (isRecord(value) ? value : {})

/** The owned fields below a field in managedFields: empty if the field is owned as a whole, `undefined` if it is not owned. */
type Owned = Fields | undefined

const ownedBelow = (owned: Owned, entry: string): Owned => {
  const value = owned?.[entry]
  return isRecord(value) ? value : undefined
}
/** Whether a map or list is owned as a whole: it is atomic, or was applied without members. */
const isOwnedAsWhole = (owned: Owned): boolean => owned !== undefined && Object.keys(owned).length === 0

/** Whether an apply would change `current`: a desired value differs, or a previously applied member is no longer desired. */
function changes(desired: unknown, current: unknown, owned: Owned): boolean {
  if (Array.isArray(desired)) return listChanges(desired, current, owned)
  if (!isRecord(desired)) return !equal(desired, current)
  if (!isRecord(current)) return true
  // An apply replaces an atomic map, with the members of other managers.
  const isDesired = (name: string) => desired[name] !== undefined
  if (isOwnedAsWhole(owned) && !Object.keys(current).every(isDesired)) return true
  return memberChanges(desired, current, owned)
}

function memberChanges(desired: Fields, current: Fields, owned: Owned): boolean {
  for (const [name, value] of Object.entries(desired)) {
    if (value !== undefined && changes(value, current[name], ownedBelow(owned, `f:${name}`))) return true
  }
  return Object.keys(owned ?? {}).some((field) => field.startsWith('f:') && desired[field.slice(2)] === undefined)
}

function listChanges(desired: readonly unknown[], current: unknown, owned: Owned): boolean {
  if (equal(desired, current)) return false
  if (!Array.isArray(current)) return true
  const items = keyedItems(owned)
  // Without keyed items, the list is atomic or a set, or `TopologyManager` has not applied it yet: any difference counts.
  if (!items) return true
  let previous = -1
  const changed = desired.some((item) => {
    const index = current.findIndex((candidate) => items.haveSameKey(candidate, item))
    // The server puts the applied items in the order of the applied list. Items of other managers stay in between.
    const isMoved = index < previous
    previous = index
    return isMoved || changes(item, current[index], items.ownedOf(item))
  })
  return changed || items.keys.some((key) => !desired.some((item) => items.haveSameKey(key, item)))
}

/** Returns the owned items of a list whose items have keys; `undefined` if none is owned. */
function keyedItems(owned: Owned) {
  const entries = Object.keys(owned ?? {}).filter((field) => field.startsWith('k:'))
  if (entries.length === 0) return undefined
  const keys = entries.map((entry) => readJSON(entry.slice(2)) as Fields)
  const names = Object.keys(keys[0]!)
  const haveSameKey = (a: unknown, b: unknown) => isRecord(a) && isRecord(b) && names.every((name) => equal(a[name], b[name]))
  const ownedOf = (item: unknown): Owned => {
    const index = keys.findIndex((key) => haveSameKey(key, item))
    return index < 0 ? undefined : ownedBelow(owned, entries[index]!)
  }
  return { keys, haveSameKey, ownedOf }
}

/** Whether `TopologyManager` owns all desired fields. Empty maps and lists need no owner. */
function owns(desired: unknown, owned: Owned): boolean {
  if (desired === undefined || desired === null || isOwnedAsWhole(owned)) return true
  if (isRecord(desired)) return ownsMembers(desired, owned)
  if (!Array.isArray(desired)) return owned !== undefined
  const items = keyedItems(owned)
  if (items) return desired.every((item) => owns(item, items.ownedOf(item)))
  const values = Object.keys(owned ?? {}).flatMap((field) => (field.startsWith('v:') ? [readJSON(field.slice(2))] : []))
  return desired.every((item) => values.some((value) => equal(value, item)))
}

const ownsMembers = (desired: Fields, owned: Owned): boolean =>
  Object.entries(desired).every(([name, value]) => owns(value, ownedBelow(owned, `f:${name}`)))

/**
 * Remembers each applied object, and which fields `TopologyManager` owned after the apply. While neither changes, no apply is needed, even
 * if a webhook or a default makes the desired and the current object look different.
 */
export class AppliedObjects {
  readonly #applied = new Map<string, { readonly desiredHash: string; readonly fieldsHash: string }>()

  /** Records an applied object with the server's response. Must be called after every apply. */
  record(desired: Input<UnknownObject>, response: KubeObject): void {
    this.#applied.set(response.metadata.uid, { desiredHash: hashOf(desired), fieldsHash: this.#fieldsHash(desired, response) })
  }

  /** Whether `desired` was applied last, and `TopologyManager` still owns the same fields of `current`. */
  isCurrent(desired: Input<UnknownObject>, current: KubeObject): boolean {
    const applied = this.#applied.get(current.metadata.uid)
    return (
      applied !== undefined &&
      applied.desiredHash === hashOf(desired) &&
      applied.fieldsHash === this.#fieldsHash(desired, current)
    )
  }

  forget(uid: string): void {
    this.#applied.delete(uid)
  }

  /** Returns a hash of the fields that `TopologyManager` owns: applied fields that no other manager has changed since the last apply. */
  #fieldsHash(desired: Input<UnknownObject>, object: KubeObject): string {
    return hashOf(appliedEntry(object, desired.apiVersion ?? object.apiVersion)?.fieldsV1 ?? {})
  }
}

const hashOf = (value: unknown): string => digest(writeJSON(value))
