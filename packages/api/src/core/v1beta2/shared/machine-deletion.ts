/** Fields that determine how Machines are deleted: timeouts and order. */
import type { Infer } from '@capstan/kube'
import { s } from '@capstan/kube'
import { nonEmpty } from './limits.ts'

const timeouts = {
  nodeDrainTimeoutSeconds: s
    .int32({ minimum: 0 })
    .optional()
    .doc(
      'Timeout of draining the Node; 0 means without limit. Default: 0; in the topology of a Cluster, the value of the class.',
    ),
  nodeVolumeDetachTimeoutSeconds: s
    .int32({ minimum: 0 })
    .optional()
    .doc(
      'Timeout of detaching the volumes of the Node; 0 means without limit. Default: 0; in the topology of a Cluster, the value of the class.',
    ),
  nodeDeletionTimeoutSeconds: s
    .int32({ minimum: 0 })
    .optional()
    .doc(
      'Timeout of deleting the Node; 0 means without limit. Default: 10; in the topology of a Cluster, the value of the class.',
    ),
}

const order = {
  order: s
    .enum('Random', 'Newest', 'Oldest')
    .optional()
    .doc(
      'Which Machines are deleted first on scale down: Random, Newest or Oldest. Default: Random; in the topology of a Cluster, the value of the class.',
    ),
}

/** Field `deletion` of Machines, and of control planes and MachinePools in a topology or ClusterClass. */
export const machineDeletion = s
  .object(timeouts, nonEmpty)
  .doc('Timeouts of the steps of the deletion of a Machine; 0 means without limit.')
export interface MachineDeletion extends Infer<typeof machineDeletion> {}

/** Field `deletion` of MachineSets and MachineDeployments. */
export const machineSetDeletion = s.object(order, nonEmpty).doc('Which Machines are deleted first on scale down.')
export interface MachineSetDeletion extends Infer<typeof machineSetDeletion> {}

/** Field `deletion` of a MachineDeployment in a topology or ClusterClass. */
export const machineDeploymentTopologyDeletion = s
  .object({ ...order, ...timeouts }, nonEmpty)
  .doc('Which Machines are deleted first on scale down, and the timeouts of a deletion.')
export interface MachineDeploymentTopologyDeletion extends Infer<typeof machineDeploymentTopologyDeletion> {}
