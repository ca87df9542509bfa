import { coreKinds, createCatalog, type Hook, hookCatalog } from '@capstan/api'
import {
  clusterClassAdmission,
  clusterTopologyAdmission,
  deletionAdmission,
  machineNamingAdmission,
  awaitsDeleteHook,
  extensionConfigAdmission,
  featureGateAdmission,
  type FeatureGates,
  ipAddressAdmission,
  ipAddressClaimAdmission,
} from '@capstan/core'
import type { Admission, Clock } from '@capstan/kube'
import { admission, admissionOf } from '@capstan/kube'
import { localKinds } from '@capstan/local'

/**
 * Returns the defaulting and validation of core and local that schemas cannot express. The embedded API server runs them in-process.
 *
 * @param providerHooks hooks that other providers have declared
 * @param clock clock of the wait for a new ClusterClass. Without a clock, the admission of Clusters does not wait.
 * @param gates feature gates. Objects and fields of disabled gates are rejected.
 */
export const providerAdmission = (
  providerHooks: readonly Hook[] = [],
  clock?: Clock,
  gates: FeatureGates = {},
): readonly Admission[] => [
  ...featureGateAdmission(gates),
  extensionConfigAdmission(createCatalog([...hookCatalog, ...providerHooks])),
  ...admissionOf([...coreKinds, ...localKinds]),
  admission(clusterClassAdmission),
  ...(gates.ClusterTopology === false ? [] : [clusterTopologyAdmission(clock)]),
  ipAddressAdmission,
  ipAddressClaimAdmission,
  ...machineNamingAdmission,
  ...(awaitsDeleteHook(gates) ? deletionAdmission([...coreKinds, ...localKinds]) : []),
]
