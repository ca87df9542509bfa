/**
 * Volumes and claims stay while something uses them: their controllers take the finalizer away.
 * Upstream: plugin/pkg/admission/storage/storageobjectinuseprotection.
 */
import type { Plugin } from './plugin.ts'

const finalizers: { readonly [storage: string]: string } = {
  persistentvolumes: 'kubernetes.io/pv-protection',
  persistentvolumeclaims: 'kubernetes.io/pvc-protection',
  'volumeattributesclasses.storage.k8s.io': 'kubernetes.io/vac-protection',
}

export const storageObjectInUse: Plugin = {
  name: 'StorageObjectInUseProtection',
  concerns: ({ storage }) => Object.hasOwn(finalizers, storage),
  mutate({ operation, subresource, definition, object }) {
    if (operation !== 'CREATE' || subresource !== undefined) return
    const finalizer = finalizers[definition.storage]!
    const { metadata } = object
    if (!metadata.finalizers?.includes(finalizer)) metadata.finalizers = [...(metadata.finalizers ?? []), finalizer]
  },
}
