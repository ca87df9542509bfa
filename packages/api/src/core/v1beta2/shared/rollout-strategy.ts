/** How a MachineDeployment replaces Machines. */
import type { Infer } from '@capstan/kube'
import { s } from '@capstan/kube'

export const rolloutStrategy = s
  .object(
    {
      rollingUpdate: s
        .object(
          {
            maxSurge: s.intOrString().optional(),
            maxUnavailable: s.intOrString().optional(),
          },
          { minProperties: 1 },
        )
        .optional(),
      type: s.enum('RollingUpdate', 'OnDelete'),
    },
    { minProperties: 1 },
  )
  .doc('How Machines are replaced when their template changes.')
export type RolloutStrategy = Infer<typeof rolloutStrategy>
