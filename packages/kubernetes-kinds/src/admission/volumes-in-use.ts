/**
 * Adds a finalizer to new PersistentVolumes, PersistentVolumeClaims and VolumeAttributesClasses. kube-controller-manager removes the
 * finalizer when the object is being deleted and is not in use. Upstream: plugin/pkg/admission/storage/storageobjectinuseprotection.
 */
import type { Plugin } from '@capstan/apiserver/kinds'

const finalizers: { readonly [storage: string]: string } = {
  persistentvolumes: 'kubernetes.io/pv-protection',
  persistentvolumeclaims: 'kubernetes.io/pvc-protection',
  'volumeattributesclasses.storage.k8s.io': 'kubernetes.io/vac-protection',
}

export const storageObjectInUse: Plugin = {
  name: 'StorageObjectInUseProtection',
  appliesTo: ({ storage }) => Object.hasOwn(finalizers, storage),
  mutate({ operation, subresource, info, object }) {
    if (operation !== 'CREATE' || subresource !== undefined) return
    const finalizer = finalizers[info.storage]!
    const { metadata } = object
    if (!metadata.finalizers?.includes(finalizer)) metadata.finalizers = [...(metadata.finalizers ?? []), finalizer]
  },
}
