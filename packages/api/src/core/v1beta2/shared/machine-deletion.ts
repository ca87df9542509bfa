/** How Machines are deleted: time limits and order. */
import type { Infer } from '@capstan/kube'
import { s } from '@capstan/kube'

export const nodeDeletion = s
  .object(
    {
      nodeDeletionTimeoutSeconds: s.int32({ minimum: 0 }).optional(),
      nodeDrainTimeoutSeconds: s.int32({ minimum: 0 }).optional(),
      nodeVolumeDetachTimeoutSeconds: s.int32({ minimum: 0 }).optional(),
    },
    { minProperties: 1 },
  )
  .doc('How long each step of the deletion of a Machine may take; 0 means for ever.')
export type MachineDeletion = Infer<typeof nodeDeletion>

export const machineDeploymentDeletion = s
  .object(
    {
      nodeDeletionTimeoutSeconds: s.int32({ minimum: 0 }).optional(),
      nodeDrainTimeoutSeconds: s.int32({ minimum: 0 }).optional(),
      nodeVolumeDetachTimeoutSeconds: s.int32({ minimum: 0 }).optional(),
      order: s.enum('Random', 'Newest', 'Oldest').optional(),
    },
    { minProperties: 1 },
  )
  .doc('Which Machines go first, and how long each step may take.')
export type MachineDeploymentTopologyDeletion = Infer<typeof machineDeploymentDeletion>

export const machineSetDeletion = s
  .object(
    {
      order: s.enum('Random', 'Newest', 'Oldest').optional(),
    },
    { minProperties: 1 },
  )
  .doc('Which Machines go first when there are too many.')
export type MachineSetDeletion = Infer<typeof machineSetDeletion>
