/**
 * Computes how server-side apply by one manager would change the labels and annotations of an object that other managers label and annotate
 * too. An entry of this manager that is not desired is removed only if managedFields lists no other manager of the entry. The MachineDeployment
 * controller uses this for the MachineSets that it sends to extensions; to write MachineSets, it uses server-side apply (`apply-intent.ts`).
 */
import type { KubeObject, ManagedFieldsEntry } from '@capstan/kube'
import { isRecord } from '@capstan/kube'

export interface WantedMetadata {
  readonly labels: { readonly [key: string]: string }
  readonly annotations: { readonly [key: string]: string }
}

type MapPatch = { [key: string]: string | null }
export interface MetadataPatch {
  labels?: MapPatch
  annotations?: MapPatch
}

/** Returns the merge patch for `object.metadata`; `undefined` when there is no difference. Pure. */
export function metadataPatch(object: KubeObject, manager: string, desired: WantedMetadata): MetadataPatch | undefined {
  const patch: MetadataPatch = {}
  for (const field of ['labels', 'annotations'] as const) {
    const current = object.metadata[field] ?? {}
    const changes: MapPatch = {}
    for (const [key, value] of Object.entries(desired[field])) if (current[key] !== value) changes[key] = value
    for (const key of keysOf(object, field, (entry) => entry.manager === manager)) {
      if (Object.hasOwn(desired[field], key) || !Object.hasOwn(current, key)) continue
      const isShared = keysOf(object, field, (entry) => entry.manager !== manager).includes(key)
      if (!isShared) changes[key] = null
    }
    if (Object.keys(changes).length > 0) patch[field] = changes
  }
  return Object.keys(patch).length > 0 ? patch : undefined
}

/**
 * Returns the keys of the labels or annotations in the `managedFields` entries for which `isIncluded` is true, except entries of
 * subresources.
 */
function keysOf(
  object: KubeObject,
  field: 'labels' | 'annotations',
  isIncluded: (entry: ManagedFieldsEntry) => boolean,
): string[] {
  return (object.metadata.managedFields ?? []).filter(isIncluded).flatMap(({ fieldsV1, subresource }) => {
    const metadata = subresource ? undefined : fieldsV1['f:metadata']
    const owned = isRecord(metadata) ? metadata[`f:${field}`] : undefined
    return isRecord(owned) ? Object.keys(owned).flatMap((key) => (key.startsWith('f:') ? key.slice(2) : [])) : []
  })
}
