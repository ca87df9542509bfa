import { defineHook, retryResponse } from '../hook.ts'
import { machineObjects } from './can-update-machine.ts'

/** Hook that updates a running Machine to the desired state. It is called again until it no longer blocks. */
export const UpdateMachine = defineHook({
  name: 'UpdateMachine',
  tag: 'In-Place Update Hooks',
  blocking: true,
  doc: 'Called for a Machine that is updated in place, once its Node exists and the Machine, its infrastructure machine and its bootstrap config have the desired spec. It is called again until the response does not block; the update is then complete. While the hook blocks, the condition Updating of the Machine contains the message of the response. After a failure it is called again with exponential backoff; no change is rolled back. Exactly one handler must select the Machine.',
  request: { desired: machineObjects },
  response: retryResponse,
})
