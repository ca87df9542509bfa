/** Label selectors. Upstream: metav1.LabelSelector. */
import type { Infer } from '@capstan/kube'
import { s } from '@capstan/kube'

export const labelSelector = s
  .object({
    matchExpressions: s
      .list(
        s.object({
          key: s.string(),
          operator: s.string().doc('In, NotIn, Exists or DoesNotExist.'),
          values: s.list(s.string()).atomic().optional(),
        }),
      )
      .atomic()
      .optional()
      .doc('Requirements on labels.'),
    matchLabels: s.map(s.string()).optional().doc('Labels that must be present with these values.'),
  })
  .atomic()
  .doc('Selects objects by their labels. All requirements must match; an empty selector matches every object.')
export interface LabelSelector extends Infer<typeof labelSelector> {}
