import { MachineDeploymentFinalizer, MachineSet } from '@capstan/api'
import { proceed, wait } from '@capstan/controller'
import { removeFinalizer } from '@capstan/kube'
import { deleteChildren } from '../children.ts'
import { counted } from '../machineset/machines-report.ts'
import type { MachineDeploymentPhase } from './scope.ts'

/** Deletes all MachineSets of the MachineDeployment, and removes the finalizer when the last one is gone. */
export const remove: MachineDeploymentPhase = async (scope, io) => {
  const { machineDeployment, machineSets } = scope
  if (!machineSets) return proceed()
  if (machineSets.length > 0) {
    await deleteChildren(MachineSet, machineSets, undefined, io)
    return wait(`${counted(machineSets.length, 'MachineSet')} to be deleted`)
  }
  removeFinalizer(machineDeployment, MachineDeploymentFinalizer)
  return proceed()
}
