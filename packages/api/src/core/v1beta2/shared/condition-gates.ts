/**
 * Readiness gates of Machines and availability gates of Clusters: additional conditions, set by other controllers, on which Ready or
 * Available depends.
 */
import type { Infer } from '@capstan/kube'
import { s } from '@capstan/kube'
import { conditionTypeName } from './limits.ts'

export const conditionGates = s
  .list(
    s.object({
      conditionType: s.string({ minLength: 1, maxLength: 316, pattern: conditionTypeName }).doc('Type of the condition.'),
      polarity: s
        .enum('Positive', 'Negative')
        .optional()
        .doc('Positive (the default): the gate passes while the condition is True. Negative: while it is False.'),
    }),
    { minItems: 1, maxItems: 32 },
  )
  .listMap('conditionType')
  .doc('Conditions that must be met in addition to those that Cluster API computes.')
export type ConditionGate = Infer<typeof conditionGates>[number]
