/** Label selectors, as metav1.LabelSelector. */
import type { Infer } from '@capstan/kube'
import { s } from '@capstan/kube'

export const labelSelector = s
  .object({
    matchExpressions: s
      .list(
        s.object({
          key: s.string(),
          operator: s.string(),
          values: s.list(s.string()).atomic().optional(),
        }),
      )
      .atomic()
      .optional(),
    matchLabels: s.map(s.string()).optional(),
  })
  .atomic()
  .doc('Which objects are meant, by their labels. All parts must hold; an empty selector matches everything.')
export type LabelSelector = Infer<typeof labelSelector>
