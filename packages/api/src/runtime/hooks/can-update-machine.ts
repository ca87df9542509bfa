import { s } from '@capstan/kube'
import { commonResponse, defineHook } from '../hook.ts'
import { wireMachine, wireObject } from './wire-objects.ts'
import { wirePatch } from './wire-patch.ts'

/** A Machine with what it is made of. */
export const machineObjects = s.object({
  machine: wireMachine,
  infrastructureMachine: wireObject('The machine of the infrastructure provider.'),
  bootstrapConfig: wireObject('The configuration of the bootstrap provider; absent when there is none.').optional(),
})

/** Asks whether a Machine of a control plane can become what is desired without being replaced. */
export const CanUpdateMachine = defineHook({
  name: 'CanUpdateMachine',
  tag: 'In-Place Update Hooks',
  blocking: false,
  doc: 'Called by control plane providers for a Machine that is not as desired, right before it would be replaced. The patches say which fields of spec the handler can take from current to desired; when all differences are covered the Machine is updated in place, otherwise it is replaced. One handler may be registered: several are an error.',
  request: { current: machineObjects, desired: machineObjects },
  response: {
    ...commonResponse,
    machinePatch: wirePatch.optional(),
    infrastructureMachinePatch: wirePatch.optional(),
    bootstrapConfigPatch: wirePatch.optional(),
  },
})
