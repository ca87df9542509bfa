/** Taints of a Machine, which Cluster API adds to its Node. */
import type { Infer } from '@capstan/kube'
import { s } from '@capstan/kube'
import { labelValue, qualifiedName } from './limits.ts'

export const machineTaints = s
  .list(
    s.object({
      effect: s.enum('NoSchedule', 'PreferNoSchedule', 'NoExecute').doc('Effect on Pods that do not tolerate the taint.'),
      key: s.string({ minLength: 1, maxLength: 317, pattern: qualifiedName }),
      propagation: s.enum('Always', 'OnInitialization').doc('Always keeps the taint on the Node; OnInitialization adds it once.'),
      value: s.string({ minLength: 1, maxLength: 63, pattern: labelValue }).optional(),
    }),
    { minItems: 1, maxItems: 64 },
  )
  .listMap('key', 'effect')
  .doc('Taints that Cluster API manages on the Node.')
export type MachineTaint = Infer<typeof machineTaints>[number]
