import { CanUpdateMachineSet } from '@capstan/api'
import { inPlaceUpdates, on } from '@capstan/extension'

/**
 * Allows Machines of MachineDeployments to change their version in place. If a rollout needs changes of other fields as well, the Machines
 * are replaced.
 */
export const canUpdateMachineSet = on(
  CanUpdateMachineSet,
  { name: 'can-update-machine-set' },
  inPlaceUpdates({ machine: ['version'] }).canUpdateMachineSet,
)
