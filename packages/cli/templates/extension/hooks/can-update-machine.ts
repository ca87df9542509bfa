import { CanUpdateMachine } from '@capstan/api'
import { inPlaceUpdates, on } from '@capstan/extension'

/** Machines of control planes can take another version without being replaced. */
export const canUpdateMachine = on(
  CanUpdateMachine,
  { name: 'can-update-machine' },
  inPlaceUpdates({ machine: ['version'] }).canUpdateMachine,
)
