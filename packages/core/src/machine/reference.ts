/** Reads and adopts the objects that a Machine refers to: its bootstrap config and its infrastructure machine. */
import { Machine, MachineControlPlaneLabel } from '@capstan/api'
import type { Index, MapFunction } from '@capstan/controller'
import { controllerReference, keyOf, type OwnerReference, parseApiVersion } from '@capstan/kube'
import { adopt } from '../external/adopt.ts'
import type { ContractRef } from '../external/get.ts'
import { type Observed, toObserved } from '../external/observed.ts'
import { observeExternal } from '../external/observe.ts'
import { referenceText, referredText } from '../external/reference.ts'
import type { MachineIO, MachineScope } from './scope.ts'

/** Reads a referenced object and transfers its ownership from its creator to the Machine. */
export async function observeAndAdopt(scope: MachineScope, io: MachineIO, ref: ContractRef): Promise<Observed> {
  const { machine, cluster } = scope
  const external = await observeExternal(io, ref, machine.metadata.namespace!, machinesOfReference)
  if (!external) return toObserved(external)
  const object = await adopt(io, external.kind, external.object, {
    owner: controllerReference(machine, Machine),
    clusterName: machine.spec.clusterName,
    release: isCreator,
  })
  return toObserved({ ...external, object })

  /**
   * Whether the owner created the object for the Machine. A MachineSet or control plane owns such objects until the Machine adopts them.
   */
  function isCreator({ apiVersion, kind }: OwnerReference): boolean {
    const { group } = parseApiVersion(apiVersion)
    if (kind === 'MachineSet' && group === Machine.group) return true
    const controlPlane = cluster.spec.controlPlaneRef
    const isControlPlane = machine.metadata.labels?.[MachineControlPlaneLabel] !== undefined
    return isControlPlane && controlPlane?.kind === kind && controlPlane.apiGroup === group
  }
}

/** Indexes Machines by the objects that they refer to. */
export const byReference: Index<Machine> = {
  name: 'machine by reference',
  kind: Machine,
  values: ({ metadata, spec }) =>
    [spec.infrastructureRef, spec.bootstrap.configRef].flatMap((ref) => (ref ? referenceText(ref, metadata.namespace) : [])),
}

const machinesOfReference: MapFunction = (object, cache) => cache.byIndex(byReference, referredText(object)).map(keyOf)
