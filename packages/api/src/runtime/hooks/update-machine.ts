import { defineHook, retryResponse } from '../hook.ts'
import { machineObjects } from './can-update-machine.ts'

/** Updates a running Machine to the desired state. Called until it no longer blocks. */
export const UpdateMachine = defineHook({
  name: 'UpdateMachine',
  tag: 'In-Place Update Hooks',
  blocking: true,
  doc: 'Called for a Machine that is updated in place, once it has its Node and its objects are written as desired, repeatedly until the response does not block: the update is then complete. The message is shown in the condition Updating of the Machine. After a failure it is called again with growing delays; no change is rolled back. Exactly one handler must be registered.',
  request: { desired: machineObjects },
  response: retryResponse,
})
