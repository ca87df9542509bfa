import { CanUpdateMachine } from '@capstan/api'
import { inPlaceUpdates, on } from '@capstan/extension'

/**
 * Allows control plane Machines to change their version in place. If a rollout needs changes of other fields as well, the Machines are
 * replaced.
 */
export const canUpdateMachine = on(
  CanUpdateMachine,
  { name: 'can-update-machine' },
  inPlaceUpdates({ machine: ['version'] }).canUpdateMachine,
)
