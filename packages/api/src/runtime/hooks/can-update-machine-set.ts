import { s } from '@capstan/kube'
import { commonResponse, defineHook } from '../hook.ts'
import { wireMachineSet, wireObject } from './wire-objects.ts'
import { wirePatch } from './wire-patch.ts'

const machineSetObjects = s.object({
  machineSet: wireMachineSet,
  infrastructureMachineTemplate: wireObject('The machine template of the infrastructure provider.'),
  bootstrapConfigTemplate: wireObject('The template of the bootstrap provider; absent when there is none.').optional(),
})

/** The hook that determines whether Machines of one MachineSet can be updated in place to the spec of another MachineSet. */
export const CanUpdateMachineSet = defineHook({
  name: 'CanUpdateMachineSet',
  tag: 'In-Place Update Hooks',
  blocking: false,
  doc: 'Called during the rolling update of a MachineDeployment, for the new MachineSet and each old MachineSet whose Machines could move to it; core caches the response for up to 24 hours. The patches contain the fields that the handler can update; if they cover all differences, the Machines move to the new MachineSet and are updated in place, otherwise they are replaced. At most one handler may select the MachineSet.',
  request: { current: machineSetObjects, desired: machineSetObjects },
  response: {
    ...commonResponse,
    machineSetPatch: wirePatch.optional(),
    infrastructureMachineTemplatePatch: wirePatch.optional(),
    bootstrapConfigTemplatePatch: wirePatch.optional(),
  },
})
