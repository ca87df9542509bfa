import { Machine, type ContractVersionedObjectReference } from '@capstan/api'
import { proceed } from '@capstan/controller'
import { isDeleting, isReason, type KubeObject, keyOf } from '@capstan/kube'
import { observeExternal } from '../external/observe.ts'
import { metadataPatch, type MetadataPatch } from '../managed-metadata.ts'
import { inPlaceChange, wantedMetadata } from './desired-machine.ts'
import { MachineSetManager, type MachineSetIO, type MachineSetPhase, type MachineSetScope } from './scope.ts'

/**
 * Brings what may change in place to Machines, and labels and annotations to their infrastructure and bootstrap config too. The
 * Machine comes last: until it is written, it remembers what has to be taken away from the others.
 */
export const syncMachines: MachineSetPhase = async (scope, io) => {
  if (!scope.machines) return proceed()
  scope.machines = await Promise.all(scope.machines.map((machine) => syncMachine(machine, scope, io)))
  return proceed()
}

async function syncMachine(machine: Machine, scope: MachineSetScope, io: MachineSetIO): Promise<Machine> {
  const { metadata, spec } = inPlaceChange(scope.machineSet, machine)
  // What is on its way out keeps its labels; only how long its deletion may take still matters.
  if (isDeleting(machine)) return spec ? patchMachine(machine, { spec }, io) : machine
  const { configRef } = machine.spec.bootstrap
  for (const ref of [machine.spec.infrastructureRef, ...(configRef ? [configRef] : [])]) {
    await syncReferenced(ref, metadata, scope, io)
  }
  if (!metadata && !spec) return machine
  return patchMachine(machine, { ...(metadata ? { metadata } : {}), ...(spec ? { spec } : {}) }, io)
}

async function patchMachine(machine: Machine, body: object, { client, signal }: MachineSetIO): Promise<Machine> {
  try {
    return await client.patch(Machine, keyOf(machine), { type: 'merge', body }, { fieldManager: MachineSetManager, signal })
  } catch (err) {
    if (isReason(err, 'NotFound')) return machine
    throw err
  }
}

async function syncReferenced(
  ref: ContractVersionedObjectReference,
  ofMachine: MetadataPatch | undefined,
  { machineSet }: MachineSetScope,
  io: MachineSetIO,
): Promise<void> {
  const external = await observeExternal(io, ref, machineSet.metadata.namespace!, () => [])
  if (!external || isDeleting(external.object)) return
  const metadata = referencedPatch(external.object, ofMachine, machineSet)
  if (!metadata) return
  const { client, signal } = io
  const key = keyOf(external.object)
  await client.patch(external.kind, key, { type: 'merge', body: { metadata } }, { fieldManager: MetadataManager, signal })
}

/** Upstream uses a second manager for what it propagates to other objects. */
const MetadataManager = 'capi-machineset-metadata'

/** What the set wants, and the removal of what is being removed from the Machine. What a template or others set stays. Pure. */
function referencedPatch(
  object: KubeObject,
  ofMachine: MetadataPatch | undefined,
  machineSet: MachineSetScope['machineSet'],
): MetadataPatch | undefined {
  const patch = metadataPatch(object, '', wantedMetadata(machineSet)) ?? {}
  for (const field of ['labels', 'annotations'] as const) {
    const removed = Object.entries(ofMachine?.[field] ?? {}).filter(
      ([key, value]) => value === null && object.metadata[field]?.[key] !== undefined,
    )
    if (removed.length > 0) patch[field] = { ...patch[field], ...Object.fromEntries(removed) }
  }
  return Object.keys(patch).length > 0 ? patch : undefined
}
