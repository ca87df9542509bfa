/** Counts of Machines in the status of MachineSets, MachineDeployments and Clusters, and the label selector of the Machines. */
import { s } from '@capstan/kube'

export const machineCounts = {
  replicas: s.int32().optional().doc('Number of Machines.'),
  readyReplicas: s.int32().optional().doc('Number of Ready Machines.'),
  availableReplicas: s.int32().optional().doc('Number of Available Machines.'),
  upToDateReplicas: s.int32().optional().doc('Number of up-to-date Machines.'),
}

/** Counts in the v1beta1 status of MachineSets and MachineDeployments. */
export const legacyMachineCounts = {
  readyReplicas: s.int32().optional().doc('Number of Machines whose Node is Ready.'),
  availableReplicas: s.int32().optional().doc('Number of Machines whose Node has been Ready for minReadySeconds.'),
}

/** Label selector of the scale subresource. */
export const machineSelectorText = s
  .string({ minLength: 1, maxLength: 4096 })
  .optional()
  .doc('Label selector of the Machines as text, for the scale subresource.')
