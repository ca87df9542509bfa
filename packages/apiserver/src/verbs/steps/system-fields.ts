/** Fields that only the server sets, and parts of an object that a request cannot write. */
import { equal, type UnknownObject } from '@capstan/kube'
import type { ResourceInfo } from '../../registry/resource-info.ts'

/**
 * Copies from `old` the fields that only the server sets. Keeps a uid and deletion fields that the client sent: validation rejects them if
 * they differ.
 */
export function keepSystemFields({ metadata }: UnknownObject, { metadata: old }: UnknownObject): void {
  metadata.resourceVersion = old.resourceVersion
  metadata.creationTimestamp = old.creationTimestamp
  metadata.uid ??= old.uid
  for (const field of ['generation', 'selfLink'] as const) copyField(metadata, old, field)
  for (const field of ['deletionTimestamp', 'deletionGracePeriodSeconds'] as const) {
    if (metadata[field] === undefined) copyField(metadata, old, field)
  }
}

function copyField<T extends object, K extends keyof T>(to: T, from: T, field: K): void {
  if (from[field] === undefined) delete to[field]
  else to[field] = from[field]
}

/**
 * Copies the parts of `old` that a request cannot write. For a subresource, the strategy may declare a function that copies them
 * (`subresourceWrites`). Otherwise, in kinds with a status subresource: a request to /status writes only the status and the metadata (of
 * custom resources, only managedFields); other requests do not write the status.
 */
export function keepOtherParts(
  info: ResourceInfo,
  subresource: string | undefined,
  object: UnknownObject,
  old: UnknownObject,
): void {
  const writes = subresource === undefined ? undefined : info.strategy.subresourceWrites?.[subresource]
  if (writes) return writes(object, old)
  if (!info.statusSubresource) return
  if (subresource === 'status') {
    for (const part of new Set([...Object.keys(object), ...Object.keys(old)])) {
      if (part !== 'status' && part !== 'metadata') copyField(object, old, part)
    }
    // Upstream: built-in kinds accept labels and annotations on /status, custom resources do not.
    if (!info.builtin) {
      const { managedFields } = object.metadata
      object.metadata = { ...old.metadata, ...(managedFields ? { managedFields } : {}) }
    }
  } else copyField(object, old, 'status')
}

/**
 * Sets the generation if the strategy of the kind declares `generation`: to that of `old`, plus one when a part other than metadata changed, or
 * when the strategy counts another change. The status counts only in kinds without a status subresource.
 */
export function countGeneration(
  info: ResourceInfo,
  subresource: string | undefined,
  object: UnknownObject,
  old: UnknownObject,
): void {
  if (!info.strategy.generation) return
  const parts = new Set([...Object.keys(object), ...Object.keys(old)])
  parts.delete('metadata')
  if (info.statusSubresource) parts.delete('status')
  const changed =
    [...parts].some((part) => !equal(object[part], old[part])) ||
    (typeof info.strategy.generation === 'function' && subresource !== 'status' && info.strategy.generation(object, old))
  object.metadata.generation = (old.metadata.generation ?? 0) + (changed ? 1 : 0)
}

/** Reports whether an object is marked as deleted, and neither a finalizer (in metadata or elsewhere) nor a grace period is left. */
export function isDeletionComplete({ strategy }: ResourceInfo, object: UnknownObject): boolean {
  const { deletionTimestamp, finalizers = [], deletionGracePeriodSeconds = 0 } = object.metadata
  if (deletionTimestamp === undefined || finalizers.length > 0 || deletionGracePeriodSeconds > 0) return false
  return !strategy.hasFurtherFinalizers?.(object)
}
