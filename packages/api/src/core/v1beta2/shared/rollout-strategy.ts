/** Rollout strategy of a MachineDeployment. */
import type { Infer } from '@capstan/kube'
import { s } from '@capstan/kube'
import { nonEmpty } from './limits.ts'

const rollingUpdate = s.object(
  {
    maxSurge: s
      .intOrString()
      .optional()
      .doc('How many Machines there may be beyond the desired number: a number, or a percentage, rounded up. 1 when absent.'),
    maxUnavailable: s
      .intOrString()
      .optional()
      .doc('How many Machines may be unavailable: a number, or a percentage, rounded down. 0 when absent.'),
  },
  nonEmpty,
)

export const rolloutStrategy = s
  .object(
    {
      type: s
        .enum('RollingUpdate', 'OnDelete')
        .doc('RollingUpdate replaces Machines step by step; OnDelete leaves it to whoever deletes them.'),
      rollingUpdate: rollingUpdate.optional(),
    },
    nonEmpty,
  )
  .doc('How Machines are replaced when their template changes.')
export interface RolloutStrategy extends Infer<typeof rolloutStrategy> {}

const after = s.timestamp().optional().doc('Machines made before this time are replaced once it has come.')

export const controlPlaneRollout = s.object({ after }, nonEmpty).optional().doc('When changes reach Machines.')

export const machineDeploymentRollout = s
  .object({ after, strategy: rolloutStrategy.optional() }, nonEmpty)
  .optional()
  .doc('When and how changes reach Machines.')

export const machineDeploymentClassRollout = s
  .object({ strategy: rolloutStrategy.optional() }, nonEmpty)
  .optional()
  .doc('How changes reach Machines.')
