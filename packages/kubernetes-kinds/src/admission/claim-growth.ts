/**
 * Allows a PersistentVolumeClaim to grow only when it is bound, and its storage class allows volume expansion and does not change.
 * Upstream: plugin/pkg/admission/storage/persistentvolume/resize, v1.36.
 */
import { compareAmounts } from '../kinds/checks.ts'
import type { PersistentVolumeClaim, StorageClass } from '../kinds/schemas/types.ts'
import { forbidden, type Plugin } from '@capstan/apiserver/kinds'

export const persistentVolumeClaimResize: Plugin = {
  name: 'PersistentVolumeClaimResize',
  appliesTo: ({ storage }) => storage === 'persistentvolumeclaims',
  validate(write) {
    const { operation, subresource, object, old, store } = write
    if (operation !== 'UPDATE' || subresource !== undefined || !old) return
    const [claim, oldClaim] = [object, old] as unknown as PersistentVolumeClaim[]
    const [size, oldSize] = [claim!.spec.resources.requests?.storage ?? 0, oldClaim!.spec.resources.requests?.storage ?? 0]
    if (compareAmounts(size, oldSize) <= 0) return
    if (oldClaim!.status.phase !== 'Bound') throw forbidden(write, 'Only bound persistent volume claims can be expanded')
    const { storageClassName } = claim!.spec
    const hasSameClass = storageClassName !== undefined && storageClassName === oldClaim!.spec.storageClassName
    const key = { resource: 'storageclasses.storage.k8s.io', namespace: '', name: storageClassName ?? '' }
    const storageClass = hasSameClass ? (store.get(key) as unknown as StorageClass | undefined) : undefined
    if (storageClass?.allowVolumeExpansion === true) return
    throw forbidden(
      write,
      'only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize',
    )
  },
}
