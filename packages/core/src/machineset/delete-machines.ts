import { Machine } from '@capstan/api'
import { isDeleting, isReason, keyOf, messageOf } from '@capstan/kube'
import type { MachineSetIO, MachineSetScope } from './scope.ts'

/** Asks for the deletion of Machines that are not going already. All are tried before the first failure is thrown. */
export async function deleteMachines(
  { machineSet }: MachineSetScope,
  machines: readonly Machine[],
  io: MachineSetIO,
): Promise<void> {
  const { client, events, signal } = io
  const errors: unknown[] = []
  for (const machine of machines) {
    if (isDeleting(machine)) continue
    const { name, uid } = machine.metadata
    try {
      await client.delete(Machine, keyOf(machine), { preconditions: { uid }, signal })
      events.event(machineSet, 'Normal', 'SuccessfulDelete', `Deleted Machine "${name}"`)
    } catch (err) {
      if (isReason(err, 'NotFound')) continue
      events.event(machineSet, 'Warning', 'FailedDelete', `Failed to delete Machine "${name}": ${messageOf(err)}`)
      errors.push(err)
    }
  }
  if (errors.length > 0) throw new AggregateError(errors, errors.map(messageOf).join('; '))
}
