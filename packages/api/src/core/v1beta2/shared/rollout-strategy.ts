/** The field `rollout` of MachineDeployments, of their classes, and of the control plane and MachineDeployments in a Cluster's topology. */
import type { Infer } from '@capstan/kube'
import { s } from '@capstan/kube'
import { nonEmpty } from './limits.ts'

const rollingUpdate = s.object(
  {
    maxSurge: s
      .intOrString()
      .optional()
      .doc('Maximum number of Machines above the desired number: a number, or a percentage, rounded up. 1 when absent.'),
    maxUnavailable: s
      .intOrString()
      .optional()
      .doc('Maximum number of unavailable Machines: a number, or a percentage, rounded down. 0 when absent.'),
  },
  nonEmpty,
)

export const rolloutStrategy = s
  .object(
    {
      type: s
        .enum('RollingUpdate', 'OnDelete')
        .doc(
          'RollingUpdate replaces Machines step by step; OnDelete replaces a Machine only after it was deleted by a user or another controller.',
        ),
      rollingUpdate: rollingUpdate.optional(),
    },
    nonEmpty,
  )
  .doc('How Machines are replaced when their template changes.')
export interface RolloutStrategy extends Infer<typeof rolloutStrategy> {}

const after = s.timestamp().optional().doc('Machines created before this time are replaced once the time is reached.')

export const controlPlaneRollout = s.object({ after }, nonEmpty).optional().doc('When Machines are replaced.')

export const machineDeploymentRollout = s
  .object({ after, strategy: rolloutStrategy.optional() }, nonEmpty)
  .optional()
  .doc('When and how Machines are replaced.')

export const machineDeploymentClassRollout = s
  .object({ strategy: rolloutStrategy.optional() }, nonEmpty)
  .optional()
  .doc('How Machines are replaced.')
