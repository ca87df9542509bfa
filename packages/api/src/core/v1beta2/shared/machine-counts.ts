/** Counts of Machines in the status of their owners. */
import { s } from '@capstan/kube'

export const machineCounts = {
  replicas: s.int32().optional().doc('How many Machines there are.'),
  readyReplicas: s.int32().optional().doc('How many Machines are Ready.'),
  availableReplicas: s.int32().optional().doc('How many Machines are Available.'),
  upToDateReplicas: s.int32().optional().doc('How many Machines are as their template says.'),
}

/** Label selector of the scale subresource. */
export const machineSelectorText = s
  .string({ minLength: 1, maxLength: 4096 })
  .optional()
  .doc('Selects the Machines, as text: of the scale subresource.')
