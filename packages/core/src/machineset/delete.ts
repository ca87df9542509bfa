import { Machine, MachineSetFinalizer } from '@capstan/api'
import { proceed, wait } from '@capstan/controller'
import { removeFinalizer } from '@capstan/kube'
import { deleteChildren } from '../children.ts'
import type { MachineSetPhase } from './scope.ts'
import { hasPlainSelector } from './machines.ts'
import { counted } from './machines-report.ts'

/** Deletes all Machines of the MachineSet, and removes the finalizer when the last one is gone. */
export const remove: MachineSetPhase = async (scope, io) => {
  const { machineSet } = scope
  // As upstream, a set whose selector has more than label equalities counts as a set without Machines.
  const machines = scope.machines ?? (hasPlainSelector(machineSet) ? undefined : [])
  if (!machines) return proceed()
  if (machines.length > 0) {
    await deleteChildren(Machine, machines, undefined, io)
    return wait(`${counted(machines.length, 'Machine')} to be deleted`)
  }
  removeFinalizer(machineSet, MachineSetFinalizer)
  return proceed()
}
