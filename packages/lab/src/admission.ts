import { coreKinds, createCatalog, hookCatalog } from '@capstan/api'
import { clusterClassAdmission, clusterTopologyAdmission, machineNamingAdmission, extensionConfigAdmission } from '@capstan/core'
import type { Admission } from '@capstan/kube'
import { admission, admissionOf } from '@capstan/kube'
import { localKinds } from '@capstan/local'

/** What core and local ask of writes beyond their schemas: the embedded API server runs it in-process. */
export const providerAdmission: readonly Admission[] = [
  extensionConfigAdmission(createCatalog(hookCatalog)),
  ...admissionOf([...coreKinds, ...localKinds]),
  admission(clusterClassAdmission),
  admission(clusterTopologyAdmission),
  ...machineNamingAdmission,
]
