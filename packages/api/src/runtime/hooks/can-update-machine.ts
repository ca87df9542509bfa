import { s } from '@capstan/kube'
import { commonResponse, defineHook } from '../hook.ts'
import { wireMachine, wireObject } from './wire-objects.ts'
import { wirePatch } from './wire-patch.ts'

/** A Machine with its infrastructure machine and bootstrap config. */
export const machineObjects = s.object({
  machine: wireMachine,
  infrastructureMachine: wireObject('The machine of the infrastructure provider.'),
  bootstrapConfig: wireObject('The configuration of the bootstrap provider; absent when there is none.').optional(),
})

/** The hook that determines whether a control plane Machine can be updated in place to the desired state. */
export const CanUpdateMachine = defineHook({
  name: 'CanUpdateMachine',
  tag: 'In-Place Update Hooks',
  blocking: false,
  doc: 'Called by control plane providers for a Machine that differs from the desired state, immediately before it would be replaced. The patches contain the fields of spec that the handler can update; if they cover all differences, the Machine is updated in place, otherwise it is replaced. At most one handler may select the Machine.',
  request: { current: machineObjects, desired: machineObjects },
  response: {
    ...commonResponse,
    machinePatch: wirePatch.optional(),
    infrastructureMachinePatch: wirePatch.optional(),
    bootstrapConfigPatch: wirePatch.optional(),
  },
})
