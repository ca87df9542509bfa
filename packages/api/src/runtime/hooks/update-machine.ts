import { defineHook, retryResponse } from '../hook.ts'
import { machineObjects } from './can-update-machine.ts'

/** Makes a Machine what is desired, while it runs. Called until it no longer blocks. */
export const UpdateMachine = defineHook({
  name: 'UpdateMachine',
  tag: 'In-Place Update Hooks',
  blocking: true,
  doc: 'Called for a Machine that is updated in place, again and again until the answer holds nothing back: the update is then complete. Failure means that it is called again, later and later; nothing is rolled back.',
  request: { desired: machineObjects },
  response: retryResponse,
})
