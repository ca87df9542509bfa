/** Status of v1beta1 that v1beta2 still carries under `status.deprecated`. */
import type { Infer } from '@capstan/kube'
import { s } from '@capstan/kube'

export const legacyConditions = s
  .list(
    s.object({
      lastTransitionTime: s.timestamp(),
      message: s.string({ minLength: 1, maxLength: 10240 }).optional(),
      reason: s.string({ minLength: 1, maxLength: 256 }).optional(),
      severity: s.string({ maxLength: 32 }).optional(),
      status: s.string(),
      type: s.string({ minLength: 1, maxLength: 256 }),
    }),
  )
  .doc('Conditions in the form of v1beta1.')
export type LegacyCondition = Infer<typeof legacyConditions>[number]
