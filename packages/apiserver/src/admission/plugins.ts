import { persistentVolumeClaimResize } from './claim-growth.ts'
import type { Definition } from '../registry/definition.ts'
import { alwaysDeny } from './always-deny.ts'
import { ownerReferences } from './owner-references.ts'
import { defaultIngressClass, defaultStorageClass } from './default-classes.ts'
import type { AdmissionPlugin } from './plugin-names.ts'
import type { Plugin } from './plugin.ts'
import { podSecurity } from './pod-security/pod-security.ts'
import { priority } from './priority.ts'
import { limitRanger } from './limit-ranger.ts'
import { taintNodesByCondition } from './new-nodes.ts'
import { defaultTolerationSeconds, type Patience } from './pod-tolerations.ts'
import { runtimeClass } from './runtime-class.ts'
import { certificateApproval, certificateSigning, certificateSubjectRestriction } from './signing-requests.ts'
import { resourceQuota } from './resource-quota.ts'
import { serviceAccount } from './service-account.ts'
import { storageObjectInUse } from './volumes-in-use.ts'

/** In the order in which upstream asks them. */
const pluginsWith = (patience: Patience): readonly Plugin[] => [
  limitRanger,
  serviceAccount,
  taintNodesByCondition,
  podSecurity,
  priority,
  defaultTolerationSeconds(patience),
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

/** The plugins that are on and concern a resource. */
export function pluginsFor(
  enabled: ReadonlySet<AdmissionPlugin>,
  patience: Patience,
): (definition: Definition) => readonly Plugin[] {
  const on = pluginsWith(patience).filter(({ name }) => enabled.has(name))
  const concerned = new WeakMap<Definition, readonly Plugin[]>()
  return (definition) => {
    let found = concerned.get(definition)
    if (!found) concerned.set(definition, (found = on.filter((plugin) => plugin.concerns(definition))))
    return found
  }
}
