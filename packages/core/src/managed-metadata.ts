/**
 * Labels and annotations that one controller keeps on objects which others label, too. What it has set before and no longer wants
 * must go, and nothing else: managed fields are the memory of who set what, so that a merge patch does what upstream uses
 * server-side apply for, and only when something differs. See docs/adr/0005-merge-patches-for-propagation.md.
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

/** What to patch into `object.metadata`; `undefined` when everything is as `manager` wants it. Pure. */
export function metadataPatch(object: KubeObject, manager: string, wanted: WantedMetadata): MetadataPatch | undefined {
  const patch: MetadataPatch = {}
  for (const field of ['labels', 'annotations'] as const) {
    const present = object.metadata[field] ?? {}
    const changes: MapPatch = {}
    for (const [key, value] of Object.entries(wanted[field])) if (present[key] !== value) changes[key] = value
    for (const key of keysOf(object, field, (entry) => entry.manager === manager)) {
      if (Object.hasOwn(wanted[field], key) || !Object.hasOwn(present, key)) continue
      const isShared = keysOf(object, field, (entry) => entry.manager !== manager).includes(key)
      if (!isShared) changes[key] = null
    }
    if (Object.keys(changes).length > 0) patch[field] = changes
  }
  return Object.keys(patch).length > 0 ? patch : undefined
}

/** Keys of a map in metadata that some managers own. */
function keysOf(object: KubeObject, field: 'labels' | 'annotations', of: (entry: ManagedFieldsEntry) => boolean): string[] {
  return (object.metadata.managedFields ?? []).filter(of).flatMap(({ fieldsV1, subresource }) => {
    const metadata = subresource ? undefined : fieldsV1['f:metadata']
    const owned = isRecord(metadata) ? metadata[`f:${field}`] : undefined
    return isRecord(owned) ? Object.keys(owned).flatMap((key) => (key.startsWith('f:') ? key.slice(2) : [])) : []
  })
}
