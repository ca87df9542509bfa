import { CanUpdateMachineSet } from '@capstan/api'
import { inPlaceUpdates, on } from '@capstan/extension'

/** Allows workers to change their version without being replaced. They are replaced if other fields change as well. */
export const canUpdateMachineSet = on(
  CanUpdateMachineSet,
  { name: 'can-update-machine-set' },
  inPlaceUpdates({ machine: ['version'] }).canUpdateMachineSet,
)
