import { defineHook, retryResponse } from '../hook.ts'
import { machineObjects } from './can-update-machine.ts'

/** Makes a Machine what is desired, while it runs. Called until it no longer blocks. */
export const UpdateMachine = defineHook({
  name: 'UpdateMachine',
  tag: 'In-Place Update Hooks',
  blocking: true,
  doc: 'Called for a Machine that is updated in place, once it has its Node and its objects are written as desired, again and again until the answer holds nothing back: the update is then complete. The message shows in the condition Updating of the Machine. Failure means that it is called again, later and later; nothing is rolled back. One handler must be registered: none and several are errors.',
  request: { desired: machineObjects },
  response: retryResponse,
})
