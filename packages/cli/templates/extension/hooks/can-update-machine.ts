import { CanUpdateMachine } from '@capstan/api'
import { inPlaceUpdates, on } from '@capstan/extension'

/** Allows control plane Machines to change their version without being replaced. They are replaced if other fields change as well. */
export const canUpdateMachine = on(
  CanUpdateMachine,
  { name: 'can-update-machine' },
  inPlaceUpdates({ machine: ['version'] }).canUpdateMachine,
)
