/** How Machines are deleted: time limits and order. */
import type { Infer } from '@capstan/kube'
import { s } from '@capstan/kube'
import { nonEmpty } from './limits.ts'

const timeouts = {
  nodeDrainTimeoutSeconds: s
    .int32({ minimum: 0 })
    .optional()
    .doc('How long draining the Node may take; without limit when absent or 0.'),
  nodeVolumeDetachTimeoutSeconds: s
    .int32({ minimum: 0 })
    .optional()
    .doc('How long detaching the volumes of the Node may take; without limit when absent or 0.'),
  nodeDeletionTimeoutSeconds: s
    .int32({ minimum: 0 })
    .optional()
    .doc('How long deleting the Node may take; 10 when absent, without limit when 0.'),
}

const order = {
  order: s
    .enum('Random', 'Newest', 'Oldest')
    .optional()
    .doc('Which Machines go first when there are too many: Random (when absent), Newest or Oldest.'),
}

export const machineDeletion = s
  .object(timeouts, nonEmpty)
  .doc('How long each step of the deletion of a Machine may take; 0 means for ever.')
export interface MachineDeletion extends Infer<typeof machineDeletion> {}

export const machineSetDeletion = s.object(order, nonEmpty).doc('Which Machines go first when there are too many.')
export interface MachineSetDeletion extends Infer<typeof machineSetDeletion> {}

export const machineDeploymentDeletion = s
  .object({ ...order, ...timeouts }, nonEmpty)
  .doc('Which Machines go first, and how long each step may take.')
export interface MachineDeploymentTopologyDeletion extends Infer<typeof machineDeploymentDeletion> {}
