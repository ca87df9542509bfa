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
 * Returns the defaulting and validation that schemas cannot express, for the kinds of the core and local providers. The embedded API server
 * runs them in-process; `capstan manager` serves them as webhooks.
 *
 * @param providerHooks hooks that other providers have declared
 * @param clock clock for the wait until the ClusterClass of a Cluster exists and is reconciled. Without a clock, admission does not wait.
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
