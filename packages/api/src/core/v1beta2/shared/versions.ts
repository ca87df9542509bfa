/** Kubernetes versions, in use or to come. */
import type { Infer } from '@capstan/kube'
import { s } from '@capstan/kube'

export const replicasOfVersion = s
  .list(
    s.object({
      replicas: s.int32({ minimum: 1 }).optional().doc('How many Machines there are.'),
      version: s.string({ minLength: 1, maxLength: 256 }),
    }),
    { minItems: 1, maxItems: 32 },
  )
  .atomic()
  .doc('Kubernetes versions in use, from old to new, with how many replicas run each.')
export type ReplicasOfVersion = Infer<typeof replicasOfVersion>[number]

export const replicasByVersion = s
  .list(
    s.object({
      replicas: s.int32({ minimum: 1 }).optional().doc('How many Machines there are.'),
      version: s.string({ minLength: 1, maxLength: 256 }),
    }),
    { minItems: 1, maxItems: 100 },
  )
  .listMap('version')
  .doc('Kubernetes versions in use, from old to new, with how many replicas run each.')
export type ReplicasByVersion = Infer<typeof replicasByVersion>[number]

export const upgradePlan = s
  .list(
    s.object({
      version: s.string({ minLength: 1, maxLength: 256 }),
    }),
    { minItems: 1, maxItems: 32 },
  )
  .atomic()
  .doc('Versions that an upgrade under way has yet to pass, in order.')
export type UpgradeStep = Infer<typeof upgradePlan>[number]
