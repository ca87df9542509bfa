import { coreKinds, createCatalog, type Hook, hookCatalog } from '@capstan/api'
import {
  clusterClassAdmission,
  clusterTopologyAdmission,
  deletionAdmission,
  machineNamingAdmission,
  extensionConfigAdmission,
  ipAddressAdmission,
  ipAddressClaimAdmission,
} from '@capstan/core'
import type { Admission } from '@capstan/kube'
import { admission, admissionOf } from '@capstan/kube'
import { localKinds } from '@capstan/local'

/**
 * Returns the admission of core and local beyond schemas, which the embedded API server runs in-process.
 *
 * @param providerHooks hooks that other providers have declared
 */
export const providerAdmission = (providerHooks: readonly Hook[] = []): readonly Admission[] => [
  extensionConfigAdmission(createCatalog([...hookCatalog, ...providerHooks])),
  ...admissionOf([...coreKinds, ...localKinds]),
  admission(clusterClassAdmission),
  admission(clusterTopologyAdmission),
  ipAddressAdmission,
  ipAddressClaimAdmission,
  ...machineNamingAdmission,
  ...deletionAdmission([...coreKinds, ...localKinds]),
]
