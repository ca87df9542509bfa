import { CanUpdateMachineSet } from '@capstan/api'
import { inPlaceUpdates, on } from '@capstan/extension'

/** Workers can take another version without being replaced. */
export const canUpdateMachineSet = on(
  CanUpdateMachineSet,
  { name: 'can-update-machine-set' },
  inPlaceUpdates({ machine: ['version'] }).canUpdateMachineSet,
)
