import { defineHook, retryResponse } from '../hook.ts'
import { machineObjects } from './can-update-machine.ts'

/** Hook that updates a running Machine to the desired state. It is called again until it no longer blocks. */
export const UpdateMachine = defineHook({
  name: 'UpdateMachine',
  tag: 'In-Place Update Hooks',
  blocking: true,
  doc: 'Called for a Machine that is updated in place, after its Node exists and its objects have the desired spec. It is called again until the response does not block; the update is then complete. The message is in the condition Updating of the Machine. After a failure it is called again with exponential backoff; no change is rolled back. Exactly one handler must be registered.',
  request: { desired: machineObjects },
  response: retryResponse,
})
