import { persistentVolumeClaimResize } from './claim-growth.ts'
import type { Plugin } from '@capstan/apiserver/kinds'
import { alwaysDeny } from './always-deny.ts'
import { ownerReferences } from './owner-references.ts'
import { defaultIngressClass, defaultStorageClass } from './default-classes.ts'
import { podSecurity } from './pod-security/pod-security.ts'
import { priority } from './priority.ts'
import { limitRanger } from './limit-ranger.ts'
import { taintNodesByCondition } from './new-nodes.ts'
import { defaultTolerationSeconds, type TolerationSeconds } from './pod-tolerations.ts'
import { runtimeClass } from './runtime-class.ts'
import { certificateApproval, certificateSigning, certificateSubjectRestriction } from './signing-requests.ts'
import { resourceQuota } from './resource-quota.ts'
import { serviceAccount } from './service-account.ts'
import { storageObjectInUse } from './volumes-in-use.ts'

/**
 * Returns the plugins of this package, in the order in which upstream calls them. `@capstan/apiserver` implements
 * NamespaceLifecycle, webhooks and ValidatingAdmissionPolicies; AlwaysAdmit needs no code. `plugin-names.ts` lists all plugins
 * of upstream, also those that are not implemented.
 */
export const pluginsWith = (tolerationSeconds: TolerationSeconds): readonly Plugin[] => [
  limitRanger,
  serviceAccount,
  taintNodesByCondition,
  podSecurity,
  priority,
  defaultTolerationSeconds(tolerationSeconds),
  defaultStorageClass,
  storageObjectInUse,
  ownerReferences,
  persistentVolumeClaimResize,
  runtimeClass,
  certificateApproval,
  certificateSigning,
  certificateSubjectRestriction,
  defaultIngressClass,
  resourceQuota,
  alwaysDeny,
]
