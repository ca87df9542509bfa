/** How a MachineDeployment replaces Machines. */
import type { Infer } from '@capstan/kube'
import { s } from '@capstan/kube'

export const rolloutStrategy = s
  .object(
    {
      rollingUpdate: s
        .object(
          {
            maxSurge: s
              .intOrString()
              .optional()
              .doc(
                'How many Machines there may be beyond the desired number: a number, or a percentage, rounded up. 1 when absent.',
              ),
            maxUnavailable: s
              .intOrString()
              .optional()
              .doc('How many Machines may be unavailable: a number, or a percentage, rounded down. 0 when absent.'),
          },
          { minProperties: 1 },
        )
        .optional(),
      type: s
        .enum('RollingUpdate', 'OnDelete')
        .doc('RollingUpdate replaces Machines step by step; OnDelete leaves it to whoever deletes them.'),
    },
    { minProperties: 1 },
  )
  .doc('How Machines are replaced when their template changes.')
export type RolloutStrategy = Infer<typeof rolloutStrategy>
