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
 * What core and local ask of writes beyond their schemas: the embedded API server runs it in-process.
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
