/** The kinds of `storage.k8s.io/v1`. */
import type { KindTable } from './builtin-kind.ts'
import { csidrivers } from './storage/csi-driver.ts'
import { csinodes } from './storage/csi-node.ts'
import { csistoragecapacities } from './storage/csi-storage-capacity.ts'
import { storageclasses } from './storage/storage-class.ts'
import { volumeattachments } from './storage/volume-attachment.ts'
import { volumeattributesclasses } from './storage/volume-attributes-class.ts'

export const storage: KindTable = {
  csidrivers,
  csinodes,
  csistoragecapacities,
  storageclasses,
  volumeattachments,
  volumeattributesclasses,
}
