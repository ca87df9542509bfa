/** Fields of the status of MachineSets and MachineDeployments: counts of Machines, and their label selector. */
import { s } from '@capstan/kube'

export const machineCounts = {
  replicas: s.int32().optional().doc('Number of Machines.'),
  readyReplicas: s.int32().optional().doc('Number of Ready Machines.'),
  availableReplicas: s.int32().optional().doc('Number of Available Machines.'),
  upToDateReplicas: s.int32().optional().doc('Number of Machines that are up to date with their template.'),
}

/** Label selector of the scale subresource. */
export const machineSelectorText = s
  .string({ minLength: 1, maxLength: 4096 })
  .optional()
  .doc('Label selector of the Machines as text, for the scale subresource.')
