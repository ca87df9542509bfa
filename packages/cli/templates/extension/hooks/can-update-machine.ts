import { CanUpdateMachine } from '@capstan/api'
import { inPlaceUpdates, on } from '@capstan/extension'

/** Allows control plane Machines to change their version in place. A rollout that changes any other field still replaces them. */
export const canUpdateMachine = on(
  CanUpdateMachine,
  { name: 'can-update-machine' },
  inPlaceUpdates({ machine: ['version'] }).canUpdateMachine,
)
