import {
  Machine,
  MachineDeploymentUniqueLabel,
  MachineSet,
  PendingAcknowledgeMoveAnnotation,
  UpdateInProgressAnnotation,
} from '@capstan/api'
import { isReason, keyOf, messageOf, ownerReference } from '@capstan/kube'
import { deleteChildren } from '../children.ts'
import { selectMoves, sourcesOf } from './plan-moves.ts'
import type { MachineSetIO, MachineSetScope } from './scope.ts'
import { throwAggregate } from '../aggregate-errors.ts'

/**
 * Moves up to `count` Machines to another set of the same MachineDeployment: owner, label and annotations change in one write, so that each
 * Machine belongs to one set at any moment. Machines that must be remediated are deleted instead. Attempts all moves and deletions, then
 * throws one error with all failures.
 * @throws Error when the other set does not exist, does not accept Machines from this set, or has no label for its Machines
 */
export async function moveMachines(scope: MachineSetScope, targetName: string, count: number, io: MachineSetIO): Promise<void> {
  const { machineSet, machines = [] } = scope
  const target = io.cache.peek(MachineSet, { ...keyOf(machineSet), name: targetName })
  if (!target)
    throw new Error(`failed to get MachineSet ${targetName}, which is the target for the move operation: it does not exist`)
  const sources = sourcesOf(target)
  const { name } = machineSet.metadata
  if (!sources.has(name)) {
    const expected = [...sources].join(',')
    throw new Error(
      `MachineSet ${name} is set to move replicas to ${targetName}, but ${targetName} only accepts Machines from ${expected}`,
    )
  }
  const hash = target.metadata.labels?.[MachineDeploymentUniqueLabel]
  if (hash === undefined) throw new Error(`MachineSet ${targetName} does not have the ${MachineDeploymentUniqueLabel} label`)

  const { move, remove } = selectMoves(machines, count, machineSet.spec.deletion?.order, io.clock.now())
  const moved = new Map<Machine, Machine>()
  const errors: unknown[] = []
  for (const machine of move) {
    const machineName = machine.metadata.name
    io.log.info('Triggering in-place update for Machine by moving it', { Machine: machineName, to: targetName })
    try {
      moved.set(machine, await moveMachine(machine, target, hash, io))
    } catch (err) {
      if (isReason(err, 'NotFound')) continue
      const problem = `failed to trigger in-place update for Machine ${machineName} by moving to MachineSet ${targetName}`
      errors.push(new Error(`${problem}: ${messageOf(err)}`, { cause: err }))
    }
  }
  // Moved Machines count in this set until the cache shows them in the other set. Otherwise the MachineDeployment would see too few
  // Machines.
  scope.machines = machines.map((machine) => moved.get(machine) ?? machine)
  await deleteChildren(Machine, remove, machineSet, io).catch((err: unknown) => errors.push(err))
  throwAggregate(errors)
}

/**
 * Moves one Machine. As upstream, the patch names no field manager, and its owner reference has no `blockOwnerDeletion`. The next
 * server-side apply by the field manager `capi-machineset` adds `blockOwnerDeletion`. An owner reference is atomic, so `capi-machineset` then
 * is its only field manager.
 */
function moveMachine(machine: Machine, to: MachineSet, hash: string, { client, signal }: MachineSetIO): Promise<Machine> {
  const { ownerReferences = [], resourceVersion } = machine.metadata
  const owner = ownerReference(to, MachineSet, { controller: true })
  const metadata = {
    ownerReferences: ownerReferences.map((reference) => (reference.controller ? owner : reference)),
    labels: { [MachineDeploymentUniqueLabel]: hash },
    annotations: { [UpdateInProgressAnnotation]: '', [PendingAcknowledgeMoveAnnotation]: '' },
    // Optimistic lock: prevents moving a Machine twice and losing owner references.
    resourceVersion,
  }
  return client.patch(Machine, keyOf(machine), { type: 'merge', body: { metadata } }, { signal })
}
