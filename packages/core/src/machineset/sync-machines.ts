import { type ContractVersionedObjectReference, Machine } from '@capstan/api'
import { proceed } from '@capstan/controller'
import { isDeleting, isReason, keyOf } from '@capstan/kube'
import { applyIntent, handOverMetadata } from '../apply-intent.ts'
import { observeExternal } from '../external/observe.ts'
import { throwAggregate } from '../aggregate-errors.ts'
import { inPlaceChange, machineIntent, wantedMetadata } from './desired-machine.ts'
import { MachineSetManager, type MachineSetIO, type MachineSetPhase, type MachineSetScope, MetadataManager } from './scope.ts'

/**
 * Propagates labels, annotations and all other fields that can change on an existing Machine to the Machines of the set. Labels and
 * annotations also propagate to their infrastructure machines and bootstrap configs.
 */
export const syncMachines: MachineSetPhase = async (scope, io) => {
  if (!scope.machines) return proceed()
  const { machines } = scope
  // Waits for all writes, also after a failure: none may still run during the next phases, or during the next reconcile.
  const results = await Promise.allSettled(machines.map((machine) => syncMachine(machine, scope, io)))
  scope.machines = results.map((result, index) => (result.status === 'fulfilled' ? result.value : machines[index]!))
  throwAggregate(results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : [])))
  return proceed()
}

async function syncMachine(machine: Machine, scope: MachineSetScope, io: MachineSetIO): Promise<Machine> {
  const { machineSet } = scope
  // A Machine that is being deleted gets only the spec fields that can change on an existing Machine, such as deletion timeouts.
  if (isDeleting(machine)) return syncDeleting(machine, scope, io)
  const synced = await applyIntent(io, Machine, machine, machineIntent(machineSet, machine), MachineSetManager)
  const { configRef } = machine.spec.bootstrap
  for (const ref of [machine.spec.infrastructureRef, ...(configRef ? [configRef] : [])]) await syncReferenced(ref, scope, io)
  return synced
}

async function syncDeleting(
  machine: Machine,
  { machineSet }: MachineSetScope,
  { client, signal }: MachineSetIO,
): Promise<Machine> {
  const spec = inPlaceChange(machineSet, machine)
  if (!spec) return machine
  try {
    return await client.patch(Machine, keyOf(machine), { type: 'merge', body: { spec } }, { signal })
  } catch (err) {
    if (isReason(err, 'NotFound')) return machine
    throw err
  }
}

async function syncReferenced(
  ref: ContractVersionedObjectReference,
  { machineSet }: MachineSetScope,
  io: MachineSetIO,
): Promise<void> {
  const external = await observeExternal(io, ref, machineSet.metadata.namespace!, () => [])
  if (!external) throw new Error(`failed to get ${ref.kind} ${machineSet.metadata.namespace}/${ref.name}: it does not exist`)
  const { kind } = external
  const metadata = wantedMetadata(machineSet)
  // Has an effect only if an upstream version before v1.12, which applied labels as `capi-machineset`, has created the object.
  const object = await handOverMetadata(io, kind, external.object, { from: MachineSetManager, to: MetadataManager }, metadata)
  const { name, namespace } = object.metadata
  const intent = { metadata: { name, namespace: namespace!, ...metadata } }
  await applyIntent(io, kind, object, intent, MetadataManager, { ownsEmpty: true })
}
