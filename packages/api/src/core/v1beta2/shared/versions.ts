/** Fields that list Kubernetes versions: the versions in use, and the steps of an upgrade. */
import type { Infer } from '@capstan/kube'
import { s } from '@capstan/kube'
import { shortText } from './limits.ts'

const versionInUse = s.object({
  version: s.string(shortText).doc('Kubernetes version.'),
  replicas: s.int32({ minimum: 1 }).optional().doc('Number of Machines with this version.'),
})
const versionsDescription = 'Kubernetes versions in use, from old to new, with the number of replicas of each.'

/** Versions in the status of a Cluster: of its control plane, and of its workers. */
export const replicasOfVersion = s.list(versionInUse, { minItems: 1, maxItems: 32 }).atomic().doc(versionsDescription)
export type ReplicasOfVersion = Infer<typeof replicasOfVersion>[number]

/** Versions in the status of a MachineDeployment, MachineSet or MachinePool. Unlike `replicasOfVersion`, the list is a map by version. */
export const replicasByVersion = s.list(versionInUse, { minItems: 1, maxItems: 100 }).listMap('version').doc(versionsDescription)
export type ReplicasByVersion = Infer<typeof replicasByVersion>[number]

export const upgradePlan = s
  .list(s.object({ version: s.string(shortText).doc('Kubernetes version of the step.') }), { minItems: 1, maxItems: 32 })
  .atomic()
  .doc('Remaining versions of the current upgrade, in order.')
export type UpgradeStep = Infer<typeof upgradePlan>[number]
